"""Room that was made, as text, data and Markdown: the moves, what they cost, where the wanted pods go, and the commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from dra_infra.output.escaping import markdown, markdown_code
from dra_infra.output.report_data import to_data
from dra_infra.output.wording import compress_names, count_of
from dra_infra.placement.making_room import Arrival, MadeRoom, Move, RoomPlan
from dra_infra.placement.room_commands import Step

MARKS: Final = {"fits-now": "✓", "moves": "✓", "never": "✗", "not-found": "✗", "not-decided": "?"}


def describe_room(made: MadeRoom, steps: Sequence[Step], *, wanted: str) -> Iterator[str]:
    """Yield the lines of the text.

    Args:
        made: The answer.
        steps: The commands.
        wanted: What is to find room, as the user wrote it.
    """
    yield f"{MARKS[made.verdict]} {tell_verdict(made, wanted)}"
    plan = made.plan
    if plan is not None and plan.moves:
        yield f"  cost: {tell_cost(plan)}"
        for number, move in enumerate(plan.moves, start=1):
            yield f"  {number}. {tell_move(move)}"
            if move.cordon:
                yield f"     meanwhile closed: {compress_names(move.cordon, of_nodes=True)}"
    if plan is not None:
        yield from (f"  {line}" for line in tell_arrivals(plan.arrivals))
        if plan.keep_off:
            yield f"  closed while these start: {compress_names(plan.keep_off, of_nodes=True)}"
        yield from (f"! {each}" for each in plan.doubts)
    yield from (f"  {each}" for each in made.reasons)
    yield from (f"  {each}" for each in made.stays)
    yield from (f"! {each}" for each in made.notes)
    if steps:
        yield "commands, in order; go on when a check prints what is expected:"
    for step in steps:
        yield f"  # {step.title}"
        if step.before:
            yield f"  {step.before}    # first: {step.needs}"
        yield from (f"  {each}" for each in step.commands)
        yield f"  {step.check}    # expect: {step.expect}"


def tell_verdict(made: MadeRoom, wanted: str) -> str:
    """Return the verdict in words."""
    pods = count_of(made.pods, "pod")
    if made.verdict == "fits-now":
        return f"{wanted} fits now: {pods} without a move" if made.plan else f"{wanted}: nothing to place"
    if made.verdict == "moves":
        number = len(made.plan.moves) if made.plan else 0
        return f"{wanted} fits after {count_of(number, 'move')}: {pods}"
    heads = {
        "never": "never fits, whatever is moved",
        "not-found": "does not fit, and no moves were found",
        "not-decided": "is not decided",
    }
    return f"{wanted} {heads[made.verdict]}"


def tell_cost(plan: RoomPlan) -> str:
    """Return what the moves cost, and whether that is proven to be the least."""
    lost, pods, working, devices = plan.cost
    parts = [f"{lost:g} GPU-hours lost"] if lost else []
    parts += [f"{count_of(pods, 'pod')} moved", count_of(devices, "device")]
    if working:
        parts.append(f"{count_of(working, 'pod')} may lose work")
    least = "no plan costs less" if plan.is_cheapest else "a cheaper plan is not excluded"
    return f"{', '.join(parts)}; {least}"


def tell_move(move: Move) -> str:
    """Return one move: whose pod, from where, and where it goes."""
    pod = move.pod
    made_by = "" if pod.is_bare else f" of {pod.owner}"
    work = ", which may lose work" if pod.loses_work else ""
    start = f"{pod.ref}{made_by}{work}: {pod.node}{_devices(move.devices)}"
    if pod.is_bare:
        return f"{start} → deleted, no controller replaces it"
    if move.choices > 1:
        return (
            f"{start} → any of {count_of(move.choices, 'node')}, such as {move.lands}{_devices(move.takes)}"
        )
    return f"{start} → {move.lands}{_devices(move.takes)}"


def tell_arrivals(arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Yield where the wanted pods go, pods on nodes with the same devices in one line."""

    def key(each: Arrival) -> tuple[str, str]:
        return str(each.owner), _devices(each.devices)

    for (owner, devices), group in groupby(arrivals, key):
        nodes = [each.node for each in group]
        number = f"{len(nodes)} x " if len(nodes) > 1 else ""
        yield f"then {number}{owner} on {compress_names(list(dict.fromkeys(nodes)), of_nodes=True)}{devices}"


def _devices(devices: Sequence[str]) -> str:
    names = [each.rpartition("/")[2] for each in devices]
    return f" ({compress_names(names)})" if names else ""


def room_to_data(made: MadeRoom, steps: Sequence[Step]) -> dict[str, object]:
    """Return the answer as JSON has it."""
    return {
        "verdict": made.verdict,
        "object": to_data(made.wanted),
        "pods": made.pods,
        "waiting": made.waiting,
        "reasons": list(made.reasons),
        "notMoved": list(made.stays),
        "notes": list(made.notes),
        "plan": _plan_to_data(made.plan) if made.plan else None,
        "steps": [
            {
                "title": each.title,
                "before": each.before or None,
                "needs": each.needs or None,
                "commands": list(each.commands),
                "check": each.check,
                "expect": each.expect,
                "move": each.move,
            }
            for each in steps
        ],
    }


def _plan_to_data(plan: RoomPlan) -> dict[str, object]:
    lost, pods, working, devices = plan.cost
    return {
        "cordon": list(plan.cordon),
        "moves": [
            {
                "pod": to_data(each.pod.ref),
                "owner": None if each.pod.is_bare else to_data(each.pod.owner),
                "from": each.pod.node,
                "devices": list(each.devices),
                "to": each.lands or None,
                "takes": list(each.takes),
                "choices": each.choices,
                "cordon": list(each.cordon),
                "losesWork": each.pod.loses_work,
                "budgets": to_data(each.pod.budgets),
            }
            for each in plan.moves
        ],
        "keepOff": list(plan.keep_off),
        "arrivals": [
            {"object": to_data(each.owner), "node": each.node, "devices": list(each.devices)}
            for each in plan.arrivals
        ],
        "cost": {"podsMoved": pods, "podsLosingWork": working, "devicesMoved": devices, "gpuHoursLost": lost},
        "isCheapest": plan.is_cheapest,
        "doubts": list(plan.doubts),
    }


def write_room_markdown(made: MadeRoom, steps: Sequence[Step], *, wanted: str, provenance: str) -> str:
    """Return the answer as Markdown, for an issue or a change request."""
    lines = [f"# {MARKS[made.verdict]} {markdown(tell_verdict(made, wanted))}", ""]
    lines += [f"- {markdown(each)}" for each in (*made.reasons, *made.stays, *made.notes)]
    plan = made.plan
    if plan is not None and plan.moves:
        lines += [
            "",
            f"Cost: {markdown(tell_cost(plan))}.",
            "",
            "| | Pod | From | To |",
            "| --- | --- | --- | --- |",
        ]
        for number, each in enumerate(plan.moves, start=1):
            owner = "" if each.pod.is_bare else f" of {each.pod.owner}"
            work = ", may lose work" if each.pod.loses_work else ""
            to = each.lands + _devices(each.takes) if not each.pod.is_bare else "deleted"
            if each.choices > 1:
                to = f"any of {each.choices} nodes, such as {to}"
            cells = (f"{each.pod.ref}{owner}{work}", each.pod.node + _devices(each.devices), to)
            lines.append(f"| {number} | {' | '.join(map(markdown, cells))} |")
    if plan is not None:
        lines += ["", *(f"- {markdown(each)}" for each in tell_arrivals(plan.arrivals))]
        lines += [f"- {markdown(each)}" for each in plan.doubts]
    if steps:
        lines += ["", "## Commands", "", "Go on when a check prints what is expected."]
    for number, step in enumerate(steps, start=1):
        lines += ["", f"{number}. {markdown(step.title)}", ""]
        if step.before:
            lines.append(f"    - first {markdown_code(step.before)}: {markdown(step.needs)}")
        lines += [f"    - {markdown_code(each)}" for each in step.commands]
        lines.append(f"    - check {markdown_code(step.check)}: {markdown(step.expect)}")
    return "\n".join([*lines, "", markdown(provenance), ""])
