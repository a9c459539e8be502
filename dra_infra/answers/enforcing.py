"""The answer of the policy pack: what is wrong with a program as the engine runs it, and which of its workloads find no devices."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dra_infra.advice.objects import has_rules
from dra_infra.answers.checking import check
from dra_infra.answers.scene import Scene
from dra_infra.answers.settings import (
    SETTINGS,
    choose_fleet,
    find_wrong_settings,
    on_server_of,
    read_snapshot,
)
from dra_infra.answers.simulating import simulate
from dra_infra.catalog.drivers import read_pins
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.errors import InvalidSpecError, Problem, in_reading_order
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import show_steps
from dra_infra.markers import MarkerKind, find_markers, marker_kind
from dra_infra.output.wording import join_words
from dra_infra.placement.placement import REFUSED, Placement
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program.project import KUBERNETES_SETTING, driver_of
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.review.placements import find_no_order
from dra_infra.target import GATES_SETTING, ClusterTarget, check_target

PROPERTIES: Final = (*SETTINGS, "snapshot", "strict")
"""The keys of the pack's `settings`, which describe the cluster."""

_TYPES: Final[Mapping[str, type]] = {"gates": Mapping, "strict": bool}
"""Types of what is no text."""

_REASONS: Final[Mapping[MarkerKind, str]] = {
    "unknown": "known only after `pulumi up`",
    "secret": "secret",
}
_MOST_FIELDS: Final = 8

_WITHOUT_RULES: Final = frozenset(
    {"annotations", "args", "command", "data", "env", "envFrom", "image", "labels", "status", "stringData"}
)
"""Fields that no rule here is about: what they hold is often secret."""


@dataclass(frozen=True, kw_only=True)
class EnforcedCluster:
    """The cluster that a program is held to.

    Args:
        config: Settings of the stack by full key, with those of the pack.
        fleet: The hardware; None where none is named, and then nothing is placed.
        snapshot: The cluster as it was read; None where none is named.
    """

    config: Mapping[str, str] = field(default_factory=dict)
    fleet: Fleet | None = None
    snapshot: Snapshot | None = None


def read_enforced_cluster(config: Mapping[str, str], properties: Mapping[str, Any]) -> EnforcedCluster:
    """Read which cluster a program is held to.

    Args:
        config: Settings of the stack by full key.
        properties: The configuration of the pack: `kubernetes`, `gates`, `driver`, `fleet` and `snapshot`. It wins over the stack.

    Raises:
        FleetError: The fleet or snapshot cannot be read.
        InvalidSpecError: For a setting that there is not, or a minor, gate or driver release that there is not.
    """
    if wrong := [*_find_wrong_properties(properties), *find_wrong_settings(config)]:
        raise InvalidSpecError(wrong)
    named = {f"dra-infra:{name}": properties[name] for name in SETTINGS if properties.get(name)}
    if isinstance(gates := properties.get("gates"), Mapping):
        named[GATES_SETTING] = json.dumps(gates)
    settings = {**config, **named}
    if wrong := [*find_wrong_settings(settings), *_find_wrong_target(settings)]:
        raise InvalidSpecError(wrong)
    if file := properties.get("snapshot"):
        snapshot = read_snapshot(Path(file), driver=driver_of(settings))
        return EnforcedCluster(config=settings, fleet=snapshot.fleet, snapshot=snapshot)
    return EnforcedCluster(config=settings, fleet=choose_fleet(None, None, settings))


def enforce(program: Program, cluster: EnforcedCluster) -> tuple[Problem, ...]:
    """Return what is wrong with the objects of a program on a cluster.

    Args:
        program: The objects. Markers stand for values that are secret or not known yet: nothing is said against those.
        cluster: The cluster.
    """
    program = on_server_of(program, cluster.snapshot)
    scene = Scene.of(
        program,
        fleet=cluster.fleet,
        running=Running.of(cluster.snapshot, program) if cluster.snapshot else NOTHING_RUNS,
    )
    problems = [
        *check(scene, target=program.target).problems,
        *filter(None, map(_not_decided, program.objects)),
    ]
    if scene.fleet is not None:
        placement = simulate(scene).placement
        problems += _find_unplaced(placement) if placement is not None else ()
    problems += _find_not_seen(program)
    return in_reading_order(problems)


def _find_wrong_properties(properties: Mapping[str, Any]) -> Iterator[Problem]:
    for name, value in sorted(properties.items()):
        if name not in PROPERTIES:
            near = difflib.get_close_matches(name[:80], PROPERTIES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(PROPERTIES)}"
            yield Problem(path=name, code="unknown-setting", message="there is no such setting", hint=hint)
        elif not isinstance(value, _TYPES.get(name, str)):
            needed = {"gates": "a mapping of gates to true or false", "strict": "true or false"}.get(
                name, "a text"
            )
            yield Problem(
                path=name,
                code="wrong-type",
                message=f"{value!r} is not {needed}",
                hint=f'write it in quotes: "{name}": "{value}"' if name not in _TYPES else f"write {needed}",
            )


def _find_wrong_target(settings: Mapping[str, str]) -> Iterator[Problem]:
    yield from check_target(ClusterTarget(kubernetes=settings.get(KUBERNETES_SETTING)))
    try:
        read_pins(driver_of(settings))
    except InvalidSpecError as error:
        yield from error.problems


def _not_decided(item: ProgramObject) -> Problem | None:
    """Return a warning when values are secret or not known yet, so that rules cannot judge them; None when no rule would."""
    if not has_rules(item.manifest):
        return None
    fields: dict[MarkerKind, set[str]] = {}
    for steps, marker in find_markers(item.manifest):
        if _WITHOUT_RULES.isdisjoint(map(str, steps)):
            fields.setdefault(marker_kind(marker), set()).add(show_steps(steps))
    reasons = [
        f"{join_words(sorted(fields[kind]), most=_MOST_FIELDS)} {'is' if len(fields[kind]) == 1 else 'are'} {why}"
        for kind, why in _REASONS.items()
        if kind in fields
    ]
    if not reasons:
        return None
    return Problem(
        path=str(item.component or item.ref),
        code="object-not-complete",
        message=f"{' and '.join(reasons)}: what the rules say of that is not decided",
        hint="write plain values where you can",
        severity="warning",
    )


def _find_unplaced(placement: Placement) -> Iterator[Problem]:
    """Yield workloads that do not fit or are not decided, and whether all fit at once."""
    for workload in placement.workloads:
        reason = workload.reasons[0] if workload.reasons else None
        if workload.verdict == "fits" or (reason is not None and reason.code == REFUSED):
            # The error is a problem of the object itself.
            continue
        if workload.verdict == "does-not-fit":
            yield Problem(
                path=str(workload.owner),
                code="does-not-fit",
                message=f"does not fit {placement.fleet.name}: {reason or 'no reason known'}",
            )
        elif reason is not None:
            yield Problem(
                path=str(workload.owner),
                code=reason.code,
                message=f"whether it fits {placement.fleet.name} is not decided: {reason}",
                severity="warning",
            )
    if placement.growth is None or not placement.growth.fits:
        yield from find_no_order(None, placement)


def _find_not_seen(program: Program) -> Iterator[Problem]:
    """Yield what the answer says nothing about."""
    for each in program.not_seen:
        yield Problem(
            path=f"{each.what} {each.name}",
            code="objects-not-seen",
            message=f"nothing is said about its objects: {each.reason}",
            hint="render them, and check the files with dra-infra validate",
            severity="warning",
        )
