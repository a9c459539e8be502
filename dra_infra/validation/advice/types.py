"""Comparisons whose two sides are of different types: false at best, else an error that ends the pod's scheduling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from dra_infra.catalog.drivers import DeviceType, Published
from dra_infra.catalog.pins import Pins
from dra_infra.model.semver import Semver
from dra_infra.validation.advice.comparisons import TEXT_TESTS, Literal, Test, passes
from dra_infra.validation.advice.findings import Finding, show

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
        return f'write {read}.compareTo(quantity("40Gi")) {operator} 0'
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
    near = _nearest_part(text, known) if is_product else _nearest(text, known)
    hint = f"did you mean {near!r}?" if near else _known(known, is_product=is_product)
    whole = [name for name in known if text in name]
    if is_product and whole and near not in known and test.operator in {"==", "in"}:
        # A part of a name, where only a whole one is equal.
        hint = f'write .contains("{text}") in place of ==, or == "{whole[0]}"'
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


def _known(known: Sequence[str], *, is_product: bool) -> str:
    if is_product:
        return "products are named as nvidia-smi prints them"
    return (
        f"known are {', '.join(known)}"
        if len(known) <= 20
        else f"known are {', '.join(known[:12])} and others"
    )


def _nearest(text: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(_alike(text), [_alike(each) for each in known], n=1)
    return next((each for each in known if near and _alike(each) == near[0]), "")


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
