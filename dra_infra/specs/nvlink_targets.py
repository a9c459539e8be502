"""Which systems and products a group of GPUs joined by NVLink may land on."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dra_infra.catalog.gpus import find_products
from dra_infra.catalog.records import gpu_products
from dra_infra.catalog.systems import System, systems, systems_with
from dra_infra.errors import Problem
from dra_infra.specs.arguments import PLAIN_HINT, is_output, wrong_type
from dra_infra.specs.product_names import read_products

_MOST_NAMED = 3
"""How many systems a hint names."""


@dataclass(frozen=True, kw_only=True)
class NvlinkTarget:
    """What the user asked for with `on=` and `gpu=`.

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
        """What the user wrote, as the subject of a sentence."""
        return self.on or self.gpu

    def breaking(self, gpus: int) -> list[str]:
        """What could take a plain count of GPUs without joining them: products that servers take as cards."""
        unknown = [each for each in self.products if not systems_with(each)]
        return unknown + [
            name
            for name, system in self.systems.items()
            if system.promise_of(gpus) != "count"
            and (system.gpus_per_node is None or system.gpus_per_node >= gpus)
        ]


def read_target(on: object, gpu: object, *, gpus: int) -> tuple[list[Problem], NvlinkTarget]:
    """What `on=` and `gpu=` mean.

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
    a_node, nodes = rack.gpus_per_node or 0, rack.nodes_per_rack or 0
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
        hint = PLAIN_HINT if is_output(on) else 'write on="hgx-h100"'
        return [wrong_type("on", on, "the name of a system", hint)], {}
    if on in systems():
        return [], {on: systems()[on]}
    near = difflib.get_close_matches(on.lower()[:80], systems(), n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(systems())}"
    message = f"{on[:80]!r} is no system that is known here"
    return [Problem(path="on", code="unknown-system", message=message, hint=hint)], {}
