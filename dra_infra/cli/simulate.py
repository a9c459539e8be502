"""The `dra-infra simulate` command: says where the pods of a program fit on a fleet or cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from dra_infra.answers.reading import SceneOptions, read_scene
from dra_infra.answers.simulating import Simulation, simulate
from dra_infra.catalog import load_fleet
from dra_infra.cli.printing import (
    print_not_seen,
    print_problems,
    problems_as_data,
    progress,
    write_json,
    write_lines,
)
from dra_infra.cli.reports import inputs_of, inputs_of_scene, plan_reports, text_of, write_reports
from dra_infra.output.escaping import json_text
from dra_infra.output.report_data import make_report, to_data
from dra_infra.placement.draining import Drained
from dra_infra.placement.placement import Placement
from dra_infra.placement.texts import GROWTH_MARKS, JOINT_MARKS
from dra_infra.placement.what_if import WhatIf
from dra_infra.review.placement_report import describe

_IN_TURN = "1"
"""In place of a name: one node of each kind, in turn."""


def run(
    path: Path,
    *,
    add: Sequence[str],
    remove: Sequence[str],
    drain: Sequence[str],
    fail: Sequence[str],
    scale: Mapping[str, int],
    timeout: float,
    brief: bool,
    form: str,
    files: Sequence[Path] = (),
    **options: Unpack[SceneOptions],
) -> int:
    """Print where pods go, beside what runs on a snapshot; 1 when the program has problems or something does not fit.

    It is 2 when something could not be read. What fits when node pools grow within their limits counts as fitting.

    Raises:
        FleetError: When no fleet is named or it cannot be read, or it has not what should change.
        ProgramError: When there is no program, it fails, or it has no such provider.
        InvalidSpecError: For a minor, gate or workload that there is not.
        click.BadParameter: For a file of a report whose name says no form.
    """
    inputs = [*inputs_of(path), *inputs_of_scene(options)]
    reports = plan_reports(files, ("json", "text"), inputs)
    with progress() as tell:
        tell("reading")
        scene = read_scene(path, timeout=timeout, **options)
        minor = scene.release.minor
        driver = scene.program.driver
        changes = WhatIf(
            add=tuple(load_fleet(each, kubernetes=minor, driver=driver) for each in add),
            remove=tuple(remove),
            drain=tuple(name for name in drain if name != _IN_TURN),
            fail=tuple(fail),
        )
        answer = simulate(
            scene, changes=changes, scale=scale, in_turn=_IN_TURN in drain, timeout=timeout, tell=tell
        )
    print_problems(scene.warnings)
    print_not_seen(answer.not_seen)
    print_problems(answer.checked.problems)
    ends = (f"{_mark_of(each)} {each}" for each in answer.drained)
    placed = describe(answer.placement, brief=brief) if answer.placement is not None else ()
    lines = [*placed, *ends, answer.provenance.describe()]
    write_reports(
        reports, lambda each: json_text(_to_json(answer)) if each == "json" else text_of(lines), inputs
    )
    if form == "json":
        write_json(_to_json(answer))
    else:
        write_lines(lines)
    return answer.exit_code


def _to_json(answer: Simulation) -> dict[str, object]:
    fleet, placement = answer.scene.fleet, answer.placement
    head = {
        "fleet": {"name": fleet.name, "nodes": len(fleet.nodes), "devices": fleet.device_count}
        if fleet
        else None,
        "problems": problems_as_data(answer.checked.problems),
        "notKnown": to_data(answer.not_seen),
        "provenance": answer.provenance.to_json(),
    }
    return make_report("simulate", head | (_placed(answer, placement) if placement is not None else {}))


def _placed(answer: Simulation, placement: Placement) -> dict[str, object]:
    return {
        "headroom": [each.to_data() for each in placement.headroom],
        "fragmentation": [each.to_data() for each in placement.fragments],
        "joint": placement.joint.to_data(),
        "jointAtMost": placement.joint_at_most.to_data() if placement.joint_at_most else None,
        "growth": placement.growth.to_data() if placement.growth else None,
        "notes": list(placement.notes),
        "workloads": [
            {
                "object": to_data(each.owner),
                "replicas": each.replicas,
                "most": each.most,
                "verdict": each.verdict,
                "morePods": each.more_pods,
                "reasons": to_data(each.reasons),
                "unmodelled": list(each.unmodelled),
                "nodes": [node.to_data() for node in each.nodes],
                "pods": [node.to_data() for node in each.pods],
            }
            for each in placement.workloads
        ],
        "drained": [_drained(each) for each in answer.drained],
    }


def _mark_of(each: Drained) -> str:
    if each.growth is None or each.growth.verdict == "fits-now":
        return JOINT_MARKS[each.joint.verdict]
    return GROWTH_MARKS[each.growth.verdict]


def _drained(each: Drained) -> dict[str, object]:
    growth = each.growth.to_data() if each.growth else None
    joint = each.joint.to_data()
    return {"node": each.node, "alike": each.alike, "evicted": each.evicted, "joint": joint, "growth": growth}
