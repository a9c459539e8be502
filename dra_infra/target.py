"""The target of a program: the Kubernetes release and its feature gates, and later driver and fleet."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS, Release, read_version, shorten_version

__all__ = ["SUPPORTED_MINORS", "ClusterTarget", "Release"]

GATES_SETTING: Final = "dra-infra:gates"
"""The setting of a stack that names the gates of its cluster."""

NEWEST_DRIVER: Final = "newest"
"""The driver releases where none are named: for checks and for fleets by name, in every command and in Python."""


@dataclass(frozen=True, kw_only=True)
class ClusterTarget:
    """The cluster that a program is meant for.

    Args:
        kubernetes: A minor of `SUPPORTED_MINORS`, which means its newest known patch, or a patch: `1.37.2`, `v1.37.2` or
            `v1.37.2+k3s1`, of which `1.37.2` is kept. None checks on the oldest and the newest minor.
        gates: Feature gates that the cluster sets otherwise than its minor does: `{"DRAAdminAccess": False}`.
        serves: Versions of resource.k8s.io that the API server serves.
    """

    kubernetes: str | None = None
    gates: Mapping[str, bool] = field(default_factory=dict)
    serves: frozenset[str] = frozenset({"v1"})

    def __post_init__(self) -> None:
        """Keep one spelling of a version, so that equal targets are equal."""
        if isinstance(self.kubernetes, str):
            object.__setattr__(self, "kubernetes", shorten_version(self.kubernetes))

    def __hash__(self) -> int:
        return hash((self.kubernetes, *sorted(self.gates.items()), frozenset(self.serves)))

    @property
    def minor(self) -> str | None:
        """The minor of `kubernetes`; a text that is no version stays as it is."""
        version = read_version(self.kubernetes) if self.kubernetes is not None else None
        return version.minor if version is not None else self.kubernetes

    @property
    def minors(self) -> tuple[str, ...]:
        """The minors on which everything must hold."""
        if self.minor is None:
            return (SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1])
        return (self.minor,)

    @property
    def patch(self) -> str:
        """The patch that the target names; empty where it names none."""
        version = read_version(self.kubernetes) if self.kubernetes is not None else None
        return version.patch if version is not None else ""

    @property
    def releases(self) -> tuple[Release, ...]:
        """The API servers on which everything must hold, oldest first.

        Raises:
            InvalidSpecError: With the problems of `check_target`.
        """
        if problems := check_target(self):
            raise InvalidSpecError(problems)
        gates = tuple(sorted(self.gates.items()))
        return tuple(_release(minor, gates, self.patch) for minor in self.minors)


def supported_version(reported: str) -> str:
    """Return the version that a server reports in our spelling, `1.37.2`; empty where its minor is not supported or it names no patch."""
    version = read_version(reported)
    return version.patch if version is not None and version.minor in SUPPORTED_MINORS else ""


def read_gates(text: str) -> Mapping[str, bool]:
    """Read the gates of a stack's `dra-infra:gates`, as the engine hands a mapping of a stack file to a program.

    Args:
        text: A JSON object of gates with true or false; `true` and `false` may be texts. An empty text names no gates.

    Raises:
        InvalidSpecError: `wrong-type`. Whether the gates exist is checked by `check_target`.
    """
    try:
        setting: object = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        # Settings of a stranger's stack may be nested without end.
        setting = None
    if not isinstance(setting, dict):
        raise InvalidSpecError([_wrong_setting(text)])
    words: Mapping[object, bool] = {"true": True, "false": False}
    gates: dict[str, bool] = {}
    for name, value in setting.items():
        is_on = value if isinstance(value, bool) else words.get(str(value))
        if is_on is None:
            raise InvalidSpecError([_wrong_setting(text)])
        gates[name] = is_on
    return gates


def write_gates(gates: Mapping[str, bool]) -> str:
    """Return gates as `read_gates` reads them."""
    return json.dumps(dict(sorted(gates.items())))


def _wrong_setting(text: str) -> Problem:
    return Problem(
        path=GATES_SETTING,
        code="wrong-type",
        message=f"{text!r:.80} is not a mapping of gates to true or false",
        hint="write the gates below dra-infra:gates in the stack file, each as `DRADeviceTaints: true`, or "
        "--config 'dra-infra:gates={\"DRADeviceTaints\": true}'",
    )


def check_target(target: ClusterTarget) -> tuple[Problem, ...]:
    """Problems of *target*: `wrong-type`, `unknown-kubernetes`, `unknown-gate`, `locked-gate`, `gate-needs-gate`."""
    if wrong := tuple(_check_types(target)):
        return wrong
    if target.minor is not None and target.minor not in SUPPORTED_MINORS:
        return (_unknown_minor(target.kubernetes),)
    return tuple(_check_gates(target))


def _check_types(target: ClusterTarget) -> Iterator[Problem]:
    """Problems that a type checker would find; the rest is only checked when there are none."""
    kubernetes: object = target.kubernetes
    if kubernetes is not None and not isinstance(kubernetes, str):
        yield _wrong_type("kubernetes", kubernetes, "a version", 'write kubernetes="1.37"')
    gates: object = target.gates
    hint = 'write gates={"DRADeviceTaints": True}'
    if not isinstance(gates, Mapping):
        yield _wrong_type("gates", gates, "a mapping of gates to True or False", hint)
    elif odd := [name for name in gates if not isinstance(name, str)]:
        yield _wrong_type("gates", odd[0], "the name of a gate", hint)
    serves: object = target.serves
    if not isinstance(serves, Set) or not all(isinstance(each, str) for each in serves):
        yield _wrong_type("serves", serves, "a set of versions", 'write serves=frozenset({"v1"})')


def _wrong_type(path: str, value: object, expected: str, hint: str) -> Problem:
    # By its type: things without a literal have an address, which is another one in each run.
    message = f"a value of type {type(value).__name__} is not {expected}"
    return Problem(path=path, code="wrong-type", message=message, hint=hint)


@lru_cache(maxsize=64)
def _release(minor: str, changes: tuple[tuple[str, bool], ...], patch: str = "") -> Release:
    chosen = dict(changes)
    gates = {
        name: chosen.get(name, states[minor].default) for name, states in GATES.items() if minor in states
    }
    return Release(
        minor=minor, gates=frozenset(name for name, enabled in gates.items() if enabled), patch=patch
    )


def _check_gates(target: ClusterTarget) -> Iterator[Problem]:
    for name in sorted(target.gates):
        enabled: object = target.gates[name]
        if not isinstance(enabled, bool):
            yield Problem(
                path=f"gates[{name!r}]",
                code="wrong-type",
                message=f"{enabled!r:.80} is not True or False",
                hint=f"write gates={{{name!r}: True}}",
            )
        elif name not in GATES:
            yield _unknown_gate(name)
        else:
            for minor in target.minors:
                yield from _check_gate(name, minor, target)


def _check_gate(name: str, minor: str, target: ClusterTarget) -> Iterator[Problem]:
    states, enabled = GATES[name], target.gates[name]
    if minor not in states:
        # With no minor named, a gate that only the newest has is meant for that one.
        if target.kubernetes is not None:
            yield Problem(
                path=f"gates[{name!r}]",
                code="unknown-gate",
                message=f"Kubernetes {minor} has no feature gate {name}, the server would not start",
                hint=f"it is there since {min(states, key=SUPPORTED_MINORS.index)}",
            )
        return
    if states[minor].locked and enabled is not states[minor].default:
        yield Problem(
            path=f"gates[{name!r}]",
            code="locked-gate",
            message=f"{name} is locked to {str(states[minor].default).lower()} in Kubernetes {minor}",
            hint="leave it out",
        )
    given: Mapping[str, object] = target.gates
    sound = {each: on for each, on in given.items() if isinstance(on, bool)}
    release = _release(minor, tuple(sorted(sound.items())))
    if enabled and (missing := release.find_missing_needs(name)):
        yield Problem(
            path=f"gates[{name!r}]",
            code="gate-needs-gate",
            message=f"{name} needs {' and '.join(missing)} in Kubernetes {minor}, the server would not start",
            hint="add " + ", ".join(f"{each!r}: True" for each in missing),
        )


def _unknown_minor(minor: object) -> Problem:
    return Problem(
        path="kubernetes",
        code="unknown-kubernetes",
        message=f"{minor!r} is not a minor that is known here",
        hint=f"supported are {', '.join(SUPPORTED_MINORS)}, and their patches",
    )


def _unknown_gate(name: str) -> Problem:
    return Problem(
        path=f"gates[{name!r}]",
        code="unknown-gate",
        message=f"{name!r} is not a feature gate that decides anything about DRA in Kubernetes "
        f"{SUPPORTED_MINORS[0]} to {SUPPORTED_MINORS[-1]}",
        hint=_near_gates(name),
    )


def _near_gates(name: str) -> str:
    """The gates that may be meant, the likeliest first; all of them where none is near."""
    spelled = {known.lower(): known for known in GATES}
    typed = name[:80].lower()
    near = difflib.get_close_matches(typed, sorted(spelled), n=3, cutoff=0.7)
    near += [known for known in sorted(spelled) if len(typed) > 3 and typed in known and known not in near]
    names = [spelled[known] for known in near[:3]]
    return f"did you mean {' or '.join(map(repr, names))}?" if names else f"gates are {', '.join(GATES)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""
