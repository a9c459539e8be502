"""The `dra-infra make-room` command: which running pods move so that a workload fits, and the commands that do it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from dra_infra.answers.making_room import RoomAnswer, RoomOptions, find_room, read_run_times, read_wanted
from dra_infra.cli.printing import (
    print_not_seen,
    print_problems,
    problems_as_data,
    progress,
    write_json,
    write_lines,
)
from dra_infra.cli.reports import inputs_of, plan_reports, text_of, write_reports
from dra_infra.output.escaping import json_text
from dra_infra.output.report_data import make_report, to_data
from dra_infra.placement.movable_pods import MoveRules
from dra_infra.review.room_page import render_room
from dra_infra.review.room_report import describe_room, room_to_data, write_room_markdown

_FORMS = ("html", "json", "markdown", "text")


def make_room(
    workload: str,
    path: Path | None,
    *,
    namespace: str | None,
    bare_pods: bool,
    above_priority: bool,
    run_times: Path | None,
    timeout: float,
    form: str,
    files: Sequence[Path] = (),
    **options: Unpack[RoomOptions],
) -> int:
    """Print the cheapest moves of running pods with which a workload fits, and the commands; 1 when there are none.

    It is 2 when the question cannot be answered.

    Raises:
        FleetError: When the snapshot cannot be read.
        ProgramError: When no snapshot is named, no workload has the name, or a shape or run times are malformed.
        click.BadParameter: For a file of a report whose name says no form.
    """
    inputs = inputs_of(path, run_times, options.get("snapshot"), options.get("kinds"))
    reports = plan_reports(files, _FORMS, inputs)
    rules = MoveRules(
        bare_pods=bare_pods,
        above_priority=above_priority,
        run_times=read_run_times(run_times) if run_times else {},
    )
    with progress() as tell:
        tell("reading")
        scene, shape = read_wanted(workload, path, timeout=timeout, **options)
        answer = find_room(
            scene, workload, shape=shape, namespace=namespace, rules=rules, timeout=timeout, tell=tell
        )
    print_problems(scene.warnings)
    print_not_seen(answer.not_seen)
    print_problems(answer.checked.problems)

    def render(name: str) -> str:
        if name == "json":
            return json_text(_to_json(answer))
        if name == "html":
            return _to_html(answer)
        return _to_markdown(answer) if name == "markdown" else text_of(_lines(answer))

    write_reports(reports, render, inputs)
    if form == "json":
        write_json(_to_json(answer))
    elif form == "text":
        write_lines(_lines(answer))
    else:
        write_lines(render(form).splitlines())
    return answer.exit_code


def _lines(answer: RoomAnswer) -> list[str]:
    if answer.made is None:
        return [f"✗ {answer.wanted} is not placed, because an object that it needs has an error"]
    described = describe_room(answer.made, answer.steps, wanted=answer.wanted)
    return [*described, answer.provenance.describe()]


def _to_markdown(answer: RoomAnswer) -> str:
    if answer.made is None:
        return text_of(_lines(answer))
    where = answer.provenance.describe()
    return write_room_markdown(answer.made, answer.steps, wanted=answer.wanted, provenance=where)


def _to_html(answer: RoomAnswer) -> str:
    if answer.made is None or answer.scene.fleet is None:
        return text_of(_lines(answer))
    return render_room(
        answer.made,
        answer.steps,
        wanted=answer.wanted,
        running=answer.scene.running,
        fleet=answer.scene.fleet,
        provenance=answer.provenance.describe(),
    )


def _to_json(answer: RoomAnswer) -> dict[str, object]:
    room = {} if answer.made is None else room_to_data(answer.made, answer.steps)
    data = {
        "wanted": answer.wanted,
        "problems": problems_as_data(answer.checked.problems),
        "notKnown": to_data(answer.not_seen),
        "provenance": answer.provenance.to_json(),
        **room,
    }
    return make_report("make-room", data)
