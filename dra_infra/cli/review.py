"""`dra-infra review`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dra_infra.cli.settings import choose_fleet
from dra_infra.engine.charts import with_charts
from dra_infra.engine.isolated import RunningSynth
from dra_infra.engine.project import find_root
from dra_infra.engine.revision import archived
from dra_infra.engine.synth import DEFAULT_TIMEOUT
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.model.fleet import Fleet
from dra_infra.model.program import NotSeen, Program
from dra_infra.planning import Review, render_html, render_json, render_markdown, render_text, review
from dra_infra.simulation import place
from dra_infra.validation import check_program

_FORMATS = ("text", "markdown", "json", "html")


def run(
    directory: Path,
    *,
    base: str,
    fleet: str | None,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    output: str,
    files: Mapping[str, Path | None],
    charts: bool = False,
) -> int:
    """Print the review; 1 when it has problems or something no longer fits.

    Raises:
        ProgramError: When the head cannot be run, or the base revision cannot be had.
    """
    if output not in _FORMATS:
        raise ProgramError(
            [
                Problem(
                    path="--format",
                    code="unknown-format",
                    message=f"{output!r} is not a format",
                    hint=f"formats are {', '.join(_FORMATS)}",
                )
            ]
        )
    chosen = choose_fleet(fleet, directory, stack=stack, config=config)
    root = find_root(directory)
    with archived(root, base) as base_root:
        before, after = compile_both(
            base_root, root, base_label=base, stack=stack, config=config, timeout=timeout
        )
        if charts:
            before, after = with_charts(before, base_root), with_charts(after, root)
    result = compare(before, after, base_label=base, fleet=chosen)
    for form, file in files.items():
        if file is not None:
            file.write_text(_render(result, form), encoding="utf-8")
            print(f"wrote {file}", file=sys.stderr)
    sys.stdout.write(_render(result, output))
    return 1 if result.failed else 0


def compile_both(
    base: Path,
    head: Path,
    *,
    base_label: str,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> tuple[Program, Program]:
    """Run both programs, each in a process of its own and at the same time.

    A base without a project, or whose program fails, counts as empty: everything then is new, and the review says so.

    Raises:
        ProgramError: When the head cannot be run.
    """
    base_run = RunningSynth(base, stack=stack, config=config, timeout=timeout)
    head_run = RunningSynth(head, stack=stack, config=config, timeout=timeout)
    try:
        after = head_run.result()
        try:
            before = base_run.result()
        except ProblemsError as error:
            reason = f"counts as empty: {error.problems[0].message}"
            missing = NotSeen(what="base", name=base_label, reason=reason)
            before = Program(project=after.project, stack=after.stack, not_seen=(missing,))
    finally:
        base_run.stop()
        head_run.stop()
    return before, after


def compare(before: Program, after: Program, *, base_label: str, fleet: Fleet | None = None) -> Review:
    """Check the head, place both on *fleet*, and put them side by side."""
    checked = replace(after, problems=_check(after, fleet))
    if fleet is None:
        return review(before, checked, base_label=base_label)
    return review(
        before,
        checked,
        base_label=base_label,
        before=place([each.manifest for each in before.objects], fleet),
        after=place([each.manifest for each in after.objects], fleet),
    )


def _check(program: Program, fleet: Fleet | None) -> tuple[Problem, ...]:
    if fleet is None:
        # Which classes the cluster has is not known, so none can be said to be missing.
        return tuple(each for each in check_program(program) if each.code != "class-not-known")
    return check_program(program, fleet=fleet)


def _render(result: Review, form: str) -> str:
    if form == "markdown":
        return render_markdown(result)
    if form == "json":
        return render_json(result)
    if form == "html":
        return render_html(result)
    on_terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return render_text(result, color=on_terminal, width=shutil.get_terminal_size((120, 24)).columns)
