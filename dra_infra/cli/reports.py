"""Files that a report is written to as well: the form follows from the end of a file's name, and nothing that is read is replaced (ADR 24)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dra_infra.answers.protected_files import why_kept
from dra_infra.cli.failures import note_planned, note_written
from dra_infra.cli.printing import write_file
from dra_infra.errors import ProgramError
from dra_infra.output.escaping import log_line

if TYPE_CHECKING:
    # Without what reads programs, `validate` of one file starts faster.
    from dra_infra.answers.reading import SceneOptions

_ENDINGS: Final[Mapping[str, str]] = {
    ".html": "html",
    ".json": "json",
    ".md": "markdown",
    ".sarif": "sarif",
    ".txt": "text",
    ".xml": "junit",
}
"""Forms of reports by the end of a file's name."""


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A file that a report is to go to.

    Args:
        file: The file.
        form: Form of the report in it.
        option: The option that names it, without its dashes.
    """

    file: Path
    form: str
    option: str = "output"


def plan_reports(files: Iterable[Path], forms: Collection[str], inputs: Sequence[Path]) -> list[ReportFile]:
    """Return what is written to each of *files*, before anything is asked.

    Args:
        files: The values of `--output`.
        forms: The forms that the report has.
        inputs: Files and folders that the command reads.

    Raises:
        click.BadParameter: For a name that ends in nothing that says a form of *forms*.
        ProgramError: `report-not-written`, as `check_place`.
    """
    reports = [ReportFile(file, _form_of(file, forms)) for file in files]
    for each in reports:
        check_place(each.file, inputs, option=each.option)
    note_planned([(each.option, each.file) for each in reports if each.form == "json"], inputs)
    return reports


def check_place(file: Path, inputs: Sequence[Path], *, option: str = "output") -> None:
    """Refuse a file that a report must not take the place of.

    Args:
        file: Where the report is to go.
        inputs: Files and folders that the command reads.
        option: The option that names the file, without its dashes.

    Raises:
        ProgramError: `report-not-written`.
    """
    try:
        reason = why_kept(file, inputs)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    if reason:
        raise ProgramError.of(
            path=f"--{option}",
            code="report-not-written",
            message=f"{file} {reason}, and is not replaced",
            hint="name another file",
        )


def inputs_of(*given: str | Path | None) -> list[Path]:
    """Return the files and folders among the values of arguments and options that say what is read."""
    return [Path(each) for each in given if each is not None and Path(each).exists()]


def inputs_of_scene(options: SceneOptions) -> list[Path]:
    """Return the files that the options of a scene name."""
    return inputs_of(
        options.get("fleet"), options.get("snapshot"), options.get("prices"), options.get("kinds")
    )


def text_of(lines: Iterable[str]) -> str:
    """Return a report for people as the text of a file."""
    return "".join(f"{log_line(line)}\n" for line in lines)


def write_reports(
    reports: Iterable[ReportFile], render: Callable[[str], str], guarded: Sequence[Path] = ()
) -> None:
    """Write a report to each of its files.

    Args:
        reports: The files.
        render: Makes the report of a form.
        guarded: Inputs of the command, in which links are not followed.

    Raises:
        ProgramError: `report-not-written`.
    """
    for each in reports:
        write_file(each.option, each.file, render(each.form).encode("utf-8", "backslashreplace"), guarded)
    note_written()


def _form_of(file: Path, forms: Collection[str]) -> str:
    form = _ENDINGS.get(file.suffix.lower())
    if form is None or form not in forms:
        endings = [end for end, name in _ENDINGS.items() if name in forms]
        known = f"{', '.join(endings[:-1])} or {endings[-1]}"
        raise click.BadParameter(
            f"{str(file)!r} does not say its form: let the name end in {known}.", param_hint="--output"
        )
    return form
