"""Semver: a semantic version 2.0.0 with its order.

A port of the parser of `github.com/blang/semver/v4`, which the API server and the scheduler use, with its texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache, total_ordering
from typing import Final

MAX_NUMBER: Final = 2**64 - 1
_MOST_DIGITS: Final = len(str(MAX_NUMBER))

_DIGITS = re.compile(r"[0-9]*", re.ASCII)
_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*", re.ASCII)


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver:
    """A version; build metadata is kept but plays no part in order or equality.

    Args:
        text: As it was written.
        numbers: Major, minor and patch.
        prerelease: The parts behind `-`; numeric ones are ints. Empty for a release.
        build: The parts behind `+`.
    """

    text: str
    numbers: tuple[int, int, int]
    prerelease: tuple[int | str, ...] = ()
    build: tuple[str, ...] = field(default=())

    @classmethod
    def parse(cls, text: str) -> Semver:
        """Read a version of three parts.

        Raises:
            ValueError: With the Go library's text, when *text* is not one.
        """
        return _parse(text)

    @classmethod
    def parse_normalized(cls, text: str) -> Semver:
        """Read a version with a `v` in front, fewer than three parts or leading zeros, as `semver(text, true)` does.

        Raises:
            ValueError: With the Go library's text, when *text* is not a version even so.
        """
        return _parse(_normalize(text))

    @property
    def precedence(self) -> tuple[tuple[int, int, int], bool, tuple[tuple[bool, int, str], ...]]:
        """Sorts versions by semver.org section 11; equal exactly where the versions are."""
        parts = tuple(
            (True, 0, part) if isinstance(part, str) else (False, part, "") for part in self.prerelease
        )
        return self.numbers, not parts, parts

    def __eq__(self, other: object) -> bool:
        return self.precedence == other.precedence if isinstance(other, Semver) else NotImplemented

    def __lt__(self, other: Semver) -> bool:
        return self.precedence < other.precedence

    def __hash__(self) -> int:
        return hash(self.precedence)

    def __str__(self) -> str:
        return self.text


@lru_cache(maxsize=4096)
def _parse(text: str) -> Semver:
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major = _number(parts[0], "Major")
    minor = _number(parts[1], "Minor")
    rest, plus, build = parts[2].partition("+")
    patch_text, dash, prerelease = rest.partition("-")
    return Semver(
        text=text,
        numbers=(major, minor, _number(patch_text, "Patch")),
        prerelease=tuple(map(_prerelease_part, prerelease.split("."))) if dash else (),
        build=tuple(map(_build_part, build.split("."))) if plus else (),
    )


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in {name.lower()} number {_quote(text)}")
    if _has_leading_zeroes(text):
        raise ValueError(f"{name} number must not contain leading zeroes {_quote(text)}")
    return _parse_uint(text)


def _prerelease_part(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if _has_leading_zeroes(text):
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {_quote(text)}")
        return _parse_uint(text)
    if not _ALPHANUMERIC.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in prerelease {_quote(text)}")
    return text


def _build_part(text: str) -> str:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _ALPHANUMERIC.fullmatch(text):
        raise ValueError(f"Invalid character(s) found in build meta data {_quote(text)}")
    return text


def _has_leading_zeroes(text: str) -> bool:
    return len(text) > 1 and text.startswith("0")


def _parse_uint(text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    # No text has leading zeros here, and Python reads no number of thousands of digits.
    if len(text) > _MOST_DIGITS or (value := int(text)) > MAX_NUMBER:
        raise ValueError(f"strconv.ParseUint: parsing {_quote(text)}: value out of range")
    return value


def _quote(text: str) -> str:
    # Only needed on the way to an error, and slow to import.
    import json

    return json.dumps(text, ensure_ascii=False)


def _normalize(text: str) -> str:
    """Port of normalizeAndParse in k8s.io/apiserver/pkg/cel/library/semverlib.go."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else f"0{stripped}"
