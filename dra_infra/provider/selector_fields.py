"""Selectors as fields, for languages without operators on attributes: `match: {product: H100, memoryAtLeast: 79Gi}`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from dra_infra.errors import Problem, SelectorError
from dra_infra.selectors.any_attribute import attribute, capacity
from dra_infra.selectors.gpu_selectors import gpu
from dra_infra.selectors.selector import Selector, driver


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of `match`.

    Args:
        kind: A `text`, a `number`, or a mapping by the full name of an attribute or capacity: of `texts`, or of any `values`.
        meaning: What the field tests, for users.
        test: Makes the selector of a value; of a mapping it is called with each name and value.
    """

    kind: Literal["text", "number", "texts", "values"]
    meaning: str
    test: Callable[..., Selector]


FIELDS: Final[Mapping[str, Field]] = {
    "driver": Field(kind="text", meaning="Name of the driver of the device.", test=driver),
    "product": Field(
        kind="text",
        meaning="A part of the product's name: `H100`, `A100-SXM4-80GB`.",
        test=gpu.product.contains,
    ),
    "architecture": Field(
        kind="text",
        meaning="The architecture: `Ampere`, `Hopper`, `Blackwell`.",
        test=lambda value: gpu.architecture == value,
    ),
    "brand": Field(
        kind="text", meaning="The brand: `Nvidia`, `Tesla`.", test=lambda value: gpu.brand == value
    ),
    "type": Field(
        kind="text",
        meaning="Type of the device: `gpu`, `mig` or `vfio`.",
        test=lambda value: gpu.type == value,
    ),
    "profile": Field(
        kind="text", meaning="The MIG profile: `1g.10gb`.", test=lambda value: gpu.profile == value
    ),
    "uuid": Field(kind="text", meaning="UUID of the device.", test=lambda value: gpu.uuid == value),
    "memory_at_least": Field(
        kind="text",
        meaning="Least memory, as NVML reports it, a little below the nominal size: `79Gi` for a card of 80 GB.",
        test=lambda value: gpu.memory >= value,
    ),
    "compute_capability_at_least": Field(
        kind="text",
        meaning="Least CUDA compute capability: `9.0.0` for Hopper.",
        test=lambda value: gpu.compute_capability >= value,
    ),
    "driver_version_at_least": Field(
        kind="text",
        meaning="Least version of the kernel driver: `580.126.20`.",
        test=lambda value: gpu.driver_version >= value,
    ),
    "cuda_version_at_least": Field(
        kind="text",
        meaning="Least CUDA version that the kernel driver runs: `13.0.0`.",
        test=lambda value: gpu.cuda_version >= value,
    ),
    "numa_node": Field(kind="number", meaning="The NUMA node.", test=lambda value: gpu.numa_node == value),
    "attributes": Field(
        kind="values",
        meaning="Attributes of any driver by their full name, with the value that they have: `{gpu.example.com/index: 0}`.",
        test=lambda name, value: attribute(name) == value,
    ),
    "capacity_at_least": Field(
        kind="texts",
        meaning="Capacities of any driver by their full name, with the least amount: `{gpu.example.com/memory: 40Gi}`.",
        test=lambda name, value: capacity(name) >= value,
    ),
}
"""What each field tests. Tests are joined in this order, which decides the bytes of the expression."""


def selector_of(fields: Mapping[str, Any]) -> tuple[Selector | None, list[Problem]]:
    """Return the selector of a `match`; None without fields, and for fields with problems.

    Args:
        fields: Values by the name of a field in `FIELDS`.

    Returns:
        The selector, and problems at the names of fields: `selector-type`, `selector-invalid-value`.
    """
    tests: list[Selector] = []
    problems: list[Problem] = []
    for path, arguments, field in _tests_of(fields):
        try:
            tests.append(field.test(*arguments))
        except SelectorError as error:
            problems += [
                Problem(path=path, code=each.code, message=each.message, hint=each.hint)
                for each in error.problems
            ]
    return (functools.reduce(operator.and_, tests) if tests and not problems else None), problems


def _tests_of(fields: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Any, ...], Field]]:
    """Yield a path, the arguments of the test, and its field, in the order of `FIELDS`."""
    for name, field in FIELDS.items():
        value = fields.get(name)
        if value is None:
            continue
        if field.kind in ("texts", "values") and isinstance(value, Mapping):
            for key in sorted(value):
                yield f"{name}[{key!r}]", (key, value[key]), field
        else:
            yield name, (value,), field
