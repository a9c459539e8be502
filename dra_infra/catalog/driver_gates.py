"""Feature gates of the NVIDIA DRA driver per release line, which go together, and what each line needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Literal

from pydantic import Field, model_validator

from dra_infra.catalog.drivers import drivers
from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import read_data
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import GATES
from dra_infra.output.wording import nearest

_DRIVER = "gpu.nvidia.com"
_ALL = {"AllAlpha": "alpha", "AllBeta": "beta"}


class DriverGate(Entry):
    """A gate of the driver.

    Args:
        kubernetes: Gate of Kubernetes that the feature leans on, from the line `kubernetes_since` on.
    """

    stage: Literal["alpha", "beta"]
    default: bool
    since: str
    until: str = ""
    meaning: str
    kubernetes: str = ""
    kubernetes_since: str = ""


class GateRule(Entry):
    """Two gates of which one needs or excludes the other.

    Args:
        enforced: Whether the driver refuses to start; else `fails` says what happens.
    """

    gate: str
    needs: str = ""
    excludes: str = ""
    since: str
    until: str = ""
    enforced: bool = True
    fails: str = ""

    @model_validator(mode="after")
    def _is_one_rule(self) -> GateRule:
        if bool(self.needs) == bool(self.excludes) or self.enforced == bool(self.fails):
            raise ValueError("a rule needs or excludes, and one that is not enforced says how it fails")
        return self


class DriverNeeds(Fact):
    """Needs of a release line; versions are the oldest that do, empty where none is documented."""

    chart: str
    kubernetes: str
    kubernetes_documented: str = ""
    kernel_driver: str = ""
    kernel_driver_in_operator: str = ""
    kernel_driver_for_dns_names: str = ""
    resource_api: str
    brings: str


class _GateFile(Fact):
    gates: Mapping[str, DriverGate] = Field(min_length=1)
    rules: tuple[GateRule, ...]


@cache
def gates_of(line: str) -> Mapping[str, DriverGate]:
    """The gates that a release line has, by name; none for 25.3.

    Raises:
        KeyError: *line* is none of `drivers()["gpu.nvidia.com"].by_line`.
    """
    return {name: gate for name, gate in _file().gates.items() if _covers(gate, line)}


@cache
def gate_rules_of(line: str) -> tuple[GateRule, ...]:
    """Rules about gates of a release line that go together, or do not."""
    return tuple(rule for rule in _file().rules if _covers(rule, line))


@cache
def driver_needs() -> Mapping[str, DriverNeeds]:
    """Needs of each release line, oldest first."""
    return {
        line: DriverNeeds.model_validate(entry) for line, entry in read_data("driver_releases.yaml").items()
    }


def gate_states(line: str, gates: Mapping[str, bool]) -> dict[str, bool]:
    """Every gate of a line as the driver sees it: set itself, else by `AllAlpha` or `AllBeta`, else its default."""
    states = {}
    for name, gate in gates_of(line).items():
        by_stage = next(
            (all_ for all_, stage in _ALL.items() if stage == gate.stage and name not in _ALL), ""
        )
        states[name] = gates.get(name, gates.get(by_stage, gate.default))
    return states


def check_gates(line: str, gates: Mapping[str, bool]) -> list[Problem]:
    """Checks that the driver starts with these gates, and warns of what it warns of.

    Args:
        line: Release line, `25.12` or `0.5`.
        gates: As in the chart value `featureGates`.

    Returns:
        Problems whose paths are names of gates: `unknown-driver-gate`, `wrong-type`, `driver-gate-conflict`; the last
        is a warning where the driver starts all the same. Source: `ValidateFeatureGates` of the driver.
    """
    problems = find_unknown_gates(line, gates)
    known = gates_of(line)
    for name, value in gates.items():
        if name in known and not isinstance(value, bool):
            message = f"{value!r:.80} is neither true nor false"
            problems.append(
                Problem(path=name, code="wrong-type", message=message, hint=f"write {name}: true")
            )
    said = {name: value for name, value in gates.items() if name in known and isinstance(value, bool)}
    return [*problems, *_conflicts(line, said)]


def find_unknown_gates(line: str, names: Iterable[str]) -> list[Problem]:
    """A problem `unknown-driver-gate` for each name that no gate of the release line has; its path is the name."""
    return [_unknown(name, line) for name in names if name not in gates_of(line)]


def _conflicts(line: str, gates: Mapping[str, bool]) -> Iterator[Problem]:
    states = gate_states(line, gates)
    for rule in gate_rules_of(line):
        other = rule.needs or rule.excludes
        if not states[rule.gate] or states[other] == bool(rule.needs):
            continue
        # The one that was written is the one to change.
        path = other if other in gates and rule.gate not in gates else rule.gate
        verb = "needs" if rule.needs else "excludes"
        wanted = "true" if rule.needs else "false"
        yield Problem(
            path=path,
            code="driver-gate-conflict",
            message=f"{rule.gate} {verb} {other} in driver {line}: {rule.fails or 'its pods do not start'}",
            hint=f"write {other}: {wanted}, or {rule.gate}: false",
            severity="error" if rule.enforced else "warning",
        )


def _unknown(name: str, line: str) -> Problem:
    every = _file().gates
    by_case = {each.lower(): each for each in gates_of(line)}
    near = by_case.get(name.lower()) or nearest(name, gates_of(line))
    if not by_case:
        hint = "it has none at all, and time-slicing and MPS are always on"
    elif name in every:
        hint = f"driver {every[name].since} is the first that has it"
    elif near:
        hint = f"did you mean {near}?"
    elif name in GATES:
        hint = "it is a gate of Kubernetes: the cluster sets it, and the driver does not know it"
    else:
        hint = f"its gates are {', '.join(each for each in gates_of(line) if each not in _ALL)}"
    message = f"driver {line} has no feature gate {name[:80]}"
    return Problem(path=name, code="unknown-driver-gate", message=message, hint=hint)


@cache
def _file() -> _GateFile:
    return _GateFile.model_validate(read_data("driver_gates.yaml"))


def _covers(entry: DriverGate | GateRule, line: str) -> bool:
    return drivers()[_DRIVER].has(line, since=entry.since, until=entry.until)
