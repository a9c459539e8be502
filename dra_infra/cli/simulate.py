"""`dra-infra simulate`."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from dra_infra.cli.printing import print_not_seen, print_problems, write_output
from dra_infra.cli.settings import FLEET_SETTING, choose_fleet
from dra_infra.cli.snapshots import read_snapshot
from dra_infra.engine.synth import synth
from dra_infra.errors import FleetError, Problem
from dra_infra.planning.device_names import DeviceNames
from dra_infra.planning.placements import describe_placement
from dra_infra.planning.running import find_taken
from dra_infra.simulation import Placement, WorkloadPlacement, place
from dra_infra.simulation.taken import NOTHING
from dra_infra.validation import check_program

_MARKS = {"fits": "✓", "does-not-fit": "✗", "not-decided": "?"}


def run(
    directory: Path,
    *,
    fleet: str | None,
    snapshot: Path | None = None,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    as_json: bool,
) -> int:
    """Print where pods go, beside what runs on a snapshot; 1 when the program has problems or something does not fit.

    Raises:
        FleetError: When no fleet is named or it cannot be read.
    """
    cluster = read_snapshot(snapshot) if snapshot else None
    chosen = cluster.fleet if cluster else choose_fleet(fleet, directory, stack=stack, config=config)
    if chosen is None:
        raise FleetError(
            [
                Problem(
                    path="--fleet",
                    code="no-fleet",
                    message="no hardware is named to place on",
                    hint=f"add --fleet 'hgx-h100 x 4', or set {FLEET_SETTING} in the stack file",
                )
            ]
        )
    program = synth(directory, stack=stack, config=config, timeout=timeout)
    problems = check_program(program, fleet=chosen)
    taken, left_out = find_taken(cluster, program) if cluster else (NOTHING, ())
    print_not_seen([*program.not_seen, *left_out])
    print_problems(problems)
    if any(problem.severity == "error" for problem in problems):
        return 1
    placement = place(
        [each.manifest for each in program.objects], chosen, taken=taken, release=program.release
    )
    if as_json:
        write_output(json.dumps(_to_json(placement), indent=2, sort_keys=True))
    else:
        write_output("\n".join(describe(placement)))
    return 0 if placement.fits_count == len(placement.workloads) else 1


def describe(placement: Placement) -> Iterator[str]:
    """One line per workload, then its reasons and what the answer does not take into account."""
    names = DeviceNames.of(placement.fleet)
    width = max((len(str(each.owner)) for each in placement.workloads), default=0)
    for each in placement.workloads:
        yield f"{_MARKS[each.verdict]} {each.owner!s:{width}}  {describe_placement(each, names)}"
        yield from (f"    {line}" for line in _details(each))
    if not placement.workloads:
        yield f"no workload of the program needs devices of {placement.fleet.name}"
    elif placement.together is False and placement.fits_count == len(placement.workloads):
        yield "Each workload was placed alone; room for all of them at once was not found."
    yield from placement.notes


def _details(workload: WorkloadPlacement) -> Iterator[str]:
    # The first reason is part of the line above when the workload does not fit.
    said = 1 if workload.verdict != "fits" else 0
    yield from (str(reason) for reason in workload.reasons[said:])
    if workload.unmodelled:
        yield f"not taken into account: {', '.join(workload.unmodelled)}"


def _to_json(placement: Placement) -> dict[str, object]:
    return {
        "fleet": placement.fleet.name,
        "together": placement.together,
        "notes": list(placement.notes),
        "workloads": [
            {
                "owner": str(each.owner),
                "replicas": each.replicas,
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
