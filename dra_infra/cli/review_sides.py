"""Both sides of a review as programs, whatever they are made from."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dra_infra.cli.review_chart import read_values, render_side, values_at_base
from dra_infra.cli.review_manifests import Locate, Side, read_side
from dra_infra.cli.review_secrets import without_secrets
from dra_infra.cli.review_source import Source
from dra_infra.engine.charts import with_charts
from dra_infra.engine.isolated import RunningSynth
from dra_infra.engine.nearest_paths import nearest_path
from dra_infra.engine.project import load_project, secret_texts_of
from dra_infra.engine.repository import Repository, find_repository
from dra_infra.engine.requirements import read_package_pins
from dra_infra.engine.revision import archived
from dra_infra.engine.synth import DEFAULT_TIMEOUT
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.model.program import NotSeen, Program
from dra_infra.model.secrets import SecretMask, holds_secret, secret_texts, secret_values
from dra_infra.planning.wording import count_of, join_words

_READ: Final = (".json", ".jsonl", ".ndjson", ".py", ".toml", ".tpl", ".txt", ".yaml", ".yml")
"""Files that may decide what a source makes, when git does not know them; a page of a review does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What the user says about the sides.

    Args:
        base: Revision; None when there is a *base_path*.
        base_path: The folder or file of the base.
        stack: Of a program.
        config: Settings over those of files.
        timeout: Seconds for a program or for helm.
        charts: Whether charts that a program installs are rendered.
        values: Files with values of a chart.
    """

    base: str | None
    base_path: Path | None = None
    stack: str | None = None
    config: Mapping[str, str]
    timeout: float = DEFAULT_TIMEOUT
    charts: bool = False
    values: Sequence[Path] = ()

    @property
    def label(self) -> str:
        """What the user calls the base."""
        return self.base if self.base is not None else str(self.base_path)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Both sides, without their secrets.

    Args:
        before: The base.
        after: The head.
        notes: What the reader must know about them.
        locate: Where fields of objects of the head are written.
        opaque: URNs of objects of the head whose secrets were never known.
    """

    before: Program
    after: Program
    opaque: frozenset[str]
    notes: tuple[str, ...] = ()
    locate: Locate | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Base:
    """Where the base lies.

    Args:
        root: The folder or file at the base; it may not exist there.
        top: Its repository, or *root* itself.
        head_top: The repository of the head, likewise.
        left_out: What of it is not there.
    """

    root: Path
    top: Path
    head_top: Path
    left_out: tuple[NotSeen, ...] = ()


def read_sides(source: Source, asked: Asked, tell: Callable[[str], None] = lambda _: None) -> Sides:
    """Make the objects of both sides.

    Raises:
        ProgramError: When the head cannot be had, or the base revision; no message holds a secret.
    """
    mask = SecretMask(_known_secrets(source.root, source, asked))
    try:
        repository = None if asked.base_path else find_repository(source.root)
        state = _state(repository)
        tell(f"unpacking {asked.label}")
        with _base(source, asked) as base:
            tell(f"reading both sides of {source.shown}")
            before, after = _make(source, asked, base, label_of(source, repository))
            known = [*_known_secrets(source.root, source, asked), *_known_secrets(base.root, source, asked)]
        notes = [] if repository is None or asked.base is None else [*_notes(repository, asked.base, state)]
    except ProblemsError as error:
        raise ProgramError(map(mask.problem, error.problems)) from None
    for each in (*before.program.releases, *after.program.releases):
        known += secret_values(each.values)
    mask = SecretMask(known)
    first, second = without_secrets(before.program, after.program, mask)
    pairs = zip(after.program.objects, second.objects, strict=True)
    left_out = tuple(sorted({*first.not_seen, *base.left_out}))
    return Sides(
        before=replace(first, not_seen=left_out),
        after=second,
        notes=tuple(map(mask.text, notes)),
        locate=after.locate,
        opaque=frozenset(masked.urn for each, masked in pairs if holds_secret(each.manifest)),
    )


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
            before = _empty(after, base_label, error)
    finally:
        base_run.stop()
        head_run.stop()
    return before, after


@contextlib.contextmanager
def _base(source: Source, asked: Asked) -> Iterator[_Base]:
    if asked.base_path is not None:
        if not asked.base_path.exists():
            raise ProgramError([_no_base_path(asked.base_path)])
        root = asked.base_path.absolute()
        yield _Base(root=root, top=root, head_top=source.root)
        return
    assert asked.base is not None  # noqa: S101  (one of both is given)
    with archived(source.root, asked.base, only_directory=source.kind == "manifests") as revision:
        top = find_repository(source.root).top
        yield _Base(root=revision.root, top=revision.top, head_top=top, left_out=revision.left_out)


def _make(source: Source, asked: Asked, base: _Base, label: str) -> tuple[Side, Side]:
    if source.kind == "program":
        before, after = compile_both(
            base.root,
            source.root,
            base_label=asked.label,
            stack=asked.stack,
            config=asked.config,
            timeout=asked.timeout,
        )
        if asked.charts:
            before, after = with_charts(before, base.root), with_charts(after, source.root)
        before = replace(before, pins=read_package_pins(base.root))
        after = replace(after, pins=read_package_pins(source.root))
        return Side(program=before), Side(program=after)
    if source.kind == "chart":
        return _render_both(source, asked, base, label)
    before_side, after_side = (
        read_side(root, inside=top, shown=source.shown, label=label, config=asked.config)
        for root, top in ((base.root, base.top), (source.root, base.head_top))
    )
    if not any((each.program.objects or each.program.problems) for each in (before_side, after_side)):
        raise ProgramError([_nothing(source)])
    # What cannot be read at the base was there before, and is not what this change is asked about.
    told = (NotSeen(what="base", name=each.path, reason=str(each)) for each in before_side.program.problems)
    program = before_side.program
    unread = tuple(
        sorted({*program.not_seen, *(each for each in told if "duplicate-object" not in each.reason)})
    )
    return replace(before_side, program=replace(program, problems=(), not_seen=unread)), after_side


def _render_both(source: Source, asked: Asked, base: _Base, label: str) -> tuple[Side, Side]:
    def render(root: Path, files: Sequence[Path]) -> Side:
        return render_side(
            root,
            read_values(files),
            shown=source.shown,
            label=label,
            config=asked.config,
            timeout=asked.timeout,
        )

    after = render(source.root, asked.values)
    files, missing = values_at_base(asked.values, base.head_top, base.top)
    _lend_dependencies(source.root, base.root)
    try:
        before = render(base.root, files)
    except ProblemsError as error:
        return Side(program=_empty(after.program, asked.label, error)), after
    told = {NotSeen(what="values of the base", name=each.name, reason="the file is new") for each in missing}
    program = replace(before.program, not_seen=tuple(sorted({*before.program.not_seen, *told})))
    return replace(before, program=program), after


def _lend_dependencies(head: Path, base: Path) -> None:
    """Give the base the downloaded charts of the head, which are not committed, where both lock the same ones."""
    charts, lock = head / "charts", head / "Chart.lock"
    with contextlib.suppress(OSError):
        same = lock.read_bytes() == (base / "Chart.lock").read_bytes()
        if same and charts.is_dir() and not (base / "charts").exists():
            (base / "charts").symlink_to(charts, target_is_directory=True)


def _empty(after: Program, label: str, error: ProblemsError) -> Program:
    missing = NotSeen(what="base", name=label, reason=f"counts as empty: {error.problems[0].message}")
    return Program(project=after.project, stack=after.stack, not_seen=(missing,))


def _known_secrets(root: Path, source: Source, asked: Asked) -> Iterator[str]:
    yield from secret_texts(os.environ)
    yield from secret_texts(asked.config)
    if source.kind == "program":
        with contextlib.suppress(ProblemsError):
            yield from secret_texts_of(load_project(root, asked.stack, asked.config))
    if asked.values:
        with contextlib.suppress(ProblemsError):
            yield from secret_values(read_values(asked.values))


def label_of(source: Source, repository: Repository | None) -> str:
    """What manifests are told apart by from those of other folders: the path in the repository."""
    return (repository.prefix if repository else "") or source.root.name or "manifests"


def _state(repository: Repository | None) -> dict[str, str]:
    return repository.uncommitted(everything=True) if repository else {}


def _notes(repository: Repository, base: str, state: Mapping[str, str]) -> Iterator[str]:
    relevant = [name for name, letters in state.items() if letters != "??" or name.endswith(_READ)]
    # Against the last commit itself, what is not committed is what the user asks about.
    if relevant and repository.resolve(base) != repository.resolve("HEAD"):
        shown = join_words(sorted(relevant))
        yield f"The working tree is reviewed as it is: {count_of(len(relevant), 'file')} not committed ({shown})."
    left = [
        name
        for name, letters in repository.uncommitted(everything=True).items()
        if state.get(name) != letters and "__pycache__" not in name
    ]
    if left:
        yield f"The program wrote into its folder while it ran: {join_words(sorted(left))}."


def _nothing(source: Source) -> Problem:
    return Problem(
        path=source.shown,
        code="no-project",
        message="holds neither a Pulumi project, nor a chart, nor a manifest, and did not at the base",
        hint="name the folder with Pulumi.yaml, Chart.yaml, or YAML and JSON files",
    )


def _no_base_path(path: Path) -> Problem:
    return Problem(
        path="--base-path",
        code="base-not-found",
        message=f"{path} is not there",
        hint=nearest_path(path) or "name the folder with the former state",
    )
