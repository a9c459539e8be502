"""The `dra-infra review` command: compares objects with what they were.

When there is no review, a text without one is written for the comment: an older review must not look like this one's
answer.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from dra_infra.advice.program import check_program
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import load_workload_kinds
from dra_infra.cli.printing import (
    EXIT_NO_ANSWER,
    progress,
    put_in_place,
    say,
    write_file,
    write_output,
    write_painted,
)
from dra_infra.cli.settings import check_settings, choose_fleet, read_snapshot, set_prices, with_options
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.kubernetes.api.workload_kinds import WorkloadKinds
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.placement.placement import Placement
from dra_infra.program.confinement import describe, read_allowance
from dra_infra.program.preview import previewing
from dra_infra.program.program_json import load_head
from dra_infra.program.project import FLEET_SETTING, Project, load_project
from dra_infra.program_objects import EnginePreview, Locate, Program
from dra_infra.review import (
    Review,
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_sarif,
    render_text,
    review,
)
from dra_infra.review.markdown_report import marker_of
from dra_infra.review.placements import place_sides
from dra_infra.review.reviews import FailOn
from dra_infra.review.running import NOTHING_RUNS, Running
from dra_infra.sources.repository import find_repository
from dra_infra.sources.sides import Asked, compile_both, existing, label_of, named_by, read_sides
from dra_infra.sources.subject import Source, check_kind_of_head, find_source, trusted_source

__all__ = ["RENDERERS", "compare", "compile_both", "run", "write_no_review"]

RENDERERS: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": lambda result: render_text(result, color=_has_colour(), width=_width()),
    "markdown": render_markdown,
    "json": render_json,
    "html": render_html,
    "sarif": render_sarif,
    "junit": render_junit,
}
"""Every form by the name that the user gives it."""

_BRIEF: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": lambda result: render_text(result, brief=True, color=_has_colour(), width=_width()),
    "markdown": lambda result: render_markdown(result, brief=True),
}
"""The forms that have a brief one."""


def write_no_review(
    source: Source, asked: Asked, file: Path, problems: Sequence[Problem], *, compiled: bool = False
) -> None:
    """Write Markdown with the marker that the review would have had; nothing where that is not known.

    It names the codes alone: messages are for the log, which not everybody sees who sees a comment.

    Args:
        source: What was to be reviewed.
        asked: What the user said about the sides.
        file: Where it goes.
        problems: Why there is no review.
        compiled: Whether the head was compiled elsewhere; its name is what the tree here says then.
    """
    name = _name(source, asked, compiled=compiled)
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
        put_in_place(file, ("\n".join(lines) + "\n").encode())


def _name(source: Source, asked: Asked, *, compiled: bool) -> tuple[str, str] | None:
    """Project and stack of the review."""
    project = None
    with suppress(ProblemsError):
        if source.kind == "program":
            project = load_project(source.root, source.stack, source.config)
    if source.kind == "program" and not compiled:
        return (project.name, project.stack) if project else None
    with suppress(ProblemsError):
        label = label_of(source, None if asked.base_path else find_repository(existing(source)))
        return named_by(project, asked, label) if source.kind == "program" else (label, "")
    return None


def run(
    path: Path,
    *,
    base: str | None,
    base_path: Path | None,
    head: Path | None,
    head_commit: str | None,
    source: str | None,
    fleet: str | None,
    prices: Path | None,
    snapshot: Path | None,
    kubernetes: str | None,
    values: Sequence[Path],
    stack: str | None,
    config: Mapping[str, str],
    provider: str | None,
    timeout: float,
    charts: bool,
    allow: Sequence[str],
    engine: bool,
    policy_packs: Sequence[Path],
    refresh: bool,
    kinds: Path | None,
    fail_on: FailOn,
    brief: bool,
    output: str,
    **files: Path | None,
) -> int:
    """Print the review; 1 when the gate is closed, 2 when the engine was asked for and gave no preview.

    Raises:
        ProblemsError: When there is no answer: the head or the base cannot be had, or the fleet, or a file not be written. The
            Markdown that is asked for says so then.
        InvalidSpecError: For a minor that there is not.
        click.BadParameter: When options do not go together.
    """
    if (policy_packs or refresh) and not engine:
        option = "--policy-pack" if policy_packs else "--refresh"
        raise click.BadParameter("needs --engine", param_hint=option)
    if head is not None and engine:
        raise click.BadParameter("does not go with --head", param_hint="--engine")
    if head_commit is not None and head is None:
        raise click.BadParameter("needs --head", param_hint="--head-commit")
    if base is not None and base_path is not None:
        raise click.BadParameter("give --base or --base-path, not both", param_hint="--base-path")
    if provider is not None and engine:
        raise click.BadParameter("the engine previews all clusters", param_hint="--provider")
    config = with_options(config, kubernetes=kubernetes)
    asked = Asked(
        base="HEAD" if base is None and base_path is None else base,
        base_path=base_path,
        stack=stack,
        config=config,
        provider=provider,
        timeout=timeout,
        charts=charts,
        values=values,
        allowance=read_allowance(allow),
    )
    trusted: Source | None
    if head is None:
        trusted = find_source(path, source, stack=stack, config=config)
    else:
        trusted = trusted_source(path, source, stack=stack, config=config)
    found = trusted or Source(
        kind="program", root=path.absolute(), shown=str(path), stack=stack, config=config
    )
    try:
        if head is not None:
            compiled = load_head(head, head_commit)
            asked = replace(asked, head=compiled)
            # Only where the trusted tree lacks the path, or has nothing there, does the head say how it is read.
            found = trusted or replace(found, kind=compiled.kind)
            check_kind_of_head(found, compiled, source)
        return _run(
            found,
            asked,
            fleet=fleet,
            prices=prices,
            snapshot=snapshot,
            fail_on=fail_on,
            renderers={**RENDERERS, **_BRIEF} if brief else RENDERERS,
            output=output,
            files=files,
            engine=engine,
            policy_packs=tuple(policy_packs),
            refresh=refresh,
            kinds=kinds,
        )
    except ProblemsError as error:
        markdown = files.get("markdown")
        if markdown is not None:
            write_no_review(found, asked, markdown, error.problems, compiled=head is not None)
        raise


def _run(
    source: Source,
    asked: Asked,
    *,
    fleet: str | None,
    prices: Path | None,
    snapshot: Path | None,
    fail_on: FailOn,
    renderers: Mapping[str, Callable[[Review], str]],
    output: str,
    files: Mapping[str, Path | None],
    engine: bool,
    policy_packs: tuple[Path, ...],
    refresh: bool,
    kinds: Path | None,
) -> int:
    """All steps of a review: read both sides, check the head, place both, compare them, and write the reports."""
    project = _trusted_project(source, asked)
    running: AbstractContextManager[Callable[[], EnginePreview] | None] = nullcontext()
    if engine and project:
        running = previewing(
            project,
            stack=asked.stack,
            config=asked.config,
            timeout=asked.timeout,
            policy_packs=policy_packs,
            refresh=refresh,
        )
    elif engine:
        what = "a chart" if source.kind == "chart" else "manifests"
        raise ProgramError.of(
            path="--engine",
            code="engine-not-for-source",
            message=f"{source.shown} is {what}: only a program has a stack",
            hint="leave --engine out, or name the folder of a Pulumi project",
        )
    with progress() as tell, running as wait_for_preview:
        cluster = read_snapshot(snapshot) if snapshot else None
        if project and not (cluster and asked.head):
            check_settings(project, asked.stack, asked.config)
        chosen = cluster.fleet if cluster else choose_fleet(fleet, project, asked.config)
        chosen = set_prices(chosen, prices) if chosen else None
        sides = read_sides(source, asked, project, tell)
        if wait_for_preview is not None:
            tell("waiting for the engine's preview")
        preview = wait_for_preview() if wait_for_preview else None
        tell("checking and placing")
        result = compare(
            sides.base,
            sides.head,
            base_label=asked.label,
            fleet=chosen,
            snapshot=cluster,
            locate=sides.locate,
            opaque=sides.opaque,
            engine=preview,
            kinds=load_workload_kinds(kinds) if kinds else None,
        )
        of_fleet = () if fleet else _note_on_fleet(source, asked, project)
        notes = (*sides.notes, *of_fleet, *result.notes)
        result = replace(result, source=source.kind, notes=notes)
        tell("writing")
        for form, file in files.items():
            if file is not None:
                write_file(form, file, renderers[form](result).encode("utf-8", "backslashreplace"))
    # A report that has colours was made safe before it was painted.
    write = write_painted if output == "text" and _has_colour() else write_output
    write(renderers[output](result))
    if sides.in_force is not None:
        say(describe(sides.in_force, asked.allowance))
    if preview is not None and preview.failure is not None:
        return EXIT_NO_ANSWER
    return 1 if result.is_blocked(fail_on) else 0


def compare(
    base: Program,
    head: Program,
    *,
    base_label: str,
    fleet: Fleet | None = None,
    snapshot: Snapshot | None = None,
    locate: Locate | None = None,
    opaque: frozenset[str] | None = None,
    engine: EnginePreview | None = None,
    kinds: WorkloadKinds | None = None,
) -> Review:
    """Check the head, place both on *fleet*, and put them side by side.

    Args:
        base: The program before.
        head: The program after.
        base_label: What the user calls the base.
        fleet: Where pods are placed; one without nodes places nothing, and its classes count.
        snapshot: What runs there.
        locate: Where fields of the head's objects are written; None takes the places of the objects.
        opaque: URNs of the head's objects whose secrets were never known; None takes all that show one.
        engine: The engine's preview of the head.
        kinds: Kinds of objects that make pods; None for those that the catalogue knows.
    """
    running = Running.of(snapshot, base, head) if snapshot else NOTHING_RUNS
    beside = (*running.taken.policies, *running.taken.templates)
    is_whole = not any(each.severity == "error" for each in head.problems)
    head = replace(head, problems=_check(head, fleet, locate, beside))
    placed: tuple[Placement, Placement] | tuple[None, None] = (None, None)
    if fleet is not None and (fleet.nodes or fleet.pools):
        placed = place_sides(base, head, fleet, running, kinds)
    return review(
        base,
        head,
        base_label=base_label,
        before=placed[0],
        after=placed[1],
        running=running,
        opaque=opaque,
        engine=engine,
        locate=locate,
        kinds=kinds,
        is_whole=is_whole,
    )


def _check(
    program: Program, fleet: Fleet | None, locate: Locate | None, beside: Sequence[Mapping[str, Any]]
) -> tuple[Problem, ...]:
    if fleet is not None and (fleet.nodes or fleet.pools):
        return check_program(program, fleet=fleet.at_limits, locate=locate, beside=beside)
    classes = fleet.classes if fleet else ()
    found = check_program(program, classes=classes, locate=locate, beside=beside)
    if fleet is None or classes:
        return found
    # Which classes this cluster has was not read, so none can be said to be missing from it.
    return tuple(each for each in found if each.code != "class-not-known")


def _trusted_project(source: Source, asked: Asked) -> Project | None:
    """The project whose settings count; None for what is no program, and for one that a pull request is the first to add."""
    if source.kind != "program":
        return None
    folders = (source.root, *source.root.parents)
    is_there = source.root.exists() and any((each / "Pulumi.yaml").is_file() for each in folders)
    if not is_there and asked.head is not None:
        return None
    return load_project(source.root, source.stack, source.config)


def _note_on_fleet(source: Source, asked: Asked, project: Project | None) -> tuple[str, ...]:
    """A note where a compiled head names hardware of its own, for it is placed on what the base names."""
    trusted = project.config.get(FLEET_SETTING, "") if project else ""
    if source.kind != "program" or asked.head is None or asked.head.fleet in ("", trusted):
        return ()
    placed = f"it is placed on {trusted!r}, as the base says" if trusted else "nothing is placed"
    return (f"The head sets {FLEET_SETTING} to {asked.head.fleet[:200]!r}; {placed}.",)


def _has_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _width() -> int:
    return shutil.get_terminal_size((120, 24)).columns
