"""The `dra-infra simulate` command: says where the pods of a program fit on a fleet or cluster."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from dra_infra.advice.clusters import find_several_clusters, of_provider
from dra_infra.advice.program import check_program
from dra_infra.advice.queues import HELD, find_held
from dra_infra.catalog import load_fleet
from dra_infra.catalog.workload_kinds import load_workload_kinds
from dra_infra.cli.printing import (
    EXIT_NO_ANSWER,
    print_not_seen,
    print_problems,
    problems_as_data,
    progress,
    write_json,
    write_lines,
)
from dra_infra.cli.settings import (
    check_settings,
    find_fleet,
    read_program,
    read_snapshot,
    set_prices,
    with_options,
)
from dra_infra.errors import in_reading_order
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.scheduler.fleet import Fleet
from dra_infra.kubernetes.scheduler.placed_pods import Taken
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement import what_if
from dra_infra.placement.draining import Drained, drain_one_of_each
from dra_infra.placement.growth import find_growth
from dra_infra.placement.placement import (
    Headroom,
    Placement,
    Reason,
    Room,
    WorkloadPlacement,
)
from dra_infra.placement.scheduling import place
from dra_infra.review.folding import fold, tell, tell_other_reasons
from dra_infra.review.placement_texts import (
    AT_MOST,
    GROWTH_MARKS,
    JOINT_MARKS,
    DeviceNames,
    describe_growth,
    describe_joint,
    describe_placement,
)
from dra_infra.review.running import NOTHING_RUNS, Running
from dra_infra.sources.files import UNANSWERED
from dra_infra.target import ClusterTarget

_MARKS = {"fits": "✓", "does-not-fit": "✗", "not-decided": "?"}
MAX_LISTED: Final = 20
"""Workloads that fit which are listed; where more do, a line for each namespace counts them."""
_IN_TURN = "1"
"""In place of a name: one node of each kind, in turn."""


def run(
    path: Path,
    *,
    fleet: str | None,
    prices: Path | None,
    snapshot: Path | None,
    kubernetes: str | None,
    gates: Mapping[str, bool],
    driver: str | None,
    add: Sequence[str],
    remove: Sequence[str],
    drain: Sequence[str],
    fail: Sequence[str],
    scale: Mapping[str, int],
    stack: str | None,
    config: Mapping[str, str],
    provider: str | None,
    timeout: float,
    kinds: Path | None,
    brief: bool,
    as_json: bool,
) -> int:
    """Print where pods go, beside what runs on a snapshot; 1 when the program has problems or something does not fit.

    It is 2 when something could not be read. What fits when node pools grow within their limits counts as fitting.

    Raises:
        FleetError: When no fleet is named or it cannot be read, or it has not what should change.
        ProgramError: When there is no program, it fails, or it has no such provider.
        InvalidSpecError: For a minor, gate or workload that there is not.
    """
    config = with_options(config, kubernetes=kubernetes, driver=driver)
    with progress() as tell:
        tell("reading")
        project, program = read_program(path, stack=stack, config=config, timeout=timeout)
        program = of_provider(program, provider) if provider is not None else program
        cluster = read_snapshot(snapshot) if snapshot else None
        if cluster is not None and project is not None:
            check_settings(project, stack, config)
        chosen = (
            cluster.fleet
            if cluster
            else find_fleet(fleet, project, stack=stack, config=config, driver=driver)
        )
        release = ClusterTarget(kubernetes=program.release.minor, gates=gates).releases[0]
        in_turn = _IN_TURN in drain
        drain = [each for each in drain if each != _IN_TURN]
        if add or remove or drain or fail:
            changes = what_if.WhatIf(
                add=tuple(load_fleet(each, driver=driver) for each in add),
                remove=tuple(remove),
                drain=tuple(drain),
                fail=tuple(fail),
            )
            chosen = what_if.change_fleet(chosen, changes, release)
        chosen = set_prices(chosen, prices).with_classes(program.stand_in_classes)
        manifests, notes = what_if.scale([each.manifest for each in program.objects], scale)
        running = Running.of(cluster, program) if cluster else NOTHING_RUNS
        beside = (*running.taken.policies, *running.taken.templates)
        found = check_program(program, fleet=chosen.at_limits, beside=beside)
        problems = in_reading_order(dict.fromkeys((*program.problems, *found)))
        print_not_seen([*program.not_seen, *find_several_clusters(program), *running.not_counted])
        print_problems(problems)
        told = {"problems": problems_as_data(problems)} if as_json else {}
        if any(problem.severity == "error" for problem in problems):
            if as_json:
                write_json({"fleet": chosen.name, "kubernetes": release.minor, **told})
            return EXIT_NO_ANSWER if not UNANSWERED.isdisjoint(each.code for each in problems) else 1
        tell(f"placing on {count_of(len(chosen.nodes), 'node')}")
        end = time.monotonic() + timeout

        def is_late() -> bool:
            return time.monotonic() > end

        def find_taken(then: Fleet, *more: str) -> Taken:
            going = {each.name for each in then.nodes if any(fnmatchcase(each.name, name) for name in drain)}
            return running.without_evicted(manifests, then, release, going.union(more))

        taken, known = find_taken(chosen), load_workload_kinds(kinds) if kinds else None
        placement = place(
            manifests,
            chosen,
            taken=taken,
            release=release,
            is_late=is_late,
            with_headroom=True,
            kinds=known,
        )
        growth = find_growth(manifests, placement, taken=taken, release=release, is_late=is_late, kinds=known)
        held = {
            owner: (Reason(code=each.code, message=each.message),)
            for _, owner, each in find_held(manifests, beside)
        }
        workloads = (
            replace(each, reasons=(*each.reasons, *held.get(each.owner.whole, ())))
            for each in placement.workloads
        )
        notes = (*placement.notes, *notes)
        placement = replace(placement, workloads=tuple(workloads), growth=growth, notes=notes)
        drained: tuple[Drained, ...] = ()
        if in_turn:
            tell("draining one node of each kind")
            drained = drain_one_of_each(
                manifests, chosen, find_taken=find_taken, release=release, is_late=is_late, kinds=known
            )
    if as_json:
        write_json({**_to_json(placement, release), "drained": [_drained(each) for each in drained], **told})
    else:
        ends = (f"{_mark_of(each)} {each}" for each in drained)
        write_lines([*describe(placement, brief=brief), *ends])
    return 0 if _works(placement) and all(each.fits for each in drained) else 1


def _works(placement: Placement) -> bool:
    if placement.growth is not None:
        return placement.growth.fits
    return placement.fits_count == len(placement.workloads) and placement.joint.works is not None


def describe(placement: Placement, *, brief: bool = False) -> Iterator[str]:
    """Yields the lines of text: what does not fit or is not decided, what fits, all at once, and what is left.

    Args:
        placement: What is told.
        brief: Whether to tell only what does not fit, how many workloads fit, and the verdict on all at once.
    """
    if not placement.workloads:
        placed = " that is placed here" if placement.unplaced else ""
        yield f"no workload of the program{placed} needs devices of {placement.fleet.name}"
    names = DeviceNames.of(placement.fleet)
    fitting = [each for each in placement.workloads if _mark(each) == "✓"]
    folded = fold(each.owner for each in fitting) if len(fitting) > MAX_LISTED else ()
    listed = [each for each in placement.workloads if _mark(each) != "✓"]
    if not brief and not folded:
        listed += fitting
    width = max((len(str(each.owner)) for each in listed), default=0)
    for each in listed:
        yield f"{_mark(each)} {each.owner!s:{width}}  {describe_placement(each, names)}"
        yield from (f"    {line}" for line in ([] if brief else _details(each)))
    if placement.workloads or placement.evicted:
        number = count_of(len(placement.workloads), "workload")
        fit = "fits" if len(placement.workloads) == 1 else "fit"
        counted = f"{placement.fits_count:,} of {number} {fit} on {placement.fleet.name}"
        yield from [counted] if brief and placement.workloads else (f"✓ {line}" for line in tell(folded))
        yield from describe_joint(placement.joint)
        if placement.joint_at_most:
            yield from describe_joint(placement.joint_at_most, AT_MOST)
        if placement.growth is not None:
            yield describe_growth(placement.growth)
    if placement.unplaced:
        yield f"! not placed here, and so in no verdict: {join_words(placement.unplaced)}"
    if not brief:
        yield from placement.notes
        yield from _describe_headroom(placement.headroom)


def _mark(workload: WorkloadPlacement) -> str:
    # What fits and is never admitted by Kueue has no plain sign.
    is_held = any(reason.code in HELD for reason in workload.reasons)
    return "!" if is_held and workload.verdict == "fits" else _MARKS[workload.verdict]


def _describe_headroom(headroom: Sequence[Headroom]) -> Iterator[str]:
    """A table: claims of one device that still fit, before and after, and where what is left lies."""
    if not headroom:
        return
    width = max(len("Room for one more claim of"), *(len(each.name) for each in headroom))
    yield ""
    yield f"{'Room for one more claim of':{width}}  before   after   largest claim, and claims per node"
    for each in headroom:
        spread = ", ".join(
            f"{claims} on {count_of(nodes, 'node')}" for claims, nodes in each.after.per_node.items()
        )
        left = f"{count_of(each.after.largest, 'device')}; {spread}" if spread else "-"
        yield f"{each.name:{width}}  {each.before.claims:6}  {each.after.claims:6}   {left}"


def _details(workload: WorkloadPlacement) -> Iterator[str]:
    # Where pods fit, nobody asks why not on other nodes; where they do not, the first reason is in the line above.
    if workload.verdict == "fits":
        yield from (str(reason) for reason in workload.reasons if not reason.nodes)
    elif others := tell_other_reasons(workload.reasons):
        yield f"also: {others}"
    if workload.unmodelled:
        yield f"not taken into account: {', '.join(workload.unmodelled)}"


def _to_json(placement: Placement, release: Release) -> dict[str, object]:
    return {
        "fleet": placement.fleet.name,
        "kubernetes": release.minor,
        "headroom": [
            {"name": each.name, "before": _room(each.before), "after": _room(each.after)}
            for each in placement.headroom
        ],
        "joint": placement.joint.to_data(),
        "joint_at_most": placement.joint_at_most.to_data() if placement.joint_at_most else None,
        "growth": placement.growth.to_data() if placement.growth else None,
        "notes": list(placement.notes),
        "workloads": [
            {
                "owner": str(each.owner),
                "replicas": each.replicas,
                "most": each.most,
                "verdict": each.verdict,
                "more_pods": each.more_pods,
                "reasons": [dataclasses.asdict(reason) for reason in each.reasons],
                "unmodelled": list(each.unmodelled),
                "nodes": [dataclasses.asdict(node) for node in each.nodes],
                "pods": [dataclasses.asdict(node) for node in each.pods],
            }
            for each in placement.workloads
        ],
    }


def _mark_of(each: Drained) -> str:
    if each.growth is None or each.growth.verdict == "fits-now":
        return JOINT_MARKS[each.joint.verdict]
    return GROWTH_MARKS[each.growth.verdict]


def _drained(each: Drained) -> dict[str, object]:
    growth = each.growth.to_data() if each.growth else None
    joint = each.joint.to_data()
    return {"node": each.node, "alike": each.alike, "evicted": each.evicted, "joint": joint, "growth": growth}


def _room(room: Room) -> dict[str, object]:
    return {
        "claims": room.claims,
        "largest": room.largest,
        "per_node": [{"claims": claims, "nodes": nodes} for claims, nodes in room.per_node.items()],
    }
