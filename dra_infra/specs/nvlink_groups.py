"""How n GPUs joined by NVLink can be promised: on one board, as a fabric partition, or across the nodes of a rack.

No attribute that a driver publishes says which GPUs NVLink joins, but for the partitions of Fabric Manager. So the
promise comes from the system: where NVSwitch joins all GPUs of a node any of them will do, and across nodes the label
`nvidia.com/gpu.clique` tells. What cannot be promised is refused, with the nearest that can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dra_infra.catalog.driver_gates import check_gates, gate_states
from dra_infra.catalog.systems import System
from dra_infra.cel import Selector, gpu
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.specs.arguments import PLAIN_HINT, is_output, wrong_type
from dra_infra.specs.nvlink_refusals import (
    PARTITION_GATE,
    larger_than_group,
    no_partitions_known,
    not_a_partition,
    not_measured,
    not_only_boards,
    part_of_a_node,
    refusal,
    too_large_or_many,
    uneven,
)
from dra_infra.specs.nvlink_targets import NvlinkTarget, largest_pod, read_target
from dra_infra.specs.requests import Constraint, MatchAttribute

NvlinkPromise = Literal["count", "partition", "compute-domain"]


@dataclass(frozen=True, kw_only=True)
class NvlinkPlan:
    """How a group is made.

    Args:
        promise: A plain `count` of GPUs of a node, a fabric `partition`, or pods in a `compute-domain`.
        pods: Pods of the group, each on a node of its own.
        gpus_per_pod: GPUs of each.
        products: NVML names of what will do.
        warnings: What is worth knowing, and no reason to stop.
    """

    promise: NvlinkPromise
    pods: int
    gpus_per_pod: int
    products: tuple[str, ...]
    warnings: tuple[Problem, ...] = ()

    @property
    def select(self) -> Selector:
        """True for the GPUs that will do: no cards of a similar name."""
        products = sorted(self.products)
        return gpu.product == products[0] if len(products) == 1 else gpu.product.one_of(*products)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the GPUs of a pod have in common."""
        if self.promise != "partition":
            return ()
        return (MatchAttribute(f"gpu.nvidia.com/partition{self.gpus_per_pod}"),)


def plan_group(
    gpus: Any,
    *,
    on: Any = None,
    gpu: Any = None,
    gpus_per_pod: Any = None,
    line: str,
    gates: Any = None,
) -> NvlinkPlan:
    """How *gpus* GPUs joined by NVLink are promised.

    Args:
        gpus: GPUs of the group.
        on: Name of a system, `gb200-nvl72`.
        gpu: Name of a product, `B200`.
        gpus_per_pod: GPUs of each pod; None for one pod where a node has enough, else as many as divide the group.
        line: Release line of the NVIDIA driver.
        gates: Feature gates that the driver is given; None for its defaults.

    Raises:
        InvalidSpecError: With codes `wrong-type`, `count-below-one`, `nvlink-group-shape`, `nvlink-not-promised`, those
            of `read_target` and of `check_gates`.
    """
    problems = list(_check_number("gpus", gpus))
    if gpus_per_pod is not None:
        problems += _check_number("gpus_per_pod", gpus_per_pod)
    states, found = _read_gates(line, gates)
    problems += found
    known = not any(each.path.startswith("gpus") for each in problems)
    found, target = read_target(on, gpu, gpus=gpus if known else 1)
    problems += found
    if known and gpus_per_pod is not None and gpus_per_pod > gpus:
        problems.append(larger_than_group(gpus, gpus_per_pod))
    if problems:
        raise InvalidSpecError(problems)
    racks = [each for each in target.systems.values() if gpus <= (each.gpus_per_rack or 0)]
    if gpus == 1 or (gpus_per_pod in (None, gpus) and _joined_on_a_node(target, gpus)):
        plan = _plan_node(target, gpus, partitioned=states.get(PARTITION_GATE, False))
    elif not racks:
        raise InvalidSpecError([refusal(target, gpus)])
    elif states.get(PARTITION_GATE):
        raise InvalidSpecError([no_partitions_known(target)])
    else:
        plan = _plan_rack(target, racks[0], gpus, gpus_per_pod)
    return plan


def _joined_on_a_node(target: NvlinkTarget, gpus: int) -> bool:
    return any(each.promise_of(gpus) == "count" for each in target.systems.values())


def _plan_node(target: NvlinkTarget, gpus: int, *, partitioned: bool) -> NvlinkPlan:
    if partitioned and gpus > 1:
        # Devices without the attribute never pass, so cards of a similar name need no other care.
        return _plan_partition(target, gpus)
    if gpus > 1 and not target.on and (breaking := target.breaking(gpus)):
        raise InvalidSpecError([not_only_boards(target, gpus, breaking)])
    joining = {name: each for name, each in target.systems.items() if each.promise_of(gpus) == "count"}
    warnings = tuple(not_measured(joining, ("joined", "promise"), gpus)) if gpus > 1 else ()
    return NvlinkPlan(promise="count", pods=1, gpus_per_pod=gpus, products=target.products, warnings=warnings)


def _plan_partition(target: NvlinkTarget, gpus: int) -> NvlinkPlan:
    having = {name: each for name, each in target.systems.items() if gpus in each.partitions}
    if not having:
        raise InvalidSpecError([not_a_partition(target, gpus)])
    products = tuple(each for each in target.products if any(each in other.gpus for other in having.values()))
    return NvlinkPlan(
        promise="partition",
        pods=1,
        gpus_per_pod=gpus,
        products=products,
        warnings=tuple(not_measured(having, ("partitions",), gpus)),
    )


def _plan_rack(target: NvlinkTarget, rack: System, gpus: int, gpus_per_pod: int | None) -> NvlinkPlan:
    """Pods of one size in a ComputeDomain; the label of the clique keeps them where NVLink joins the nodes."""
    best = largest_pod(gpus, rack)
    size = gpus_per_pod or best
    if size is None or (size <= (rack.gpus_per_node or 0) and gpus % size):
        raise InvalidSpecError([uneven(target, gpus, gpus_per_pod, rack)])
    if size > (rack.gpus_per_node or 0) or gpus // size > (rack.nodes_per_rack or 0):
        raise InvalidSpecError([too_large_or_many(target, gpus, size, best, rack)])
    return NvlinkPlan(
        promise="compute-domain",
        pods=gpus // size,
        gpus_per_pod=size,
        products=tuple(each for each in target.products if each in rack.gpus),
        warnings=() if size == rack.gpus_per_node else (part_of_a_node(size, best, rack),),
    )


def _check_number(path: str, value: object) -> Iterator[Problem]:
    # bool is an int in Python, and True GPUs are never meant.
    if not isinstance(value, int) or isinstance(value, bool):
        yield wrong_type(path, value, "an int", PLAIN_HINT if is_output(value) else f"write {path}=4")
    elif value < 1:
        yield Problem(
            path=path, code="count-below-one", message=f"{value} is below 1", hint=f"write {path}=4"
        )


def _read_gates(line: str, gates: object) -> tuple[Mapping[str, bool], list[Problem]]:
    """Every gate as the driver sees it, and what is wrong with those that are given."""
    if gates is None:
        return gate_states(line, {}), []
    if not isinstance(gates, Mapping):
        hint = f'write driver_gates={{"{PARTITION_GATE}": True}}'
        return {}, [wrong_type("driver_gates", gates, "a mapping of gates to True or False", hint)]
    named = {str(name): value for name, value in gates.items()}
    wrong = [each.below("driver_gates") for each in check_gates(line, named) if each.severity == "error"]
    return ({} if wrong else gate_states(line, named)), wrong
