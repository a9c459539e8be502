"""Systems and products that a group of GPUs joined by NVLink may land on, and refusals of such groups.

A refusal says of a group that cannot be promised the reason, and the nearest that can.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dra_infra.catalog.gpus import System, find_products, systems, systems_with
from dra_infra.catalog.records import gpu_products
from dra_infra.errors import Problem
from dra_infra.output.wording import nearest
from dra_infra.specs.arguments import wrong_plain_type
from dra_infra.specs.products import read_products

_MOST_NAMED = 3
"""How many systems a hint names."""


@dataclass(frozen=True, kw_only=True)
class NvlinkTarget:
    """The systems and products behind `on=` and `gpu=`.

    Args:
        systems: Systems that are meant, by name.
        products: NVML names of the products that are meant.
        on: The system that the user named; empty when it is any that has the products.
        gpu: The product as the user wrote it; empty for whatever the system has.
    """

    systems: Mapping[str, System]
    products: tuple[str, ...]
    on: str = ""
    gpu: str = ""

    @property
    def written(self) -> str:
        """The words of the user, as the subject of a sentence."""
        return self.on or self.gpu

    def breaking(self, gpus: int) -> list[str]:
        """Products and systems of which a plain count of GPUs may not be joined."""
        unknown = [each for each in self.products if not systems_with(each)]
        return unknown + [
            name
            for name, system in self.systems.items()
            if system.promise_of(gpus) != "count"
            and (system.gpus_per_node is None or system.gpus_per_node >= gpus)
        ]


def read_target(on: object, gpu: object, *, gpus: int) -> tuple[list[Problem], NvlinkTarget]:
    """Reads `on=` and `gpu=`.

    Args:
        on: Name of a system, as `dra-infra catalog systems` lists them; None for any.
        gpu: Name of a product, as people write it; None for those of the system.
        gpus: How many are wanted, for hints.

    Returns:
        Problems with codes `missing-argument`, `wrong-type`, `unknown-system`, `product-not-known`,
        `nvlink-not-promised`; the target is empty where there are any.
    """
    if on is None and gpu is None:
        near = names_that_join(gpus)
        hint = f"write {on_one_of(near)}" if near else f"no system that is known here joins {gpus} GPUs"
        problem = Problem(
            path="on",
            code="missing-argument",
            message="neither a system nor a GPU is named, and NVLink differs between them",
            hint=hint,
        )
        return [problem], NvlinkTarget(systems={}, products=())
    found, named = _read_system(on)
    problems, products = ([], ()) if gpu is None else read_products(gpu, example="B200")
    problems = [*found, *problems]
    if not problems and named and gpu is not None:
        (system,) = named.values()
        products = tuple(each for each in products if each in system.gpus)
        if not products:
            message = f"{on} is built with {' or '.join(system.gpus)}, not with {gpu}"
            hint = f"leave gpu out, or write {on_one_of(names_of(find_products(str(gpu))))}"
            problems.append(Problem(path="gpu", code="nvlink-not-promised", message=message, hint=hint))
    if problems:
        return problems, NvlinkTarget(systems={}, products=())
    if not products:
        products = tuple(each for system in named.values() for each in system.gpus)
    if not named:
        named = {name: system for each in products for name, system in systems_with(each).items()}
    return [], NvlinkTarget(systems=named, products=products, on=str(on or ""), gpu=str(gpu or ""))


def largest_pod(gpus: int, rack: System) -> int | None:
    """GPUs of each pod when so many GPUs are split evenly over nodes of a rack, one pod each; None where it cannot be."""
    a_node = rack.gpus_per_node or 0
    nodes = rack.nodes_per_rack or 0
    return next((each for each in range(a_node, 0, -1) if not gpus % each and gpus // each <= nodes), None)


def names_that_join(gpus: int, like: tuple[str, ...] = ()) -> list[str]:
    """Systems that join so many GPUs: first those with a product that people call by the same name, at most three.

    Args:
        gpus: How many.
        like: NVML names of the products that are meant.
    """
    called = {short for each in like for short in gpu_products()[each].short_names}
    alike = names_of(tuple(product for short in sorted(called) for product in find_products(short)))
    good = [
        name
        for name, system in systems().items()
        if system.promise_of(gpus) == "count" or largest_pod(gpus, system) is not None
    ]
    # Of what is only likely, nothing is recommended while there is better.
    good.sort(
        key=lambda name: (name not in alike, not {"joined", "promise"}.isdisjoint(systems()[name].uncertain))
    )
    return [each for each in good if each in alike][:_MOST_NAMED] or good[:_MOST_NAMED]


def names_of(products: tuple[str, ...]) -> list[str]:
    """The systems that are built with one of *products*."""
    return list(dict.fromkeys(name for each in products for name in systems_with(each)))


def on_one_of(names: Iterable[str]) -> str:
    """How to name one of these systems."""
    return " or ".join(f'on="{name}"' for name in names)


def _read_system(on: object) -> tuple[list[Problem], dict[str, System]]:
    if on is None:
        return [], {}
    if not isinstance(on, str):
        return [wrong_plain_type("on", on, "the name of a system", 'write on="hgx-h100"')], {}
    if on in systems():
        return [], {on: systems()[on]}
    near = nearest(on.lower(), systems())
    hint = f"did you mean {near!r}?" if near else f"known are {', '.join(systems())}"
    message = f"{on[:80]!r} is no system that is known here"
    return [Problem(path="on", code="unknown-system", message=message, hint=hint)], {}


PARTITION_GATE: Final = "FabricManagerPartitioning"
"""With it every claim of whole GPUs must be exactly one partition, and GPUs tell the partitions that they are in."""


def not_measured(having: Mapping[str, System], facts: tuple[str, ...], gpus: int) -> Iterator[Problem]:
    """A warning when all that is known of these systems is likely, and no more."""
    if having and all(set(facts) & set(each.uncertain) for each in having.values()):
        yield Problem(
            path="gpus",
            code="nvlink-not-measured",
            message=f"that {gpus} GPUs of {' and '.join(having)} are joined this way is likely, and was not measured",
            hint="look at `nvidia-smi topo -m` on such a node",
            severity="warning",
        )


def part_of_a_node(size: int, best: int | None, rack: System) -> Problem:
    """A warning: pods that leave GPUs of their node over."""
    a_node = rack.gpus_per_node
    better = (
        f"write gpus_per_pod={best}"
        if best and best > size
        else f"whole nodes are a multiple of {a_node} GPUs"
    )
    return Problem(
        path="gpus_per_pod",
        code="nvlink-group-shape",
        message=f"each pod takes a node of {a_node} GPUs and uses {size}: channel 0 of a node, by which it joins the "
        "ComputeDomain, goes to one claim",
        hint=f"{better}; several pods of one node must share one hand-made ResourceClaim",
        severity="warning",
    )


def larger_than_group(gpus: int, gpus_per_pod: int) -> Problem:
    """A pod has more than the group."""
    return Problem(
        path="gpus_per_pod",
        code="nvlink-group-shape",
        message=f"a pod of {gpus_per_pod} GPUs has more than the {gpus} of its group",
        hint="leave gpus_per_pod out, or write a larger number of gpus",
    )


def uneven(target: NvlinkTarget, gpus: int, gpus_per_pod: int | None, rack: System) -> Problem:
    """The group is no whole number of pods of one size, of which a rack has room for one on each node."""
    a_node = rack.gpus_per_node or 1
    nodes = rack.nodes_per_rack or 1
    sizes = range(1, a_node + 1) if gpus_per_pod is None else (gpus_per_pod,)
    works = sorted({size * pods for size in sizes for pods in range(1, nodes + 1)})
    near = [*[each for each in works if each < gpus][-1:], *[each for each in works if each > gpus][:1]]
    pods = f"pods of {gpus_per_pod}" if gpus_per_pod else "equal pods"
    return Problem(
        path="gpus",
        code="nvlink-group-shape",
        message=f"{gpus} GPUs are no whole number of {pods}, one on each of at most {nodes} nodes of {target.written} "
        f"with {a_node} GPUs",
        hint=f"write {' or '.join(f'gpus={each}' for each in near)}",
    )


def too_large_or_many(target: NvlinkTarget, gpus: int, size: int, best: int | None, rack: System) -> Problem:
    """Pods that fit no node, or more pods than a rack has nodes."""
    if size > (rack.gpus_per_node or 0):
        message = f"a pod of {size} GPUs fits no node of {target.written}, which has {rack.gpus_per_node}"
    else:
        message = f"{gpus // size} pods of {size} need as many nodes, and NVLink joins {rack.nodes_per_rack} of {target.written}"
    hint = f"write gpus_per_pod={best}" if best else "leave gpus_per_pod out"
    return _refused("gpus_per_pod", message, hint)


def not_only_boards(target: NvlinkTarget, gpus: int, breaking: list[str]) -> Problem:
    """The product is sold as cards too."""
    good = [name for name, each in target.systems.items() if each.promise_of(gpus) == "count"]
    message = (
        f"{target.gpu} is also {' and '.join(breaking)}, where nothing promises that {gpus} GPUs are joined"
    )
    return _refused("gpu", message, f"write {on_one_of(good)}")


def not_a_partition(target: NvlinkTarget, gpus: int) -> Problem:
    """The number of GPUs is no size of a partition."""
    sizes = sorted({size for each in target.systems.values() for size in each.partitions})
    if not sizes:
        return no_partitions_known(target)
    near = [*[each for each in sizes if each < gpus][-1:], *[each for each in sizes if each > gpus][:1]]
    message = (
        f"with the driver's gate {PARTITION_GATE} a claim must be exactly one partition, and {gpus} GPUs are none: "
        f"partitions have {', '.join(map(str, sizes))}"
    )
    return _refused("gpus", message, f"write {' or '.join(f'gpus={each}' for each in near)}")


def no_partitions_known(target: NvlinkTarget) -> Problem:
    """The gate is on, and nobody knows what it does there."""
    message = (
        f"with the driver's gate {PARTITION_GATE} a claim must be exactly one partition, and it is not known that "
        f"Fabric Manager makes any on {target.written}"
    )
    hint = f'write driver_gates={{"{PARTITION_GATE}": False}} where the driver of these nodes has it off'
    return _refused("driver_gates", message, hint)


def refusal(target: NvlinkTarget, gpus: int) -> Problem:
    """Why nothing promises the group, with the nearest that something does."""
    known = [each for each in target.systems.values() if each.promise != "none"]
    joined = max((each.joined for each in known), default=1)
    most = max((each.gpus_per_rack or each.joined for each in known), default=1)
    if known and gpus <= joined:
        reason = (
            f"{target.written} joins no nodes, so the group is one pod: a ComputeDomain gains nothing there"
        )
        return _refused("gpus_per_pod", reason, f"write gpus_per_pod={gpus}, or leave it out")
    if not target.systems:
        reason = f"nothing is known of how {' and '.join(target.products)} are joined"
    elif not known:
        reason = "; ".join(f"{name}: {each.why}" for name, each in target.systems.items())
    elif most > joined:
        reason = f"a rack of {target.written} joins {most}, and NVLink ends there"
    else:
        reason = f"{target.written} joins the {joined} of a node, and no nodes: a ComputeDomain gains nothing there"
    ways = [f"write gpus={most}"] if known else []
    if others := names_that_join(gpus, target.products):
        ways.append(f"write {on_one_of(others)}")
    if not known:
        ways.append(f"where NVLink does not matter dra.GpuClaimTemplate(..., count={gpus})")
    message = f"{gpus} GPUs joined by NVLink cannot be promised: {reason}"
    return _refused("gpus", message, ", or ".join(ways).replace(", or write", ", or"))


def _refused(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="nvlink-not-promised", message=message, hint=hint)
