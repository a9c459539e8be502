"""Small adversarial clusters and claims for the allocator, each a question to the judge in `tests/e2e/judges`.

Everything is drawn from one `random.Random`: a seeded one for the many cases of a run, Hypothesis' own for a case that
shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from dra_infra.kubernetes.api import GATES, Release
from dra_infra.kubernetes.api.patches import COMPARED_PATCHES
from dra_infra.kubernetes.scheduler.allocator import Variant
from dra_infra.kubernetes.scheduler.allocator.variants import asked_features, choose_variant
from tests.support.allocator.claims import CLASSES, claims_of
from tests.support.allocator.fleets import allocated_of, slices_of

Drawn = TypeVar("Drawn")

FEW_RUNS: Final = 5
"""Usually enough to meet our answer among those of a random order."""
MANY_RUNS: Final = 50
"""What is run before our answer counts as none of them."""
MINORS: Final = ("1.34", "1.35", "1.36", "1.37")
BASIC: Final = ("DRAAdminAccess", "DRAPrioritizedList", "DRAPartitionableDevices", "DRADeviceTaints")
_PAIR: Final = ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus")
_CEL: Final = ("DRAConsumableCapacity", "DRAListTypeAttributes")
_ALPHAS: Final = (
    "DRAListTypeAttributes",
    "DRAOptionalNodeOperations",
    "DRADerivedAttributes",
    "DRADeviceCompatibilityGroups",
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question, and the variant of ours that answers it."""

    minor: str
    release: Release
    variant: Variant
    asked: frozenset[str]
    slices: list[dict[str, Any]]
    classes: list[dict[str, Any]]
    claims: list[dict[str, Any]]
    nodes: list[dict[str, Any]]
    allocated: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    @property
    def is_ordered(self) -> bool:
        """Whether upstream always gives one answer: pools and slices are sorted, or each node has one of them."""
        if self.variant.sorts_pools:
            return True
        places = [slice_["spec"].get("nodeName") for slice_ in self.slices]
        is_local = None not in places and not any("sharedCounters" in each["spec"] for each in self.slices)
        return len(places) <= 1 or (is_local and len(set(places)) == len(places))

    def question(self, *, runs: int = FEW_RUNS) -> dict[str, Any]:
        """As the judge reads it.

        Args:
            runs: How often a case is run that has several answers.
        """
        return {
            "slices": self.slices,
            "classes": self.classes,
            "claims": self.claims,
            "nodes": self.nodes,
            "allocated": self.allocated,
            "features": sorted(self.asked),
            "cel": [gate for gate in _CEL if gate in self.release.gates],
            "runs": 1 if self.is_ordered else runs,
        }


def release_of(minor: str, gates: Sequence[str], *, patch: str = "") -> Release:
    """A release with these gates on, of those that it has.

    Args:
        minor: The minor.
        gates: The gates.
        patch: The patch; empty for the one that the judge of the minor is built from.
    """
    known = frozenset(gate for gate in gates if minor in GATES.get(gate, {}))
    return Release(minor=minor, gates=known, patch=patch or COMPARED_PATCHES[minor])


def defaults_of(minor: str) -> tuple[str, ...]:
    """The gates that a minor has on by default."""
    return tuple(gate for gate, states in GATES.items() if minor in states and states[minor].default)


def everything_of(minor: str) -> tuple[str, ...]:
    """All gates of a minor."""
    return tuple(gate for gate, states in GATES.items() if minor in states)


def draw_case(random: Random, minor: str) -> Case:
    """One case for one minor."""
    release = release_of(minor, _draw_gates(random, minor))
    asked = asked_features(release)
    if minor == "1.36" and "DRAListTypeAttributes" in release.gates and random.random() < 0.7:
        # The scheduler of 1.36 never says so, but the code is there.
        asked |= {"DRAListTypeAttributes"}
    variant = choose_variant(release, asked=asked)
    nodes = [
        {"metadata": {"name": f"n{number}", "labels": {"zone": random.choice("aab")}}, "status": {}}
        for number in range(random.choice((1, 1, 2)))
    ]
    if variant.features.optional_node_operations and random.random() < 0.7:
        nodes[0]["status"] = {"declaredFeatures": ["DRAOptionalNodeOperations"]}
    if random.random() < 0.03:
        slices, claims = _limits(random, variant)
        allocated: dict[str, list[dict[str, Any]]] = {}
    else:
        slices = slices_of(random, variant, len(nodes))
        claims = claims_of(random, variant)
        allocated = allocated_of(random, slices, variant)
    return Case(
        minor=minor,
        release=release,
        variant=variant,
        asked=asked,
        slices=slices,
        classes=CLASSES,
        claims=claims,
        nodes=nodes,
        allocated=allocated,
    )


def _draw_gates(random: Random, minor: str) -> Sequence[str]:
    everything, defaults = everything_of(minor), defaults_of(minor)
    is_old = minor in ("1.34", "1.35")
    choices: tuple[tuple[int, Callable[[], Sequence[str]]], ...] = (
        (15 if is_old else 40, lambda: defaults),
        (45 if is_old else 30, lambda: everything),
        (20 if is_old else 6, lambda: BASIC),
        (0 if is_old else 12, lambda: [*defaults, random.choice(_ALPHAS)]),
        (12, lambda: [gate for gate in everything if random.random() < 0.6]),
        (3, list),
    )
    (chosen,) = random.choices([each for _, each in choices], [weight for weight, _ in choices])
    return chosen()


def _limits(random: Random, variant: Variant) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """More devices than a result holds; never too few, or both sides would search for ever."""
    devices = [{"name": f"d{number:02}"} for number in range(70)]
    slices = [
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "a.example.com",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "nodeName": "n0",
                "devices": devices,
            },
        }
    ]
    exact = {"deviceClassName": "any", "allocationMode": "ExactCount"}
    requests: list[dict[str, Any]] = []
    for number in range(random.choice((1, 2, 2, 3))):
        count = random.choice((1, 3, 16, 17, 31, 32, 33))
        if variant.features.prioritized_list and random.random() < 0.6:
            counts = [random.choice((1, 2, 16, 20, 30, 33, 40)) for _ in range(random.choice((1, 2, 3)))]
            entries = [{"name": f"s{index}", **exact, "count": each} for index, each in enumerate(counts)]
            requests.append({"name": f"r{number}", "firstAvailable": entries})
        else:
            requests.append({"name": f"r{number}", "exactly": {**exact, "count": count}})
    if random.random() < 0.2:
        requests = [{"name": "all", "exactly": {"deviceClassName": "any", "allocationMode": "All"}}]
    claim = {"metadata": {"name": "c0", "namespace": "ml"}, "spec": {"devices": {"requests": requests}}}
    return slices, [claim]


def to_line(case: Case) -> dict[str, Any]:
    """A case as JSON data, without the classes that all cases have."""
    return {
        "minor": case.minor,
        "gates": sorted(case.release.gates),
        "asked": sorted(case.asked),
        "nodes": case.nodes,
        "slices": case.slices,
        "allocated": case.allocated,
        "claims": case.claims,
    }


def from_line(line: dict[str, Any]) -> Case:
    """What `to_line` wrote."""
    return make_case(
        line["minor"],
        gates=line["gates"],
        asked=frozenset(line["asked"]),
        nodes=line["nodes"],
        slices=line["slices"],
        allocated=line["allocated"],
        claims=line["claims"],
    )


def make_case(
    minor: str,
    *,
    slices: list[dict[str, Any]],
    claims: list[dict[str, Any]],
    gates: Sequence[str] | None = None,
    asked: frozenset[str] | None = None,
    nodes: list[dict[str, Any]] | None = None,
    classes: list[dict[str, Any]] | None = None,
    allocated: dict[str, list[dict[str, Any]]] | None = None,
) -> Case:
    """A case by hand: all gates of the minor, a node `n0`, nothing allocated."""
    release = release_of(minor, everything_of(minor) if gates is None else gates)
    asked = asked_features(release) if asked is None else asked
    return Case(
        minor=minor,
        release=release,
        variant=choose_variant(release, asked=asked),
        asked=asked,
        slices=slices,
        classes=CLASSES if classes is None else classes,
        claims=claims,
        nodes=[{"metadata": {"name": "n0", "labels": {}}}] if nodes is None else nodes,
        allocated=allocated or {},
    )
