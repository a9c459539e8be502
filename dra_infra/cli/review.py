"""The `dra-infra review` command: compares objects with what they were.

When there is no review, a text without one is written for the comment: an older review must not look like this one's
answer.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Unpack

import click

from dra_infra.answers.reviewing import (
    ReviewOptions,
    ReviewQuestion,
    answer_review,
    ask_review,
    find_review_name,
    with_head,
)
from dra_infra.cli.printing import has_colours, print_problems, progress, say, write_output, write_painted
from dra_infra.cli.reports import (
    ReportFile,
    check_place,
    inputs_of,
    inputs_of_scene,
    plan_reports,
    write_reports,
)
from dra_infra.cli.written_files import put_in_place
from dra_infra.errors import Problem, ProblemsError
from dra_infra.review import (
    Review,
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_sarif,
    render_text,
)
from dra_infra.review.markdown_report import marker_of
from dra_infra.review.reviews import FailOn

RENDERERS: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": lambda result: render_text(result, color=has_colours(sys.stdout), width=_width()),
    "markdown": render_markdown,
    "json": render_json,
    "html": render_html,
    "sarif": render_sarif,
    "junit": render_junit,
}
"""Every form by the name that the user gives it."""

_BRIEF: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": lambda result: render_text(result, brief=True, color=has_colours(sys.stdout), width=_width()),
    "markdown": lambda result: render_markdown(result, brief=True),
}
"""The forms that have a brief one."""


def write_no_review(question: ReviewQuestion, file: Path, problems: Sequence[Problem]) -> None:
    """Write Markdown with the marker that the review would have had; nothing where that is not known.

    It names the codes alone: messages are for the log, which not everybody sees who sees a comment.

    Args:
        question: What was to be reviewed.
        file: Where it goes.
        problems: Why there is no review.
    """
    name = find_review_name(question)
    if name is None:
        return
    codes = ", ".join(f"`{code}`" for code in sorted({each.code for each in problems}))
    lines = [
        marker_of(*name),
        "### ❔ There is no review",
        "",
        f"It could not be made ({codes}): see the log of the job. An older review is out of date.",
    ]
    with suppress(OSError):
        put_in_place(file, ("\n".join(lines) + "\n").encode(), guarded=[question.source.root])


def run(
    path: Path,
    *,
    fail_on: FailOn,
    brief: bool,
    form: str,
    files: Sequence[Path],
    html: Path | None,
    markdown: Path | None,
    sarif: Path | None,
    junit: Path | None,
    **options: Unpack[ReviewOptions],
) -> int:
    """Print the review; 1 when the gate is closed, 2 when the engine was asked for and gave no preview.

    Raises:
        ProblemsError: When there is no answer: the head or the base cannot be had, or the fleet, or a file not be written. The
            Markdown that is asked for says so then.
        InvalidSpecError: For a minor that there is not.
        click.BadParameter: When options do not go together.
    """
    _check_pairs(options)
    question = ask_review(path, **options)
    renderers = {**RENDERERS, **_BRIEF} if brief else RENDERERS
    inputs = _inputs_of(path, options)
    older = {"html": html, "markdown": markdown, "sarif": sarif, "junit": junit}
    reports = [*plan_reports(files, RENDERERS, inputs), *_plan_older(older, inputs)]
    try:
        question = with_head(question)
        with progress() as tell:
            reviewed = answer_review(question, tell=tell, warn=print_problems)
            tell("writing")
            write_reports(
                reports, lambda each: _render_file(each, reviewed.review, brief=brief), [question.source.root]
            )
        # A report that has colours was made safe before it was painted.
        write = write_painted if form == "text" and has_colours(sys.stdout) else write_output
        write(renderers[form](reviewed.review))
    except ProblemsError as error:
        for each in reports:
            if each.form == "markdown":
                write_no_review(question, each.file, error.problems)
        raise
    if reviewed.confinement:
        say(reviewed.confinement)
    return reviewed.exit_code(fail_on)


def _check_pairs(options: ReviewOptions) -> None:
    """Refuse options that do not go together."""
    engine, packs = options.get("engine"), options.get("policy_packs")
    if (packs or options.get("refresh")) and not engine:
        raise click.BadParameter("needs --engine", param_hint="--policy-pack" if packs else "--refresh")
    if options.get("head") is not None and engine:
        raise click.BadParameter("does not go with --head", param_hint="--engine")
    if options.get("head_commit") is not None and options.get("head") is None:
        raise click.BadParameter("needs --head", param_hint="--head-commit")
    if options.get("base") is not None and options.get("base_path") is not None:
        raise click.BadParameter("give --base or --base-path, not both", param_hint="--base-path")
    if options.get("provider") is not None and engine:
        raise click.BadParameter("the engine previews all clusters", param_hint="--provider")


def _inputs_of(path: Path, options: ReviewOptions) -> list[Path]:
    """Return the files and folders that a review reads."""
    named = inputs_of(path, options.get("base_path"), options.get("head"))
    listed = inputs_of(*options.get("values", ()), *options.get("policy_packs", ()))
    return [*named, *listed, *inputs_of_scene(options)]


def _plan_older(files: Mapping[str, Path | None], inputs: Sequence[Path]) -> list[ReportFile]:
    """Return what is written to the files of older options, and say how these are spelled today.

    Raises:
        ProgramError: `report-not-written`.
    """
    reports = [ReportFile(file, form, option=form) for form, file in files.items() if file is not None]
    for each in reports:
        check_place(each.file, inputs, option=each.option)
        say(f"--{each.option} FILE is written --output FILE today: the form follows from the end of the name")
    return reports


def _render_file(form: str, review: Review, *, brief: bool) -> str:
    """Return a review for a file, whose text has neither colours nor the width of a terminal."""
    if form == "text":
        return render_text(review, brief=brief)
    return ({**RENDERERS, **_BRIEF} if brief else RENDERERS)[form](review)


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
