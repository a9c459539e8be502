"""The answer of `dra-infra review`: both sides of a change, read, checked, placed and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from dra_infra.answers.checking import check
from dra_infra.answers.placing import place_scene_within_limits
from dra_infra.answers.reading import SceneOptions
from dra_infra.answers.scene import Deployed, Scene
from dra_infra.answers.settings import (
    check_settings,
    choose_fleet,
    on_server_of,
    read_snapshot,
    set_prices,
    with_options,
)
from dra_infra.answers.upgrading import check_order, make_scenes
from dra_infra.answers.upgrading import upgrade as compare_releases
from dra_infra.catalog.snapshots import Snapshot
from dra_infra.catalog.workload_kinds import load_workload_kinds
from dra_infra.errors import InvalidSpecError, Problem, ProblemsError, ProgramError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import WorkloadKinds
from dra_infra.placement.placement import Placement
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program.confinement import describe, read_allowance
from dra_infra.program.preview import previewing
from dra_infra.program.program_json import load_head
from dra_infra.program.project import FLEET_SETTING, Project, driver_of, load_project
from dra_infra.program.project_files import project_file
from dra_infra.program.synth import DEFAULT_TIMEOUT
from dra_infra.program_objects import EnginePreview, Program, ProgramObject
from dra_infra.review import Review
from dra_infra.review import review as review_placed
from dra_infra.review.changes import Change, compare_programs
from dra_infra.review.options import find_staying, with_ignored_changes
from dra_infra.review.reviews import FailOn, HowMade
from dra_infra.sources.repository import find_repository
from dra_infra.sources.sides import SideOptions, existing, label_of, named_by, read_sides
from dra_infra.sources.subject import Source, check_kind_of_head, find_source, trusted_source


class ReviewOptions(SceneOptions, total=False):
    """The options of a review: those of a scene, and where both sides come from.

    Args:
        base: Git revision to compare with; None takes `HEAD` where no `base_path` is given.
        base_path: Folder or file to compare with, in place of a revision.
        head: The head as `dra-infra compile` wrote it; None takes the working tree.
        head_commit: The commit that `head` must have been compiled from.
        source: `program`, `manifests`, `chart` or `kustomization`; None reads it off the path.
        values: Files with values of a chart; the last wins.
        timeout: Seconds that a program may run.
        charts: Whether charts that a program installs are rendered by helm.
        allow: What a program may use besides its repository: `env:NAME`, `read:PATH`, `write:PATH`, `network` or `all`.
        engine: Whether the preview of the real engine is joined.
        policy_packs: Folders of policy packs that the engine runs.
        refresh: Whether the engine reads the cluster first.
        assume_empty_base: Whether a base whose program fails counts as empty; else nothing is decided and the gate is closed.
    """

    base: str | None
    base_path: Path | None
    head: Path | None
    head_commit: str | None
    source: str | None
    values: Sequence[Path]
    timeout: float
    charts: bool
    allow: Sequence[str]
    engine: bool
    policy_packs: Sequence[Path]
    refresh: bool
    assume_empty_base: bool


@dataclass(frozen=True, kw_only=True)
class ReviewQuestion:
    """A review before it is made.

    Args:
        source: What is reviewed.
        side_options: How its sides are made.
        trusted: The source as the trusted tree or the user says it; None where only the head says what it is.
        options: All options.
    """

    source: Source
    side_options: SideOptions
    trusted: Source | None
    options: ReviewOptions


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """A review that was made.

    Args:
        review: What changes, whether it fits, and what breaks.
        confinement: What the programs that ran were kept from, in words; empty where none ran.
        has_preview: False where the engine was asked for and gave no preview.
    """

    review: Review
    confinement: str = ""
    has_preview: bool = True

    def exit_code(self, fail_on: FailOn = "problem") -> int:
        """0 when the gate is open, 1 when it is closed, 2 when the engine was asked for and gave no preview.

        Args:
            fail_on: The least finding that closes the gate.
        """
        if not self.has_preview:
            return 2
        return 1 if self.review.is_blocked(fail_on) else 0


def review(path: Path | str = ".", **options: Unpack[ReviewOptions]) -> Reviewed:
    """Compare a Pulumi program, manifests or a chart with what it was: what changes, whether it fits, and what breaks.

    Programs run confined, as far as the kernel can hold that.

    Args:
        path: A Pulumi project, a folder or file of manifests, or the folder of a chart or kustomization.
        options: Where the sides come from, the hardware and the release.

    Raises:
        InvalidSpecError: For a minor or gate that there is not.
        ProblemsError: When there is no answer: the head or the base cannot be had, or the fleet.
    """
    return answer_review(with_head(ask_review(path, **options)))


def ask_review(path: Path | str = ".", **options: Unpack[ReviewOptions]) -> ReviewQuestion:
    """Return the question of a review, before any program runs or file is compared.

    Args:
        path: A Pulumi project, a folder or file of manifests, or the folder of a chart or kustomization.
        options: Where the sides come from, the hardware and the release.

    Raises:
        InvalidSpecError: For a minor or gate that there is not.
        ProgramError: `no-project`.
    """
    path = Path(path)
    source = options.get("source")
    stack = options.get("stack")
    base, base_path = options.get("base"), options.get("base_path")
    config = with_options(
        options.get("config", {}),
        kubernetes=options.get("kubernetes"),
        driver=options.get("driver"),
        gates=options.get("gates", {}),
    )
    side_options = SideOptions(
        base="HEAD" if base is None and base_path is None else base,
        base_path=base_path,
        stack=stack,
        config=config,
        provider=options.get("provider"),
        timeout=options.get("timeout", DEFAULT_TIMEOUT),
        charts=options.get("charts", False),
        values=options.get("values", ()),
        allowance=read_allowance(options.get("allow", ())),
        assume_empty_base=options.get("assume_empty_base", False),
    )
    find = find_source if options.get("head") is None else trusted_source
    trusted = find(path, source, stack=stack, config=config)
    found = trusted or Source(
        kind="program", root=path.absolute(), shown=str(path), stack=stack, config=config
    )
    return ReviewQuestion(source=found, side_options=side_options, trusted=trusted, options=options)


def with_head(question: ReviewQuestion) -> ReviewQuestion:
    """Return the question with the head that another job compiled, where one is named.

    Raises:
        ProgramError: `compiled-of-another-kind`, and the codes of `load_head`.
    """
    head = question.options.get("head")
    source = question.source
    if head is None:
        return question
    compiled = load_head(head, question.options.get("head_commit"))
    # Only where the trusted tree lacks the path, or has nothing there, does the head say how it is read.
    source = question.trusted or replace(source, kind=compiled.kind)
    check_kind_of_head(source, compiled, question.options.get("source"))
    return replace(question, source=source, side_options=replace(question.side_options, head=compiled))


def find_review_name(question: ReviewQuestion) -> tuple[str, str] | None:
    """Return the project and the stack that a review has, also where it cannot be made; None where they are not known.

    Where the head is compiled elsewhere, the name is what the tree here says.
    """
    source = question.source
    side_options = question.side_options
    project = None
    with suppress(ProblemsError):
        if source.kind == "program":
            project = load_project(source.root, source.stack, source.config)
    if source.kind == "program" and question.options.get("head") is None:
        return (project.name, project.stack) if project else None
    with suppress(ProblemsError):
        label = label_of(source, None if side_options.base_path else find_repository(existing(source)))
        return named_by(project, side_options, label) if source.kind == "program" else (label, "")
    return None


def answer_review(
    question: ReviewQuestion,
    *,
    tell: Callable[[str], None] = lambda _: None,
    warn: Callable[[Sequence[Problem]], None] = lambda _: None,
) -> Reviewed:
    """Read both sides, check the head, place both, and compare them.

    Args:
        question: The review, with its head.
        tell: Called with what is being done, for a progress line.
        warn: Called with warnings about the options before any program runs.

    Raises:
        ProblemsError: When there is no answer: the head or the base cannot be had, or the fleet.
    """
    source, side_options, options = question.source, question.side_options, question.options
    project = _trusted_project(source, side_options)
    with _previewing(source, side_options, project, options) as wait_for_preview:
        snapshot, fleet = options.get("snapshot"), options.get("fleet")
        driver = driver_of(project.config if project else side_options.config)
        cluster = read_snapshot(snapshot, driver=driver) if snapshot else None
        if project and not (cluster and side_options.head):
            warn(check_settings(project, side_options.stack, side_options.config))
        chosen = cluster.fleet if cluster else choose_fleet(fleet, project, side_options.config)
        chosen = set_prices(chosen, options.get("prices")) if chosen else None
        sides = read_sides(source, side_options, project, tell)
        if wait_for_preview is not None:
            tell("waiting for the engine's preview")
        preview = wait_for_preview() if wait_for_preview else None
    tell("checking and placing")
    gates, kinds = options.get("gates", {}), options.get("kinds")
    result = compare(
        on_server_of(replace(sides.base, gates={**sides.base.gates, **gates}), cluster),
        on_server_of(replace(sides.head, gates={**sides.head.gates, **gates}), cluster),
        base_label=side_options.label,
        fleet=chosen,
        snapshot=cluster,
        engine=preview,
        kinds=load_workload_kinds(kinds) if kinds else None,
        made=HowMade(base_failure=sides.base_failure, opaque=sides.opaque, locate=sides.locate),
    )
    of_fleet = () if fleet else _note_on_fleet(source, side_options, project)
    notes = (*sides.notes, *of_fleet, *result.notes)
    provenance = replace(result.provenance, base=sides.base_side, head=sides.head_side)
    others = (
        *(["helm"] if side_options.charts else []),
        *(["pulumi preview"] if options.get("engine") else []),
    )
    return Reviewed(
        review=replace(result, source=source.kind, notes=notes, provenance=provenance, folder=sides.folder),
        confinement=describe(sides.in_force, side_options.allowance, others)
        if sides.in_force is not None
        else "",
        has_preview=preview is None or preview.failure is None,
    )


def _previewing(
    source: Source, side_options: SideOptions, project: Project | None, options: ReviewOptions
) -> AbstractContextManager[Callable[[], EnginePreview] | None]:
    """Start the engine's preview where it is asked for."""
    if not options.get("engine"):
        return nullcontext()
    if project is None:
        what = "a chart" if source.kind == "chart" else "manifests"
        raise ProgramError.of(
            path="--engine",
            code="engine-not-for-source",
            message=f"{source.shown} is {what}: only a program has a stack",
            hint="leave --engine out, or name the folder of a Pulumi project",
        )
    return previewing(
        project,
        stack=side_options.stack,
        config=side_options.config,
        timeout=side_options.timeout,
        policy_packs=tuple(options.get("policy_packs", ())),
        refresh=options.get("refresh", False),
    )


def _trusted_project(source: Source, side_options: SideOptions) -> Project | None:
    """Return the project whose settings count; None for what is no program, and for one that a pull request is the first to add."""
    if source.kind != "program":
        return None
    folders = (source.root, *source.root.parents)
    is_there = source.root.exists() and any(map(project_file, folders))
    if not is_there and side_options.head is not None:
        return None
    return load_project(source.root, source.stack, source.config)


def _note_on_fleet(source: Source, side_options: SideOptions, project: Project | None) -> tuple[str, ...]:
    """Return a note where a compiled head names hardware of its own, for it is placed on what the base names."""
    trusted = project.config.get(FLEET_SETTING, "") if project else ""
    if source.kind != "program" or side_options.head is None or side_options.head.fleet in ("", trusted):
        return ()
    placed = f"it is placed on {trusted!r}, as the base says" if trusted else "nothing is placed"
    return (f"The head sets {FLEET_SETTING} to {side_options.head.fleet[:200]!r}; {placed}.",)


def compare(
    base: Program,
    head: Program,
    *,
    base_label: str,
    fleet: Fleet | None = None,
    snapshot: Snapshot | None = None,
    engine: EnginePreview | None = None,
    kinds: WorkloadKinds | None = None,
    made: HowMade | None = None,
) -> Review:
    """Check both sides, place them on *fleet*, and compare them.

    Args:
        base: The program before.
        head: The program after.
        base_label: What the user calls the base.
        fleet: Where pods are placed; one without nodes places nothing, and its classes count.
        snapshot: What runs there.
        engine: The engine's preview of the head.
        kinds: Kinds of objects that make pods; None takes those that the catalogue knows.
        made: What is known of the runs of both sides. If the base did not run, no change is known, and the gate is closed.
    """
    made = made or HowMade()
    running = Running.of(snapshot, base, head) if snapshot else NOTHING_RUNS
    is_whole = not any(each.severity == "error" for each in head.problems)
    meant = head
    head = with_ignored_changes(base, head)
    changes = () if made.base_failure else compare_programs(base, head)
    staying = tuple(find_staying(changes, base)) if is_whole else ()
    after = Scene.of(
        replace(head, objects=(*head.objects, *staying)) if staying else head,
        fleet=fleet,
        running=running,
        kinds=kinds,
        locate=made.locate,
        deployed=_find_deployed(head, changes, staying),
    )
    checked = check(after, target=head.target)
    placed: tuple[Placement | None, Placement | None] = (None, None)
    if fleet is not None and (fleet.nodes or fleet.pools):
        before = Scene.of(base, fleet=fleet, running=running, kinds=kinds, deployed=_all_of(base))
        placed = (
            None if made.base_failure else place_scene_within_limits(before, check(before)),
            place_scene_within_limits(after, checked),
        )
    result = review_placed(
        base,
        replace(head, problems=checked.problems),
        base_label=base_label,
        before=placed[0],
        after=placed[1],
        running=running,
        engine=engine,
        kinds=kinds,
        changes=changes,
        made=replace(made, is_whole=is_whole, meant=meant),
    )
    if made.base_failure:
        return result
    return _with_upgrade(result, base, head, fleet=fleet, running=running, kinds=kinds)


def _with_upgrade(
    result: Review,
    base: Program,
    head: Program,
    *,
    fleet: Fleet | None,
    running: Running,
    kinds: WorkloadKinds | None,
) -> Review:
    """Return the review with what another release changes for the objects of the base, where both sides name their release."""
    older, newer = base.kubernetes, head.kubernetes
    if older is None or newer is None or older == newer or not base.objects:
        return result
    try:
        check_order(older, newer)
    except InvalidSpecError as error:
        return replace(result, notes=(*result.notes, error.problems[0].message))
    scene = Scene.of(base, fleet=fleet, running=running, kinds=kinds)
    return replace(result, upgrade=compare_releases(make_scenes(scene, newer, base.gates)))


def _find_deployed(head: Program, changes: Sequence[Change], staying: Sequence[ProgramObject]) -> Deployed:
    """Return the objects of the head that the base has too: the base is what is deployed."""
    different = {each.urn for each in changes}
    same = {each.urn for each in head.objects} - different
    return Deployed(
        same=frozenset(same | {each.urn for each in staying}),
        changed=frozenset(each.urn for each in changes if each.action == "changed"),
    )


def _all_of(base: Program) -> Deployed:
    return Deployed(same=frozenset(each.urn for each in base.objects))
