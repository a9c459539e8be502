"""Plans for n GPUs joined by NVLink: on one board, as a fabric partition, or across the nodes of a rack.

No attribute that a driver publishes says which GPUs NVLink joins, but for the partitions of Fabric Manager. So the
promise comes from the system: where NVSwitch joins all GPUs of a node any of them will do, and across nodes the label
`nvidia.com/gpu.clique` tells. What cannot be promised is refused, with the nearest that can.

A workload must be such that its pods are one group: how many run, and what keeps them on one NVLink domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dra_infra.catalog.driver_gates import check_gates, gate_states
from dra_infra.catalog.gpus import System
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector
from dra_infra.specs.arguments import PLAIN_HINT, check_positive, is_output, wrong_type
from dra_infra.specs.compute_domains import CLIQUE_LABEL
from dra_infra.specs.nvlink_targets import (
    PARTITION_GATE,
    NvlinkTarget,
    larger_than_group,
    largest_pod,
    no_partitions_known,
    not_a_partition,
    not_measured,
    not_only_boards,
    part_of_a_node,
    read_target,
    refusal,
    too_large_or_many,
    uneven,
)
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
        """Constraints between the GPUs of a pod."""
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
    hint = f"write {path}=4"
    return check_positive(path, value, "an int", hint=hint, hint_below=hint)


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


GROUP_LABEL: Final = "dra-infra/nvlink-group"
"""Label of the pods of a group, by which they find each other."""


POD_NUMBERS: Final = ("replicas", "parallelism", "completions", "completion_mode")
"""Fields of a workload that say how many pods it runs at a time."""


def check_workload(written: Mapping[str, Any], plan: NvlinkPlan) -> list[Problem]:
    """Checks that a workload runs the pods of the group, all at once: `nvlink-group-shape`, `wrong-type`.

    A workload that is scaled to 0 is right too. Paths are fields of the workload, in snake_case.

    Args:
        written: What the workload has in `POD_NUMBERS`; None where it writes nothing.
        plan: The group.
    """
    given = {name: value for name, value in written.items() if value is not None}
    problems = [
        wrong_type(name, value, "a plain value", PLAIN_HINT)
        for name, value in given.items()
        if is_output(value) or (name != "completion_mode" and not _is_number(value))
    ]
    return problems or list(_check_numbers(given, plan))


def affinity_term(group: str) -> dict[str, Any]:
    """The term of a required podAffinity: on nodes of the NVLink domain where the other pods of the group are.

    It also keeps the first pod off nodes without the label, for the scheduler takes no node that lacks the topology key
    (`satisfyPodAffinity` of the plugin InterPodAffinity).

    Args:
        group: Value of the label `GROUP_LABEL`.
    """
    return {"labelSelector": {"matchLabels": {GROUP_LABEL: group}}, "topologyKey": CLIQUE_LABEL}


def _check_numbers(given: dict[str, Any], plan: NvlinkPlan) -> Iterator[Problem]:
    pods, size = plan.pods, plan.gpus_per_pod
    if not given:
        yield _shape(
            "",
            f"neither parallelism nor replicas is written, so it is 1 pod of {size} GPUs, and the group has {pods} pods",
            f"write parallelism={pods}, completions={pods} in a Job, replicas={pods} in other workloads",
        )
        return
    number = "replicas" if "replicas" in given else "parallelism"
    runs = given.get(number, 1)
    if runs not in (0, pods):
        yield _shape(
            number,
            f"{runs} pods of {size} GPUs are {runs * size}, and the group has {pods * size}",
            f"write {number}={pods}, or gpus={runs * size}" if runs > 1 else f"write {number}={pods}",
        )
    completions = given.get("completions")
    indexed = given.get("completion_mode") == "Indexed"
    if completions is None and not indexed:
        return
    if completions != pods:
        yield _shape(
            "completions",
            f"{'no' if completions is None else completions} completions of a group with {pods} pods, which run together",
            f"write completions={pods}",
        )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shape(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="nvlink-group-shape", message=message, hint=hint)
