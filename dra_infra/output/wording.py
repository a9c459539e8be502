"""Small pieces of sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def count_of(number: int, noun: str, *, zero: str = "no") -> str:
    """`1 pod`, `3 pods`, `2 policies`, `no pods`.

    Args:
        number: How many.
        noun: What is counted, in the singular.
        zero: What stands for 0.
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
    return f"{number:,} {noun}" if number == 1 else f"{f'{number:,}' if number else zero} {plural}"


def join_words(words: Iterable[object], *, most: int = 4) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b, c, d and 3 more`."""
    shown = [str(word) for word in words]
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most:,} more"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known name that a misspelt one is most like, by its first 80 characters; empty where none is near."""
    return next(iter(difflib.get_close_matches(name[:80], list(known), n=1, cutoff=cutoff)), "")


def nearest_in_domain(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """Return the known name that a misspelt one with a domain is most like; empty where none is near.

    The part before the first dot counts by itself: `nic.example.com` is not meant by `mig.example.com`.
    """
    own = name.partition(".")[0]
    alike = [each for each in known if nearest(own, [each.partition(".")[0]], cutoff=cutoff)]
    return nearest(name, alike, cutoff=cutoff)


def compress_names(names: Sequence[str], *, most: int = 6, of_nodes: bool = False) -> str:
    """Names that differ only in a closing number become ranges: `gpu-0..3, gpu-6`, `node-007..019`.

    Args:
        names: In their order.
        most: Names and ranges that are shown; the others are counted.
        of_nodes: Whether any name becomes a range. Of devices those do not that have leading zeros, or more than two
            parts: `...-19-3` of a MIG device ends in more than an index.
    """
    runs: list[tuple[str, str, str]] = []
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        if not of_nodes and (stem.count("-") > 1 or (digits[:1] == "0" and digits != "0")):
            stem = name
            digits = ""
        stem_before, first, last = runs[-1] if runs else ("", "", "")
        # Numbers with leading zeros have one width, else the range would stand for other names.
        padded = "0" in (digits[:1], last[:1]) and len(digits) != len(last)
        if digits and last and stem == stem_before and int(digits) == int(last) + 1 and not padded:
            runs[-1] = (stem, first, digits)
        else:
            runs.append((stem, digits, digits))
    parts = [f"{stem}{first}" if first == last else f"{stem}{first}..{last}" for stem, first, last in runs]
    if len(parts) > most:
        parts = [*parts[:most], f"{len(parts) - most:,} more"]
    return ", ".join(parts)


def shorten(text: str, most: int) -> str:
    """The first *most* characters, and how many were left out where any were."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"
