"""Destinations of a review's reports: standard output and files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from dra_infra.cli.printing import say, write_output, write_painted
from dra_infra.errors import Problem, ProgramError
from dra_infra.review import (
    Review,
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_sarif,
    render_text,
)

RENDERERS: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": lambda result: render_text(result, color=_has_colour(), width=_width()),
    "markdown": render_markdown,
    "json": render_json,
    "html": render_html,
    "sarif": render_sarif,
    "junit": render_junit,
}
"""Every form by the name that the user gives it."""


def write_reports(result: Review, files: Mapping[str, Path | None]) -> None:
    """Write each file that is asked for, whole or not at all.

    Raises:
        ProgramError: `report-not-written`.
    """
    for form, file in files.items():
        if file is not None:
            write_file(form, file, RENDERERS[form](result).encode("utf-8", "backslashreplace"))


def write_file(option: str, file: Path, content: bytes) -> None:
    """Write the file that an option names, whole or not at all, and say so.

    Raises:
        ProgramError: `report-not-written`.
    """
    try:
        if file.exists() and not file.is_file():
            # A device or a pipe, such as /dev/stdout: there is nothing to put in its place.
            file.write_bytes(content)
        else:
            put_in_place(file, content)
    except OSError as error:
        raise ProgramError([_not_written(option, file, error.strerror or str(error))]) from error
    say(f"wrote {file}")


def put_in_place(file: Path, content: bytes) -> None:
    """Write *file*, whole or not at all. Links that lie there, a pull request's own perhaps, are replaced and not followed.

    Raises:
        OSError: Of the system.
    """
    partial = file.with_name(f".{file.name}.partial")
    partial.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(partial, flags, 0o666), "wb") as stream:
            stream.write(content)
        partial.replace(file)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise


def print_report(result: Review, form: str) -> None:
    """One form on standard output."""
    text = RENDERERS[form](result)
    if form == "text" and _has_colour():
        write_painted(text)
    else:
        write_output(text)


def _not_written(form: str, file: Path, why: str) -> Problem:
    return Problem(
        path=f"--{form}",
        code="report-not-written",
        message=f"{file} cannot be written: {why}",
        hint="name a file in a folder that exists and may be written to",
    )


def _has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
