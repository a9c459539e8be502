"""Amounts of memory that no card has, or that a card known by that size just misses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Final

from dra_infra.catalog.drivers import DeviceType, Published
from dra_infra.catalog.vocabulary import SMALLEST_MEMORY_MIB, product_memory
from dra_infra.model.quantity import Quantity
from dra_infra.validation.advice.comparisons import Test
from dra_infra.validation.advice.findings import Finding, listed
from dra_infra.validation.advice.places import Place
from dra_infra.validation.advice.reach import is_possible
from dra_infra.validation.advice.study import Study

MEMORY: Final = Place("capacity", "gpu.nvidia.com", "memory")
_PRODUCT: Final = Place("attribute", "gpu.nvidia.com", "productName")
_MIB: Final = 2**20
_NEAR: Final = Fraction(93, 100)
"""Cards report up to seven percent less than the size that they are sold by: error correction takes its part."""
_SLIPS: Final = (1024, 1024**2, 1024**3, 1000, 1000**2, 1000**3)


def check_amounts(
    tests: Iterable[Test], studies: Sequence[Study], devices: Sequence[DeviceType]
) -> Iterator[Finding]:
    """Check what *tests* ask of a GPU's memory.

    Args:
        tests: The tests of one selector.
        studies: All selectors that the devices must pass, which may leave some cards out.
        devices: The types of devices that there may be.
    """
    for test in tests:
        if test.place == MEMORY and test.kind == "quantity" and test.operator in ("==", "<", "<=", ">", ">="):
            slip = _slip(test)
            if slip is not None:
                yield slip
            elif test.operator in ("==", ">", ">="):
                yield from _missed(test, studies, devices)


def _slip(test: Test) -> Finding | None:
    amount, written = test.values[0], test.literals[0].text
    least, most = SMALLEST_MEMORY_MIB * _MIB, max(_cards().values()) * _MIB
    if amount <= 0 or least <= amount <= most or (amount < least and test.operator in ("<", "<=")):
        return None
    meant = _meant(amount, least, most)
    if amount < least and not meant:
        return None
    if amount > most and not meant and test.operator in ("<", "<="):
        return None
    size = "less than the smallest" if amount < least else "more than the largest"
    return Finding(
        "quantity-unit-slip",
        f"{written} is {size} GPU known here has ({_gibibytes(least if amount < least else most)})",
        f'did you mean quantity("{meant}")?' if meant else "ask for less",
    )


def _meant(amount: Fraction, least: int, most: int) -> str:
    """The amount with another unit, if that is what a card has."""
    for slip in _SLIPS:
        for value in (amount * slip, amount / slip):
            if least <= value <= most and value.denominator == 1:
                return Quantity.parse(str(int(value))).canonical() if value % _MIB else _binary(int(value))
    return ""


def _binary(amount: int) -> str:
    return f"{amount // 2**30}Gi" if amount % 2**30 == 0 else f"{amount // _MIB}Mi"


def _missed(test: Test, studies: Sequence[Study], devices: Sequence[DeviceType]) -> Iterator[Finding]:
    amount = test.values[0]
    # Whole mebibytes, which a float holds exactly.
    least, most = math.ceil(amount * _NEAR / _MIB), float(amount / _MIB)
    near = {
        name: memory
        for name, memory in _cards().items()
        if least <= memory < most or (memory == most and test.operator == ">")
    }
    gpu = next(
        (device for device in devices if device.name == "gpu" and device.published("capacity", MEMORY.name)),
        None,
    )
    if gpu is None or not near:
        return
    if any(_PRODUCT in study.mentions for study in studies):
        missing = [name for name in near if is_possible(studies, _card(gpu, name))]
    else:
        # Cards differ in their names alone.
        missing = list(near) if is_possible(studies, gpu) else []
    if not missing:
        return
    smallest = min(near[name] for name in missing)
    yield Finding(
        "memory-just-missed",
        f"{test.literals[0].text} leaves out {listed([f'{name} ({_gibibytes(near[name] * _MIB)})' for name in missing])}: "
        "cards report a little less than they are sold by",
        f'write {MEMORY.cel}.compareTo(quantity("{smallest * _MIB // 2**30}Gi")) >= 0 to take them too',
    )


def _card(gpu: DeviceType, name: str) -> DeviceType:
    """The type of the devices that are cards of this product."""
    key = (gpu, name)
    if key not in _CARDS:
        product = gpu.attributes["gpu.nvidia.com/productName"]._replace(value=name)
        attributes: dict[str, Published] = {**gpu.attributes, "gpu.nvidia.com/productName": product}
        _CARDS[key] = DeviceType(gpu.driver, gpu.name, gpu.device_name, attributes, gpu.capacity)
    return _CARDS[key]


_CARDS: dict[tuple[DeviceType, str], DeviceType] = {}


@cache
def _cards() -> dict[str, int]:
    return {name: memory for name, memory in product_memory().items() if memory is not None}


def _gibibytes(amount: int) -> str:
    return f"{amount / 2**30:.1f} GiB"
