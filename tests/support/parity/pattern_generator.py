"""Regular expressions at the limits of Go's: repeat counts, how deeply they nest, escapes, groups and classes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

_COUNTS: Final = (1, 2, 999, 1000, 1001, 1002, 10000)
_COUNTED: Final = ("{0}{{{1}}}", "{0}{{{1},}}", "{0}{{0,{1}}}", "{0}{{{1},{1}}}")
_PRODUCTS: Final = (
    *((10, 100), (10, 101), (31, 32), (32, 32), (100, 10), (1000, 1), (1, 1000), (999, 1), (500, 2)),
    *((501, 2), (2, 500), (2, 501), (1000, 2)),
)
_NESTED: Final = (
    "(a{{{0}}}){{{1}}}",
    "(?:a{{{0}}}){{{1}}}",
    "((?:a{{{0}}}){{{1}}})*",
    "(a{{{0},}}){{{1},}}",
    "(?:(?:a{{0,{0}}}b){{{1}}})",
    "((a{{{0}}}){{{1}}}){{2}}",
)
_DEPTHS: Final = (490, 499, 500, 501, 997, 998, 999, 1000, 1001, 1002, 1500)
_LEVELS: Final = (
    *(("(", "a", ")"), ("(?:", "a", ")"), ("(a|", "b", ")"), ("(?:a", "", ")*"), ("(?:", "a", ")?")),
    *(("(?i:", "a", ")"), ("(?:", "a|b", ")"), ("(?:", "ab", ")+"), ("(?:(a)*", "", ")*")),
)
_CLASSES: Final = (
    "(\\pL{{{0}}})",
    "(\\PL\\pN{{{0}}})",
    "[\\pL\\pN]{{{0}}}",
    "(?i:\\pL){{{0}}}",
    "[^a]{{{0}}}",
)
_OF_CHARACTER: Final = (
    *("\\{0}", "[\\{0}]", "a\\{0}b", "(?{0})", "(?{0}:a)", "[[:{0}:]]", "a{0}{0}", "\\p{0}", "\\x{0}"),
    *("(?P<{0}>a)", "(?<{0}>a)", "[{0}", "a{{{0}}}", "[a-{0}]"),
)
_WRITTEN: Final = Path(__file__).with_name("patterns.txt")
"""Single ones, each on a line: escapes, classes and groups of every kind, and what is nearly one."""


def patterns() -> Iterator[str]:
    """Every pattern."""
    for base in ("a", "(a)", "[a-z]", "\\pL", "."):
        yield from (form.format(base, count) for form in _COUNTED for count in _COUNTS)
    yield from (form.format(*counts) for form in _NESTED for counts in _PRODUCTS)
    yield from (first * depth + inner + last * depth for first, inner, last in _LEVELS for depth in _DEPTHS)
    yield from (part * count for part in ("[a-z0-9_]", "\\pL") for count in (100, 500, 1000, 2000))
    yield from (form.format(count) for form in _CLASSES for count in (10, 33, 34, 100, 1000))
    yield from (form.format(character) for form in _OF_CHARACTER for character in map(chr, range(33, 127)))
    yield from _WRITTEN.read_text(encoding="utf-8").splitlines()
