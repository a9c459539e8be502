"""`dra-infra review`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dra_infra.catalog import load_fleet
from dra_infra.cli.progress import progress
from dra_infra.cli.review_engine import EngineAsked, previewing
from dra_infra.cli.review_manifests import Locate
from dra_infra.cli.review_missing import write_no_review
from dra_infra.cli.review_reports import print_report, write_reports
from dra_infra.cli.review_sides import Asked, compile_both, read_sides
from dra_infra.cli.review_source import Source, find_source
from dra_infra.cli.settings import FLEET_SETTING, choose_fleet, load_checked
from dra_infra.cli.snapshots import read_snapshot
from dra_infra.errors import Problem, ProblemsError
from dra_infra.model.engine_preview import EnginePreview
from dra_infra.model.fleet import Fleet
from dra_infra.model.gates import SUPPORTED_MINORS
from dra_infra.model.program import Program
from dra_infra.model.snapshot import Snapshot
from dra_infra.planning import Review, review
from dra_infra.planning.immutability import LocateField
from dra_infra.planning.place_sides import place_sides
from dra_infra.planning.reviews import FailOn
from dra_infra.simulation import Placement
from dra_infra.validation import check_program

__all__ = ["compare", "compile_both", "run"]


def run(
    path: Path,
    *,
    asked: Asked,
    kind: str | None,
    fleet: str | None,
    snapshot: Path | None,
    fail_on: FailOn,
    output: str,
    files: Mapping[str, Path | None],
    engine: EngineAsked | None = None,
) -> int:
    """Print the review; 1 when the gate is closed, 2 when the engine was asked for and gave no preview.

    Raises:
        ProblemsError: When there is no answer: the head or the base cannot be had, or the fleet, or a file not be written.
    """
    source = find_source(path, kind)
    try:
        return _run(
            source,
            asked,
            fleet=fleet,
            snapshot=snapshot,
            fail_on=fail_on,
            output=output,
            files=files,
            engine=engine,
        )
    except ProblemsError as error:
        markdown = files.get("markdown")
        if markdown is not None:
            write_no_review(source, asked, markdown, error.problems)
        raise


def _run(
    source: Source,
    asked: Asked,
    *,
    fleet: str | None,
    snapshot: Path | None,
    fail_on: FailOn,
    output: str,
    files: Mapping[str, Path | None],
    engine: EngineAsked | None,
) -> int:
    with progress() as tell, previewing(source, asked, engine) as wait_for_preview:
        cluster = read_snapshot(snapshot) if snapshot else None
        if cluster and source.kind == "program":
            load_checked(source.root, asked.stack, asked.config)
        chosen = cluster.fleet if cluster else _choose_fleet(fleet, source, asked)
        sides = read_sides(source, asked, tell)
        if engine is not None:
            tell("waiting for the engine's preview")
        preview = wait_for_preview()
        tell("checking and placing")
        result = compare(
            sides.before,
            sides.after,
            base_label=asked.label,
            fleet=chosen,
            snapshot=cluster,
            locate=sides.locate,
            opaque=sides.opaque,
            engine=preview,
        )
        result = replace(result, source=source.kind, notes=(*sides.notes, *result.notes))
        tell("writing")
        write_reports(result, files)
    print_report(result, output)
    if preview is not None and preview.failure is not None:
        return 2
    return 1 if result.gate(fail_on) else 0


def compare(
    before: Program,
    after: Program,
    *,
    base_label: str,
    fleet: Fleet | None = None,
    snapshot: Snapshot | None = None,
    locate: Locate | None = None,
    opaque: frozenset[str] | None = None,
    engine: EnginePreview | None = None,
) -> Review:
    """Check the head, place both on *fleet*, and put them side by side.

    Args:
        before: The base.
        after: The head.
        base_label: What the user calls the base.
        fleet: Where pods are placed; one without nodes places nothing, and its classes count.
        snapshot: What runs there.
        locate: Where fields of the head's objects are written; None takes the places of the objects.
        opaque: URNs of the head's objects whose secrets were never known; None takes all that show one.
        engine: The engine's preview of the head.
    """
    checked = replace(after, problems=_check(after, fleet, locate))
    placed: tuple[Placement | None, Placement | None] = (None, None)
    if fleet is not None and fleet.nodes:
        placed = place_sides(before, after, fleet, snapshot)
    return review(
        before,
        checked,
        base_label=base_label,
        before=placed[0],
        after=placed[1],
        snapshot=snapshot,
        opaque=opaque,
        engine=engine,
        locate=_by_urn(after, locate),
    )


def _by_urn(program: Program, locate: Locate | None) -> LocateField | None:
    if locate is None:
        return None
    positions = {each.urn: index for index, each in enumerate(program.objects)}
    return lambda urn, path: locate(positions[urn], path) if urn in positions else None


def _check(program: Program, fleet: Fleet | None, locate: Locate | None) -> tuple[Problem, ...]:
    if fleet is not None and fleet.nodes:
        return check_program(program, fleet=fleet, locate=locate)
    classes = fleet.classes if fleet else ()
    found = check_program(program, classes=classes, locate=locate)
    if fleet is None or classes:
        return found
    # Which classes this cluster has was not read, so none can be said to be missing from it.
    return tuple(each for each in found if each.code != "class-not-known")


def _choose_fleet(fleet: str | None, source: Source, asked: Asked) -> Fleet | None:
    if source.kind == "program":
        return choose_fleet(fleet, source.root, stack=asked.stack, config=asked.config)
    name = fleet or asked.config.get(FLEET_SETTING)
    minor = asked.config.get("dra-infra:kubernetes")
    return load_fleet(name, kubernetes=minor if minor in SUPPORTED_MINORS else None) if name else None
