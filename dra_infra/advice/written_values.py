"""Hints that repeat the value which was written: amounts with their unit, names, versions, and the quotes of the expression."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from dra_infra.advice.comparisons import TEXT_TESTS, Test
from dra_infra.advice.findings import Finding, Place
from dra_infra.catalog.vocabulary import mig_profiles, product_memory, product_names
from dra_infra.kubernetes.api import Quantity, Semver

_MIB: Final = 2**20
_NEAR: Final = Fraction(93, 100)
"""Cards report up to seven percent less than the size that they are sold by."""
_UNIT: Final = re.compile(r"(?:^|[^a-z])([kmgt])i?b(?:$|[^a-z])|([KMGT])i?B(?:$|[^a-z])")
_UNITS: Final = {"k": "Ki", "m": "Mi", "g": "Gi", "t": "Ti"}
_MOST_GIB: Final = 4096
"""A larger number without a unit is one of mebibytes, as nvidia-smi prints them."""
_MOST_MIB: Final = _MOST_GIB * 1024
_SUFFIXED: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt])?(i?)b?", re.IGNORECASE)
_ORDERED: Final = ("==", "!=", "<", "<=", ">", ">=")

_EXAMPLE_AMOUNT: Final = 'quantity("40Gi")) >= 0'
_EXAMPLE_VERSION: Final = 'semver("9.0.0")) >= 0'
_EXAMPLE_PRODUCT: Final = '.contains("H100")'
_EXAMPLE_PROFILE: Final = '.profile == "1g.10gb"'


def say_written(finding: Finding, place: Place, tests: Iterable[Test]) -> Finding:
    """Return a finding whose hint has the value of the first test of a place in the place of an example."""
    test = next((each for each in tests if each.place == place and each.literals), None)
    if test is None:
        return finding
    text = test.literals[0].text
    hint = finding.hint
    operator = test.operator if test.operator in _ORDERED else ">="
    if _EXAMPLE_AMOUNT in hint and (amount := read_amount(place.identifier, text, operator)):
        # No card has exactly the size that it is sold by.
        operator = ">=" if operator == "==" else operator
        hint = hint.replace(_EXAMPLE_AMOUNT, f'quantity("{amount}")) {operator} 0')
    if _EXAMPLE_VERSION in hint and (version := _read_version(text)):
        hint = hint.replace(_EXAMPLE_VERSION, f'semver("{version}")) {operator} 0')
    if (
        test.kind == "string"
        and (test.operator in ("==", "in") or test.operator in TEXT_TESTS)
        and '"' not in text
    ):
        if any(text in name for name in product_names()):
            hint = hint.replace(_EXAMPLE_PRODUCT, f'.contains("{text}")')
        if text in mig_profiles():
            hint = hint.replace(_EXAMPLE_PROFILE, f'.profile == "{text}"')
    return finding._replace(hint=hint)


def read_amount(name: str, text: str, operator: str = ">=") -> str:
    """Return the quantity of memory that a number or a text means; empty where it means none.

    A number has the unit that the name of the attribute ends in, else the one that memory of a GPU has in a number of its
    size. For a lower bound it is what cards report that are sold by that size.

    Args:
        name: The attribute that was compared, such as `memoryGB`.
        text: What it was compared with: `80`, `80Gi`, `80GB`.
        operator: How it was compared.
    """
    match = _SUFFIXED.fullmatch(text.strip())
    if match is None:
        return ""
    number, unit, _ = match.groups()
    if unit is None:
        match_of_unit = _UNIT.search(name)
        unit = (match_of_unit[1] or match_of_unit[2]).lower() if match_of_unit else ""
    if not unit:
        amount = float(number)
        unit = "g" if amount <= _MOST_GIB else "m" if amount <= _MOST_MIB else ""
    written = Quantity.parse(f"{number}{_UNITS.get(unit.lower(), '')}")
    is_printed = unit == "m" and float(number) in product_memory().values()
    if operator not in ("==", ">=", ">") or (is_printed and not _UNIT.search(name)):
        return written.text
    return _reported(Fraction(written.nanos, 10**9)) or written.text


def _reported(amount: Fraction) -> str:
    """Return the whole gibibytes that the cards report which are sold by a size; empty where none are, or they report all of it."""
    sizes = [each for each in product_memory().values() if each is not None]
    near = [each for each in sizes if math.ceil(amount * _NEAR / _MIB) <= each < amount / _MIB]
    return f"{min(near) * _MIB // 2**30}Gi" if near else ""


def _read_version(text: str) -> str:
    try:
        return Semver.parse_normalized(text).text
    except ValueError:
        return ""


_QUOTED: Final = re.compile(r"\"([^\"'\\]*)\"")


def with_quotes_of(finding: Finding, expression: str) -> Finding:
    """Return a finding whose hint quotes as the expression does, so that the line can be pasted where this one stands.

    In YAML an expression with single quotes mostly stands in double quotes, which double quotes inside would end.
    """
    if "'" not in expression or '"' in expression:
        return finding
    return finding._replace(hint=_QUOTED.sub(r"'\1'", finding.hint))
