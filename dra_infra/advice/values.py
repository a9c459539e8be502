"""Advice on compared values: impossible amounts of GPU memory, and operands of different types.

Amounts of memory are those that no card has, or that a card known by that size just misses. A comparison whose two
sides are of different types is false at best, else an error that ends the pod's scheduling.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Final

from dra_infra.advice.comparisons import TEXT_TESTS, Literal, Test, passes
from dra_infra.advice.findings import Finding, Place, show
from dra_infra.advice.product_names import PRODUCT, find_named
from dra_infra.advice.reach import is_possible
from dra_infra.advice.study import Study
from dra_infra.advice.written_values import read_amount
from dra_infra.catalog.drivers import DeviceType, Pins, Published
from dra_infra.catalog.vocabulary import SMALLEST_MEMORY_MIB, product_memory
from dra_infra.kubernetes.api import Quantity, Semver
from dra_infra.output.wording import join_words, nearest

MEMORY: Final = Place("capacity", "gpu.nvidia.com", "memory")
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
    amount = test.values[0]
    written = test.literals[0].text
    least = SMALLEST_MEMORY_MIB * _MIB
    most = max(_cards().values()) * _MIB
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
    least = math.ceil(amount * _NEAR / _MIB)
    most = float(amount / _MIB)
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
    if any(PRODUCT in study.mentions for study in studies):
        missing = [name for name in near if is_possible(studies, _card(gpu, name))]
    else:
        # Cards differ in their names alone.
        missing = list(near) if is_possible(studies, gpu) else []
    if not missing:
        return
    smallest = min(near[name] for name in missing)
    yield Finding(
        "memory-just-missed",
        f"{test.literals[0].text} leaves out {join_words([f'{name} ({_gibibytes(near[name] * _MIB)})' for name in missing])}: "
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


_SAID: Final = {
    "string": "a text",
    "int": "a whole number",
    "bool": "true or false",
    "version": "a version",
    "quantity": "a quantity",
}


def check_types(tests: Iterable[Test], devices: Sequence[DeviceType], pins: Pins) -> Iterator[Finding]:
    """Compare what each of *tests* compares with, with what *devices* publish and any device of theirs may."""
    for test in tests:
        yield from _check_test(test, tuple(devices), pins)


@lru_cache(maxsize=1024)
def _check_test(test: Test, devices: tuple[DeviceType, ...], pins: Pins) -> tuple[Finding, ...]:
    section, name = test.place.section, test.place.name
    types = {entry.type for device in devices if (entry := device.published(section, name))}
    if len(types) == 1 and test.kind not in types and test.operator not in ("never", "always"):
        return (_mistyped(test, types.pop()),)
    if "string" not in types:
        return ()
    places = [each.published(section, name) for each in pins.devices]
    return tuple(_check_values(test, [entry for entry in places if entry is not None]))


def _mistyped(test: Test, type_: str) -> Finding:
    written = test.literals[0]
    ends = (
        "" if test.operator in ("==", "in") else ", which ends the scheduling of the whole pod with an error"
    )
    result = "is never true" if test.operator in ("==", "in") else "cannot be done"
    if test.operator in ("!=", "not in"):
        result, ends = "is always true", ""
    return Finding(
        "cel-value-type",
        f"{test.place.name} is {_SAID[type_]}, compared with {_SAID.get(test.kind, 'another type')} {show(written.text)}: "
        f"that {result}{ends}",
        _corrected(test, type_, written),
    )


def _corrected(test: Test, type_: str, written: Literal) -> str:
    operator = test.operator if test.operator in ("==", "!=", "<", "<=", ">", ">=") else ">="
    read = test.place.cel
    if type_ == "version":
        return f'write {read}.compareTo(semver("{_version(written.text)}")) {operator} 0'
    if type_ == "quantity":
        amount = read_amount(test.place.identifier, written.text, operator) or "40Gi"
        return f'write {read}.compareTo(quantity("{amount}")) {">=" if operator == "==" else operator} 0'
    if type_ == "string":
        return f'write {read} == "{written.text}"'
    if type_ == "int" and written.text.lstrip("-").isdigit():
        return f"write {read} {operator} {written.text}"
    return f"write {read} == true" if type_ == "bool" else f"write {read} {operator} 1"


def _version(text: str) -> str:
    """*text* as a version of three parts, or an example when it is none."""
    try:
        return Semver.parse_normalized(text).text
    except ValueError:
        return "9.0.0"


def _check_values(test: Test, entries: Sequence[Published]) -> Iterator[Finding]:
    known = sorted(
        {str(value) for entry in entries for value in entry.values or filter(None, (entry.value,))}
    )
    if not known or test.kind != "string" or test.operator not in {"==", "in", *TEXT_TESTS}:
        return
    if any(passes(value, test) for value in known):
        return
    is_product = test.place.identifier == "productName"
    text = test.literals[0].text
    if is_product and test.operator in _ANCHORED and (held := find_named(text)) != ((), ()):
        yield _anchored(test, held)
        return
    near = _nearest_part(text, known) if is_product else _nearest(text, known)
    hint = f"did you mean {near!r}?" if near else _known(known, is_product=is_product)
    whole = [name for name in known if text in name]
    if is_product and whole and near not in known and test.operator in {"==", "in"}:
        # A part of a name, where only a whole one is equal.
        named, others = find_named(text)
        part = "" if others else f'.contains("{text}") in place of ==, or '
        hint = f'write {part}== "{(named or whole)[0]}"'
    yield Finding(
        "product-not-known" if is_product else "attribute-value-not-known",
        f"no {'GPU product' if is_product else test.place.name} known here "
        f"{'has a name that ' if is_product else ''}{_OPERATORS[test.operator]} {show(text)}",
        hint,
    )


_OPERATORS: Final = {
    "==": "is",
    "in": "is",
    "contains": "contains",
    "startsWith": "starts with",
    "endsWith": "ends with",
    "matches": "matches",
}


_ANCHORED: Final = frozenset({"startsWith", "endsWith"})


def _anchored(test: Test, held: tuple[tuple[str, ...], tuple[str, ...]]) -> Finding:
    """Return that a product's name does not begin or end with a text that it holds inside."""
    text = test.literals[0].text
    named, others = held
    hint = f'write .contains("{text}")'
    if named and others:
        # A text that other products hold too is no test of those that are meant.
        is_word = all(f" {text}" in each for each in named) and not any(f" {text}" in each for each in others)
        hint = f'write .contains(" {text}")' if is_word else f'write == "{named[0]}"'
    return Finding(
        "product-not-known",
        f"no GPU product known here has a name that {_OPERATORS[test.operator]} {show(text)}: "
        f"names are those of nvidia-smi, such as {show((named or others)[0])}",
        hint,
    )


def _known(known: Sequence[str], *, is_product: bool) -> str:
    if is_product:
        return "products are named as nvidia-smi prints them"
    return (
        f"known are {', '.join(known)}"
        if len(known) <= 20
        else f"known are {', '.join(known[:12])} and others"
    )


def _nearest(text: str, known: Sequence[str]) -> str:
    near = nearest(_alike(text), map(_alike, known))
    return next((each for each in known if near and _alike(each) == near), "")


def _nearest_part(text: str, known: Sequence[str]) -> str:
    """The nearest name, or part of one."""
    words = sorted(
        {word for name in known for word in name.replace("-", " ").split() if len(word) > 1} - {"NVIDIA"}
    )
    for each in (*words, *sorted(known, key=len)):
        if _alike(text) == _alike(each) or (" " in text and _alike(text) in _alike(each)):
            return each
    return _nearest(text, [*known, *words])


def _alike(text: str) -> str:
    """Letters that are taken for digits, and case, make no difference."""
    return text.lower()[:80].replace("o", "0").replace("i", "1").replace("l", "1")
