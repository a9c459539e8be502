"""Where the forms of a review go: standard output and files."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.planning import (
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
        if file is None:
            continue
        partial = file.with_name(f".{file.name}.partial")
        text = RENDERERS[form](result).encode("utf-8", "backslashreplace")
        try:
            if file.exists() and not file.is_file():
                # A device or a pipe, such as /dev/stdout: there is nothing to put in its place.
                file.write_bytes(text)
            else:
                partial.write_bytes(text)
                partial.replace(file)
        except OSError as error:
            partial.unlink(missing_ok=True) if file.parent.is_dir() else None
            raise ProgramError([_not_written(form, file, error.strerror or str(error))]) from error
        print(f"wrote {file}", file=sys.stderr)


def print_report(result: Review, form: str) -> None:
    """One form on standard output, whatever characters that can show."""
    text = RENDERERS[form](result)
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
    sys.stdout.flush()


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
