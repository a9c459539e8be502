"""Older spellings of options, which work and say what is written today (ADR 24)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import click

from dra_infra.output.report_marks import LONGEST_REPORT, is_report


def short_output(words: Sequence[str], forms: Collection[str] = ()) -> list[str]:
    """Return a command line with `--output FILE` in place of `-o FILE`.

    Args:
        words: The command line.
        forms: What may stand behind `-o` today.
    """
    return list(_without_short_output(iter(words), forms))


def _without_short_output(words: Iterator[str], forms: Collection[str]) -> Iterator[str]:
    for word in words:
        if word == "--":
            yield word
            yield from words
            return
        is_short = word.startswith("-o") and not word.startswith("--")
        # Of the value in one word with the option, and of the one behind it.
        value = (word[2:].removeprefix("=") or next(words, None)) if is_short else None
        if value is None:
            yield word
        elif value in forms:
            yield from ("-o", value)
        else:
            _notice("-o", value)
            yield from ("--output", value)


def file_of_json(words: Sequence[str]) -> list[str]:
    """Return a command line of `dra-infra review` with `--output FILE` in place of `--json FILE`.

    Behind the flag `--json` may stand what is reviewed. So a file counts as that of the older spelling where its name ends
    in .json and it is not there, or is an older report.
    """
    spelled: list[str] = []
    given = iter(words)
    for word in given:
        if word == "--":
            return [*spelled, word, *given]
        option, equals, value = word.partition("=")
        is_file = option == "--json" and bool(equals)
        if word == "--json":
            value = next(given, "")
            is_file = _is_report_file(value)
        if is_file:
            _notice("--json", value)
            spelled += ["--output", value]
        else:
            spelled += [word, *([value] if word == "--json" and value else [])]
    return spelled


def _is_report_file(value: str) -> bool:
    file = Path(value)
    if file.suffix != ".json" or value.startswith("-"):
        return False
    try:
        with file.open("rb") as stream:
            return is_report(stream.read(LONGEST_REPORT + 1))
    except OSError:
        return not file.exists()


def _notice(option: str, value: str) -> None:
    click.echo(f"{option} {value} is written --output {value} today", err=True)
