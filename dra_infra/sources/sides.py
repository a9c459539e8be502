"""Both sides of a review as programs, whatever they are made from, without their secrets.

A secret that changes is marked, for what is hidden cannot be compared.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from dra_infra.advice.clusters import keep_provider, of_provider
from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.markers import holds_secret
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import SecretMask, secret_texts, secret_values
from dra_infra.program import kustomizations
from dra_infra.program.charts import with_charts
from dra_infra.program.confinement import ONLY_ITS_OWN, Allowance
from dra_infra.program.isolated import NO_ANSWER, RunningSynth
from dra_infra.program.program_json import Compiled, of_another_path, of_another_stack, unpack
from dra_infra.program.project import Project, load_project, secret_texts_of
from dra_infra.program.project_files import nearest_path
from dra_infra.program.python_start import check_start
from dra_infra.program.synth import DEFAULT_TIMEOUT
from dra_infra.program_objects import Locate, NotSeen, Program, without_secrets
from dra_infra.provenance import ReviewedSide
from dra_infra.sources.delivered_objects import Checkout, find_checkout
from dra_infra.sources.deployers import may_deploy
from dra_infra.sources.manifests import (
    FindCheckout,
    Side,
    build_side,
    lend_dependencies,
    link_not_seen,
    read_side,
    render_side,
    values_at_base,
)
from dra_infra.sources.repository import Repository, find_repository, notes_of_tree, read_side_of_tree
from dra_infra.sources.revision import archived, read_package_pins
from dra_infra.sources.subject import RENDERED, Source
from dra_infra.sources.values_files import read_values


@dataclass(frozen=True, kw_only=True, slots=True)
class SideOptions:
    """The options of a review: where its sides come from, and how they are made.

    Args:
        base: Revision; None when there is a *base_path*.
        base_path: The folder or file of the base.
        stack: Of a program.
        config: Settings over those of files.
        provider: Of a program, the provider whose objects are reviewed; None takes those of all.
        timeout: Seconds for a program or for helm.
        charts: Whether charts that a program installs are rendered.
        values: Files with values of a chart.
        allowance: What a program may see and do.
        assume_empty_base: Whether a base whose program fails counts as empty.
        head: The head as another job compiled it; nothing of it is run here then. None takes the working tree.
    """

    base: str | None
    base_path: Path | None = None
    stack: str | None = None
    config: Mapping[str, str]
    provider: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    charts: bool = False
    values: Sequence[Path] = ()
    allowance: Allowance = ONLY_ITS_OWN
    assume_empty_base: bool = False
    head: Compiled | None = None

    @property
    def label(self) -> str:
        """The user's name for the base."""
        return self.base if self.base is not None else str(self.base_path)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sides:
    """Both sides, without their secrets.

    Args:
        base: The program before.
        head: The program after.
        notes: What the reader must know about them.
        locate: Where fields of objects of the head are written.
        in_force: What was kept from the programs that ran, of `sandbox.ALL`; None where none ran.
        opaque: URNs of objects of the head whose secrets were never known.
        base_side: Where the base was read.
        head_side: Where the head was read.
        base_failure: Why the base did not run; None where it ran, or where the head is the first to have it.
        folder: Where relative places of the head begin, seen from the top of the repository; empty for the top itself.
    """

    base: Program
    head: Program
    base_side: ReviewedSide
    head_side: ReviewedSide
    opaque: frozenset[str]
    notes: tuple[str, ...] = ()
    locate: Locate | None = None
    in_force: tuple[str, ...] | None = None
    base_failure: Problem | None = None
    folder: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Base:
    """Where the base lies.

    Args:
        root: The folder or file at the base; it may not exist there.
        top: Its repository, or *root* itself where it is in none.
        head_top: The repository of the head, likewise.
        commit: The full hash of the base; empty for a folder.
        left_out: What of it is not there.
    """

    root: Path
    top: Path
    head_top: Path
    commit: str = ""
    left_out: tuple[NotSeen, ...] = ()


def read_sides(
    source: Source,
    side_options: SideOptions,
    project: Project | None,
    tell: Callable[[str], None] = lambda _: None,
) -> Sides:
    """Make the objects of both sides.

    Args:
        source: What is reviewed.
        side_options: Options of the review.
        project: Of a program, as the tree has it that is trusted; None where it has none there yet.
        tell: Takes what is done next.

    Raises:
        ProgramError: When the head cannot be had, or the base revision; no message holds a secret.
    """
    known = list(_known_secrets(side_options, project))
    mask = report_mask(known)
    try:
        repository = None if side_options.base_path else _repository_of(source)
        if side_options.head is None and not side_options.allowance.everything:
            check_start(repository.top if repository else _top_of(source.root))
        # A head that was compiled elsewhere has no working tree here.
        tree = repository if side_options.head is None else None
        if tree and source.kind == "manifests" and may_deploy(source.root):
            # What its objects deploy may lie anywhere in the repository.
            tree = replace(tree, prefix="")
        state = tree.uncommitted(everything=True) if tree else {}
        # Before a program runs: what it writes is not what was reviewed.
        head_side = _side_of_head(source, side_options, state if tree else None)
        tell(f"unpacking {side_options.label}")
        with _base(source, side_options, repository) as base:
            tell(f"reading both sides of {source.shown}")
            base_side = _side_of_base(side_options, base, mask)
            made = _make(source, side_options, project, base, label_of(source, repository))
            if source.kind == "program":
                with contextlib.suppress(ProblemsError):
                    known += secret_texts_of(load_project(base.root, side_options.stack, side_options.config))
        notes = (
            [*notes_of_tree(tree, side_options.base, state)] if tree and side_options.base is not None else []
        )
    except ProblemsError as error:
        raise ProgramError(map(mask.problem, error.problems)) from None
    before, after = made.before, made.after
    for each in (*before.program.releases, *after.program.releases):
        known += secret_values(each.values)
    mask = report_mask(known)
    first, second = without_secrets(before.program, after.program, mask)
    pairs = zip(after.program.objects, second.objects, strict=True)
    failure = None if side_options.assume_empty_base else made.failure
    # A base that did not run is a problem of its own, and counts as nothing.
    seen = () if failure else first.not_seen
    left_out = tuple(sorted({*seen, *base.left_out}))
    return Sides(
        base=replace(first, not_seen=left_out),
        head=second,
        notes=tuple(map(mask.text, notes)),
        locate=after.locate,
        base_side=base_side,
        head_side=head_side,
        opaque=frozenset(masked.urn for each, masked in pairs if holds_secret(each.manifest)),
        in_force=made.in_force,
        base_failure=None if failure is None else mask.problem(failure),
        folder=_find_folder_of_places(source, repository),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Made:
    """Both sides as they come, with what was kept from programs that ran for them, and why the base did not run."""

    before: Side
    after: Side
    in_force: tuple[str, ...] | None = None
    failure: Problem | None = None


def compile_both(
    base: Path,
    head: Path,
    *,
    base_label: str,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> tuple[Program, Program]:
    """Run both programs, each in a process of its own.

    A base without a project, or whose program fails, counts as empty: everything then is new, and the review says so.

    Raises:
        ProgramError: When the head cannot be run.
    """
    config = config or {}
    source = Source(kind="program", root=head, shown=str(head), stack=stack, config=config)
    side_options = SideOptions(base=None, base_path=base, stack=stack, config=config, timeout=timeout)
    made = _run_both(source, side_options, _Base(root=base, top=base, head_top=head), base_label)
    return made.before.program, made.after.program


def _run_both(source: Source, side_options: SideOptions, base: _Base, label: str) -> _Made:
    # One after the other: a head that runs beside the base could keep it from answering, and a base without an answer hides
    # what the head takes away.
    base_run = _start_base(source, base, side_options)
    found = _result_of_base(base_run)
    head_run = start(source.root, base.head_top, side_options)
    after = _of_provider(head_run.result(), side_options)
    in_force = tuple(each for each in head_run.in_force if each in base_run.in_force)
    before = _base_of(found, after, side_options, label)
    return _Made(
        before=Side(program=before),
        after=Side(program=after),
        in_force=in_force,
        failure=_failure_of(found),
    )


def _of_provider(program: Program, side_options: SideOptions) -> Program:
    """The part of the head that is reviewed; raises `provider-not-known`."""
    return of_provider(program, side_options.provider) if side_options.provider is not None else program


_LACKING: Final = frozenset({"no-project", "stack-not-known"})
"""Codes of a base that lacks the program or its stack, because the change adds it."""


def _failure_of(found: Program | ProblemsError) -> Problem | None:
    """Return why the base did not run; None where it ran, or lacks what the head adds."""
    if isinstance(found, Program) or any(each.code in _LACKING for each in found.problems):
        return None
    return found.problems[0]


def _base_of(
    found: Program | ProblemsError, after: Program, side_options: SideOptions, label: str
) -> Program:
    if not isinstance(found, Program):
        return _empty(after, label, found)
    # A cluster that the change adds has nothing at the base.
    return keep_provider(found, side_options.provider) if side_options.provider is not None else found


def start(root: Path, top: Path, side_options: SideOptions, environment: Path | None = None) -> RunningSynth:
    """Start the program in *root*, which may read the repository at *top*, and *environment* in place of one that it lacks."""
    return RunningSynth(
        root,
        inside=top,
        stack=side_options.stack,
        config=side_options.config,
        timeout=side_options.timeout,
        allowance=side_options.allowance,
        environment=environment,
    )


def _start_base(source: Source, base: _Base, side_options: SideOptions) -> RunningSynth:
    """Start the program of the base, with what is installed in the working tree and belongs to no commit."""
    lent = _lent_environment(source, side_options)
    is_ours = base.top.resolve() != base.head_top.resolve() and side_options.base_path is None
    if lent is not None and lent.name == "node_modules" and is_ours:
        # Node.js and TypeScript look for packages beside the program and above it, and nowhere else.
        place = base.top / lent.relative_to(base.head_top.resolve())
        if place.parent.is_dir() and not os.path.lexists(place):
            place.symlink_to(lent)
    return start(base.root, base.top, side_options, lent)


def _lent_environment(source: Source, side_options: SideOptions) -> Path | None:
    """Return the virtual environment of the working tree, for the base, whose files are those of a commit.

    None outside of the repository, and none with a file that git tracks: the author of the change would write what the
    base answers.
    """
    with contextlib.suppress(ProblemsError):
        repository = find_repository(source.root)
        top = repository.top.resolve()
        named = load_project(source.root, side_options.stack, side_options.config, (top,)).environment
        if named is None or not named.is_dir():
            return None
        # Git lists no file behind a link, which a commit can hold.
        environment = named.resolve()
        tracked = repository.git("ls-files", "-z")
        if tracked is None or top not in environment.parents:
            return None
        folder = f"{environment.relative_to(top).as_posix()}/".casefold()
        if not any(path.casefold().startswith(folder) for path in tracked.split("\0")):
            return environment
    return None


def _result_of_base(running: RunningSynth) -> Program | ProblemsError:
    """The base, or why its program gives none, which counts as empty; a process that was ended is no answer.

    Raises:
        ProgramError: A code of `NO_ANSWER`.
    """
    try:
        return running.result()
    except ProblemsError as error:
        if any(each.code in NO_ANSWER for each in error.problems):
            raise
        return error


@contextlib.contextmanager
def _base(source: Source, side_options: SideOptions, repository: Repository | None) -> Iterator[_Base]:
    if repository is None:
        assert side_options.base_path is not None  # noqa: S101  (one of both is given)
        if not side_options.base_path.exists():
            raise ProgramError.of(
                path="--base-path",
                code="base-not-found",
                message=f"{side_options.base_path} is not there",
                hint=nearest_path(side_options.base_path) or "name the folder with the former state",
            )
        root = side_options.base_path.absolute()
        yield _Base(root=root, top=_top_of(root), head_top=_top_of(source.root))
        return
    assert side_options.base is not None  # noqa: S101  (one of both is given)
    if not source.root.exists():
        # A pull request may add the folder; the tree that is trusted does not have it then.
        commit = repository.resolve(side_options.base)
        yield _Base(root=source.root, top=repository.top, head_top=repository.top, commit=commit)
        return
    # What objects of a folder deploy lies beside it.
    only_directory = source.kind == "manifests" and not (
        side_options.head is None and may_deploy(source.root)
    )
    with archived(repository, side_options.base, only_directory=only_directory) as revision:
        yield _Base(
            root=revision.root,
            top=revision.top,
            head_top=repository.top,
            commit=revision.commit,
            left_out=revision.left_out,
        )


def _make(
    source: Source, side_options: SideOptions, project: Project | None, base: _Base, label: str
) -> _Made:
    if side_options.head is not None:
        return _beside_compiled(source, side_options, project, side_options.head, base, label)
    if source.kind == "program":
        made = _run_both(source, side_options, base, side_options.label)
        return replace(
            made,
            before=complete(made.before.program, base.root, side_options, inside=base.top),
            after=complete(made.after.program, source.root, side_options, inside=base.head_top),
        )
    if source.kind in RENDERED:
        return _render_both(source, side_options, base, label)
    return _read_both(source, side_options, base, label, head=source.root, head_inside=base.head_top)


def _beside_compiled(
    source: Source,
    side_options: SideOptions,
    project: Project | None,
    head: Compiled,
    base: _Base,
    label: str,
) -> _Made:
    """The base, made here, beside a head that another job compiled."""
    if side_options.base_path is None and head.path != label:
        raise ProgramError([of_another_path(head, label)])
    if head.failed:
        raise ProgramError(head.failed)
    if source.kind == "manifests":
        with tempfile.TemporaryDirectory(prefix="dra-infra-head-") as folder:
            inside = Path(folder).resolve()
            root = unpack(head, inside)
            made = _read_both(source, side_options, base, label, head=root, head_inside=inside)
        program = made.after.program
        links = {link_not_seen(f"{Path(source.shown).as_posix()}/{name}") for name in head.left_out}
        program = replace(program, not_seen=tuple(sorted({*program.not_seen, *links})))
        return replace(made, after=replace(made.after, program=program))
    assert head.program is not None  # noqa: S101  (it was checked where the file was read)
    # Who names the project decides which comment is written over, so the head has no say in it.
    if source.kind == "program":
        name, stack = named_by(project, side_options, label)
        if stack and head.program.stack != stack.rpartition("/")[2]:
            raise ProgramError([of_another_stack(head.program.stack, stack)])
        after = _of_provider(replace(head.program, project=name, stack=stack), side_options)
        running = _start_base(source, base, side_options)
        found = _result_of_base(running)
        before = _base_of(found, after, side_options, side_options.label)
        side = complete(before, base.root, side_options, inside=base.top)
        return _Made(
            before=side,
            after=Side(program=after),
            in_force=running.in_force,
            failure=_failure_of(found),
        )
    after = replace(head.program, project=label, stack="")
    before_side, failure = _render_base(source, side_options, base, label, after)
    return _Made(before=before_side, after=Side(program=after), failure=failure)


def named_by(project: Project | None, side_options: SideOptions, label: str) -> tuple[str, str]:
    """Project and stack of a program, as the tree says that is trusted; its path where the tree does not have it yet."""
    return (project.name, project.stack) if project else (label, side_options.stack or "")


def complete(program: Program, root: Path, side_options: SideOptions, *, inside: Path) -> Side:
    """A program with what its charts make, where that is asked for, and the releases that its project pins."""
    program = with_charts(program, root, inside=inside) if side_options.charts else program
    return Side(program=replace(program, pins=read_package_pins(root)))


def _read_both(
    source: Source, side_options: SideOptions, base: _Base, label: str, *, head: Path, head_inside: Path
) -> _Made:
    checkouts = _find_checkouts(base, is_compiled=side_options.head is not None)
    before_side, after_side = (
        read_side(
            root,
            inside=top,
            shown=source.shown,
            label=label,
            config=side_options.config,
            checkout=checkout,
        )
        for root, top, checkout in zip((base.root, head), (base.top, head_inside), checkouts, strict=True)
    )
    if not any((each.program.objects or each.program.problems) for each in (before_side, after_side)):
        raise ProgramError.of(
            path=source.shown,
            code="no-project",
            message="holds neither a Pulumi project, nor a chart, nor a manifest, and did not at the base",
            hint="name the folder with Pulumi.yaml, Chart.yaml, or YAML and JSON files",
        )
    # What cannot be read at the base was there before, and is not what this change is asked about.
    told = (NotSeen(what="base", name=each.path, reason=str(each)) for each in before_side.program.problems)
    program = before_side.program
    unread = tuple(
        sorted({*program.not_seen, *(each for each in told if "duplicate-object" not in each.reason)})
    )
    before_side = replace(before_side, program=replace(program, problems=(), not_seen=unread))
    return _Made(before=before_side, after=after_side)


def _find_checkouts(base: _Base, *, is_compiled: bool = False) -> tuple[FindCheckout, FindCheckout]:
    """Return what finds the repositories of base and head; the base, which is unpacked, was cloned from where the head was.

    A compiled head has the files of its folder alone, and what its objects deploy is not there. So nothing of the base is read either.
    """
    if is_compiled:
        return (lambda: None), (lambda: None)
    return (
        lambda: Checkout(top=base.top, remotes=find_checkout(base.head_top).remotes),
        lambda: find_checkout(base.head_top),
    )


def _render_both(source: Source, side_options: SideOptions, base: _Base, label: str) -> _Made:
    _, find_head = _find_checkouts(base)
    after = render(
        source.root,
        side_options.values,
        source,
        side_options,
        label,
        inside=base.head_top,
        checkout=find_head,
    )
    lend_dependencies(source.root, base.root)
    before, failure = _render_base(source, side_options, base, label, after.program)
    return _Made(before=before, after=after, failure=failure)


def _render_base(
    source: Source, side_options: SideOptions, base: _Base, label: str, after: Program
) -> tuple[Side, Problem | None]:
    tops = (source.root, base.root) if side_options.base_path else (base.head_top, base.top)
    files, missing = values_at_base(side_options.values, *tops)
    try:
        find_base, _ = _find_checkouts(base, is_compiled=side_options.head is not None)
        before = render(base.root, files, source, side_options, label, inside=base.top, checkout=find_base)
    except ProblemsError as error:
        refused = any(each.code == "chart-not-rendered" for each in error.problems)
        if refused and side_options.head is not None and (base.root / "Chart.lock").is_file():
            # What it depends on was not fetched here, and a base that counts as empty hides what the head takes away.
            raise
        failure = None if _lacks(source, base) else error.problems[0]
        return Side(program=_empty(after, side_options.label, error)), failure
    told = {NotSeen(what="values of the base", name=each.name, reason="the file is new") for each in missing}
    program = replace(before.program, not_seen=tuple(sorted({*before.program.not_seen, *told})))
    return replace(before, program=program), None


_MARKS: Final[Mapping[str, Sequence[str]]] = {"chart": ("Chart.yaml",), "kustomization": kustomizations.FILES}
"""The files of which a folder has one that is a chart or a kustomization."""


def _lacks(source: Source, base: _Base) -> bool:
    """Tell whether the base has no chart or kustomization, because the change adds it; a link that was left out is one."""
    left_out = {base.top / each.name for each in base.left_out}
    marks = (base.root / name for name in _MARKS[source.kind])
    return not any(each.is_file() or each in left_out for each in marks)


def render(
    root: Path,
    files: Sequence[Path],
    source: Source,
    side_options: SideOptions,
    label: str,
    *,
    inside: Path,
    checkout: FindCheckout = lambda: None,
) -> Side:
    """The objects of the chart in *root* with the values of *files*, or of the kustomization; no link leads out of *inside*."""
    if source.kind == "kustomization":
        return build_side(
            root,
            inside=inside,
            shown=source.shown,
            label=label,
            config=side_options.config,
            timeout=side_options.timeout,
            checkout=checkout,
        )
    return render_side(
        root,
        files,
        inside=inside,
        shown=source.shown,
        label=label,
        config=side_options.config,
        timeout=side_options.timeout,
        checkout=checkout,
    )


def _empty(after: Program, label: str, error: ProblemsError) -> Program:
    missing = NotSeen(what="base", name=label, reason=f"counts as empty: {error.problems[0].message}")
    return Program(project=after.project, stack=after.stack, not_seen=(missing,))


def _side_of_base(side_options: SideOptions, base: _Base, mask: SecretMask) -> ReviewedSide:
    if side_options.base is None:
        return read_side_of_tree(base.root)
    return ReviewedSide(origin="commit", label=mask.text(side_options.base), commit=base.commit)


def _side_of_head(source: Source, side_options: SideOptions, state: Mapping[str, str] | None) -> ReviewedSide:
    if side_options.head is not None:
        return ReviewedSide(
            origin="compiled", commit=side_options.head.commit, is_changed=side_options.head.is_changed
        )
    return read_side_of_tree(source.root, state)


def _known_secrets(side_options: SideOptions, project: Project | None) -> Iterator[str]:
    yield from secret_texts(os.environ)
    yield from secret_texts(side_options.config)
    if project:
        yield from secret_texts_of(project)
    if side_options.values:
        with contextlib.suppress(ProblemsError):
            yield from secret_values(read_values(side_options.values))


def label_of(source: Source, repository: Repository | None) -> str:
    """The label of manifests, which tells them apart from those of other folders: the path in the repository."""
    if not source.root.exists():
        return Path(source.shown).as_posix()
    return (repository.prefix if repository else "") or source.root.name or "manifests"


def _repository_of(source: Source) -> Repository:
    """The repository of a source, out of which its typed path may not lead; raises what `find_repository` does."""
    typed = Path(source.shown)
    if typed.exists() and os.path.realpath(typed) != os.path.abspath(typed):  # noqa: PTH100  (without following links)
        find_repository(typed)
    return find_repository(existing(source))


def _top_of(root: Path) -> Path:
    """The repository around a folder or file, all of which its side may read; itself where it is in none."""
    with contextlib.suppress(ProgramError):
        return find_repository(root).top
    return root


def _find_folder_of_places(source: Source, repository: Repository | None) -> str:
    """Return the folder that places are relative to: of a program its own, else the one that the path was typed in."""
    start = source.root if source.kind == "program" else Path.cwd()
    if start.suffix == ".py":
        start = start.parent
    top = repository.top if repository else _top_of(start)
    folder = os.path.relpath(start.resolve(), top.resolve())
    return "" if folder == "." else Path(folder).as_posix()


def existing(source: Source) -> Path:
    """The path, or the nearest folder above it."""
    return next(each for each in (source.root, *source.root.parents) if each.exists())
