"""Small pieces of sentences."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def count_of(number: int, noun: str) -> str:
    """`1 pod`, `3 pods`, `no pods`."""
    shown = f"{number:,}" if number else "no"
    return f"{shown} {noun}{'' if number == 1 else 's'}"


def join_words(words: Iterable[object], *, most: int = 4) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b, c, d and 3 more`."""
    shown = [str(word) for word in words]
    if len(shown) > most:
        shown = [*shown[:most], f"{len(shown) - most:,} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The known name that a misspelt one is most like, by its first 80 characters; empty where none is near."""
    return next(iter(difflib.get_close_matches(name[:80], list(known), n=1, cutoff=cutoff)), "")


def compress_names(names: Sequence[str], *, most: int = 6) -> str:
    """Names that differ only in a closing number become ranges: `gpu-0..3, gpu-6`."""
    runs: list[tuple[str, int | None, int | None]] = []
    for name in names:
        stem = name.rstrip("0123456789")
        digits = name[len(stem) :]
        # Leading zeros would be lost in a range, and a name such as `...-19-3` ends in more than an index.
        number = int(digits) if digits and str(int(digits)) == digits and stem.count("-") <= 1 else None
        if runs and number is not None and runs[-1][0] == stem and runs[-1][2] == number - 1:
            runs[-1] = (stem, runs[-1][1], number)
        else:
            runs.append((stem if number is not None else name, number, number))
    parts = [_run(*run) for run in runs]
    if len(parts) > most:
        parts = [*parts[:most], f"{len(parts) - most:,} more"]
    return ", ".join(parts)


def shorten(text: str, most: int) -> str:
    """The first *most* characters, and how many were left out where any were."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def _run(stem: str, first: int | None, last: int | None) -> str:
    if first is None:
        return stem
    return f"{stem}{first}" if first == last else f"{stem}{first}..{last}"
