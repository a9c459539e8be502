"""The problems as JSON, in place of a report, when a command has no answer; they are on standard error too."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from dra_infra.cli.printing import PRINTED, problems_as_data, write_file, write_output
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.output.escaping import json_text
from dra_infra.output.report_data import make_report

if TYPE_CHECKING:
    from pathlib import Path

PROBLEMS: Final = "dra-infra.problems/v1"
"""Schema of what is written in place of a report."""

_PLANNED: Final = f"{__name__}.planned"


def note_planned(files: Sequence[tuple[str, Path]], inputs: Sequence[Path]) -> None:
    """Remember the files of a report in JSON: if there is no report, they get the problems.

    Args:
        files: Each with the option that names it; they may be written to.
        inputs: Inputs of the command, in which links are not followed.
    """
    if context := click.get_current_context(silent=True):
        context.meta[_PLANNED] = (files, inputs)


def note_written() -> None:
    """Remember that the files have their report."""
    if context := click.get_current_context(silent=True):
        context.meta.pop(_PLANNED, None)


def write_failure(context: click.Context, error: Exception, *, is_asked: bool) -> None:
    """Write the problems of an error where a report in JSON was asked for.

    Args:
        context: The call of the command.
        error: Why there is no answer; problems, wrong usage, or a file that cannot be read.
        is_asked: Whether standard output is to be JSON.
    """
    problems = _problems_of(context, error)
    if not problems:
        return
    data = make_report("problems", {"problems": problems_as_data(problems)})
    files, inputs = context.meta.pop(_PLANNED, ((), ()))
    for option, file in files:
        # The file may be what the problems are about.
        with suppress(ProgramError):
            write_file(option, file, json_text(data).encode("utf-8", "backslashreplace"), inputs)
    # A report that is there already stays the only one; a watch has one in each line.
    if is_asked and not context.meta.get(PRINTED):
        write_output(json_text(data, indent=None if "watch" in context.params else 2))


def _problems_of(context: click.Context, error: Exception) -> Sequence[Problem]:
    if isinstance(error, ProblemsError):
        return error.problems
    if isinstance(error, click.UsageError):
        return [describe_usage(context, error)]
    return [describe_unreadable(error)] if isinstance(error, OSError) and error.filename is not None else ()


def describe_usage(context: click.Context, error: click.UsageError) -> Problem:
    """Return wrong usage of a command as a problem."""
    hint = getattr(error, "param_hint", None)
    option = hint if isinstance(hint, str) else None
    parameter = getattr(error, "param", None)
    if option is None and isinstance(parameter, click.Parameter):
        option = parameter.opts[0] if isinstance(parameter, click.Option) else parameter.human_readable_name
    return Problem(
        path=option or getattr(error, "option_name", None) or context.command_path,
        code="wrong-usage",
        message=error.message or error.format_message(),
        hint=f"see {context.command_path} --help",
    )


def describe_unreadable(error: OSError) -> Problem:
    """Return the problem of a file that the system does not give."""
    return Problem(
        path=os.fsdecode(error.filename),
        code="file-unreadable",
        message=error.strerror or str(error),
        hint="check the path, and who may read and enter its folders",
    )
