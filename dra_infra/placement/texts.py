"""How a placement is told: which devices on which nodes, or why not, and the verdict on all workloads at once.

The devices of a fleet are called as in `H100 80GB HBM3`, `MIG 1g.10gb`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Device, DeviceAttribute
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.placement import (
    DeviceChoice,
    Growth,
    GrowthAnswer,
    JointAnswer,
    JointVerdict,
    NodePlacement,
    WorkloadPlacement,
)

MAX_LOOKED_AT: Final = 64
"""Nodes of one workload whose models are all named; above that only the example's are, unless all have the same."""

MAX_COMPARED: Final = 2_000
"""Nodes of one workload that are looked through for whether all have the same models: a review asks for every workload."""

JOINT_MARKS: Final[Mapping[JointAnswer, str]] = {
    "always": "✓",
    "depends-on-order": "!",
    "never": "✗",
    "not-decided": "?",
}
"""The sign that each verdict on all workloads at once starts with."""

GROWTH_MARKS: Final[Mapping[GrowthAnswer, str]] = {
    "fits-now": "✓",
    "fits-grown": "+",
    "grows-if": "?",
    "does-not-grow": "✗",
    "never-within-limits": "✗",
    "not-decided": "?",
}
"""The sign that each verdict on the growth of node pools starts with."""

AT_MOST: Final = "With autoscalers at their most"
"""What the verdict with as many pods as autoscalers may make begins with."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"

DeviceKey = tuple[str, str, str]
"""Driver, pool, name: what makes a device unique in a cluster."""


def describe_placement(workload: WorkloadPlacement, names: DeviceNames, *, room: bool = True) -> str:
    """`4 x H100 on any of 53 nodes, e.g. gpu-node-07 (gpu-0..3); alone it has room for 212 more pods`.

    Args:
        workload: The answer for one workload.
        names: What the devices of its fleet are called.
        room: Whether to say how many more pods have room, if no other workload of the scene is placed.
    """
    if workload.verdict == "not-decided":
        return f"not decided: {_first_reason(workload)}"
    if workload.verdict == "does-not-fit":
        return f"does not fit: {_first_reason(workload)}"
    if not workload.nodes:
        return "fits"
    pods = "" if workload.replicas == 1 else f"{workload.replicas:,} pods, each "
    more = f"; alone it has room for {count_of(workload.more_pods, 'more pod')}" if room else ""
    return f"{pods}{_what_and_where(workload.nodes, names)}{more}"


def describe_joint(joint: JointVerdict, head: str = "All at once") -> Iterator[str]:
    """One line for all workloads at once, then the orders that show it, or the rest of the proof."""
    yield f"{JOINT_MARKS[joint.verdict]} {head}: {joint}"
    if joint.verdict == "always":
        return
    yield from (f"    {reason}" for reason in joint.reasons[1:])
    yield from (f"    also too little: {short}" for short in joint.shortages[1:])
    if joint.works:
        yield f"    all are placed: {joint.works}"
        if joint.fails:
            yield f"    not all are:    {joint.fails}"


def describe_growth(growth: Growth) -> str:
    """The line for all workloads on node pools that may grow."""
    return f"{GROWTH_MARKS[growth.verdict]} Growth: {growth}"


def describe_all_at_once(joint: JointVerdict | None, at_most: JointVerdict | None) -> Iterator[str]:
    """What a review tells of all workloads at once: no `always`, save of autoscalers at their most."""
    if joint is not None and joint.verdict != "always":
        yield from describe_joint(joint)
    if at_most is not None:
        yield from describe_joint(at_most, AT_MOST)


def _what_and_where(nodes: Sequence[NodePlacement], names: DeviceNames) -> str:
    example = nodes[0]
    devices = compress_names(list(dict.fromkeys(choice.device for choice in example.devices)))
    shown = f"{example.node} ({devices})" if devices else example.node
    what = names.describe(example.devices)
    if len(nodes) == 1:
        return f"{what} only on {shown}"
    where = f"on any of {len(nodes):,} nodes, e.g."
    many = len(nodes) > MAX_LOOKED_AT
    if len(names.kinds) > 1 and not (many and names.are_alike(nodes)):
        if many:
            return f"{count_of(len(example.devices), 'device')} {where} {what} on {shown}"
        what = " or ".join(dict.fromkeys(names.describe(node.devices) for node in nodes))
    return f"{what} {where} {shown}"


def _first_reason(workload: WorkloadPlacement) -> str:
    if workload.reasons:
        return str(workload.reasons[0])
    return join_words(workload.unmodelled) or "no reason known"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceNames:
    """The models of all devices of one fleet, by device."""

    models: Mapping[DeviceKey, str] = field(repr=False)
    kinds: frozenset[str] = field(init=False, repr=False)
    """All models of the fleet."""

    def __post_init__(self) -> None:
        """Gather the models once: every workload of a review asks for them."""
        object.__setattr__(self, "kinds", frozenset(self.models.values()))

    @classmethod
    def of(cls, fleet: Fleet) -> DeviceNames:
        """Read every slice once."""
        return cls(
            models={
                (slice_.spec.driver, slice_.spec.pool.name, device.name): name_model(
                    slice_.spec.driver, device
                )
                for slice_ in fleet.slices
                for device in slice_.spec.devices or ()
            }
        )

    def describe(self, devices: Iterable[DeviceChoice]) -> str:
        """`4 x H100 80GB HBM3 and 1 x MIG 1g.10gb`, with the sign for times; each device counts once."""
        keys = dict.fromkeys(device_key(choice) for choice in devices)
        counts = Counter(self.models.get(key, key[0]) for key in keys)
        return (
            join_words(f"{number} {TIMES} {model}" for model, number in counts.items()) or "no new devices,"
        )

    def are_alike(self, nodes: Sequence[NodePlacement]) -> bool:
        """True where each node gives the same models in the same order; of very many nodes that is not looked up."""
        first = self._models_on(nodes[0])
        return len(nodes) <= MAX_COMPARED and all(self._models_on(node) == first for node in nodes)

    def _models_on(self, node: NodePlacement) -> list[str]:
        return [self.models.get(device_key(choice), choice.driver) for choice in node.devices]


def device_key(choice: DeviceChoice) -> DeviceKey:
    """The device that was chosen."""
    return choice.driver, choice.pool, choice.device


def name_model(driver: str, device: Device) -> str:
    """The model that NVIDIA's driver publishes, for partitions the profile, else the driver's name."""
    product = _read(device, driver, "productName").removeprefix("NVIDIA ")
    profile = _read(device, driver, "profile")
    if profile:
        return f"MIG {profile}"
    return product or _read(device, driver, "model") or driver


def _read(device: Device, driver: str, name: str) -> str:
    attributes = device.attributes or {}
    value = attributes.get(name) or attributes.get(f"{driver}/{name}") or DeviceAttribute()
    return value.string or ""
