"""The plan of a cut-over as people and machines read it: text, Markdown and plain data."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.cutover.plan import Phase, Plan
from dra_infra.cutover.steps import Step
from dra_infra.output.escaping import markdown, one_line
from dra_infra.output.report_data import to_data
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.texts import AT_MOST, JOINT_MARKS, describe_joint

_HEADS: Final = {
    "always": "every phase works",
    "depends-on-order": "every phase can work, and pods may be left pending, depending on the order of arrival",
    "never": "it does not work",
    "not-decided": "not decided whether it works",
}


def write_lines(plan: Plan) -> Iterator[str]:
    """Lines of text: the verdict, then each phase with what to do and the way back."""
    yield from map(one_line, _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    yield tell_plan(plan)
    yield from (f"  {each}" for each in (*plan.refused, *plan.reasons))
    for each in plan.problems:
        yield f"  {each.severity}: {replace(each, hint='')}"
        yield f"    hint: {each.hint}"
    yield from (f"  {each}" for each in plan.notes)
    for number, phase in enumerate(plan.phases):
        yield f"{JOINT_MARKS[phase.joint.verdict]} {number}. {tell_phase(phase)}"
        yield from (f"    {each}" for each in _facts(phase))
        yield from _steps("do", phase.steps)
        yield from _steps("back", phase.back)


def tell_plan(plan: Plan) -> str:
    """One line on the whole."""
    moves = sum(bool(each.nodes) for each in plan.phases)
    sizes = f", at most {count_of(plan.nodes_at_once, 'node')} at a time" if moves else ""
    is_stuck = any(each.stuck or each.held for each in plan.phases)
    waits = ", but rollouts or drains may wait without end" if is_stuck else ""
    return f"Plan of the cut-over: nodes leave the plugin in {count_of(moves, 'group')}{sizes}; {_HEADS[plan.verdict]}{waits}"


def tell_phase(phase: Phase) -> str:
    """`hgx-h100-0..1 leave the plugin; Deployment ml/big moves`."""
    if phase.kind == "prepare":
        return "Prepare: the driver on labelled nodes alone, quotas with both keys"
    if phase.kind == "finish":
        return "Finish: the plugin goes, and the keys that count it"
    leave = "leave" if len(phase.nodes) > 1 else "leaves"
    moves = {0: "no workload moves", 1: f"{next(iter(phase.moves), '')} moves"}.get(
        len(phase.moves), f"{count_of(len(phase.moves), 'workload')} move"
    )
    return f"{compress_names(list(phase.nodes), of_nodes=True) or 'no node'} {leave} the plugin; {moves}"


def _facts(phase: Phase) -> Iterator[str]:
    for ref, how in phase.rolls.items():
        yield f"{ref} {how}"
        if phase.stuck.get(ref):
            yield f"  hint: {phase.stuck[ref]}"
    for ref, outlook in phase.held.items():
        yield f"{ref} {outlook.message}"
        yield f"  hint: {outlook.hint}"
    if phase.evicted:
        yield f"evicted by the drain: {join_words(phase.evicted, most=12)}"
    if phase.deleted:
        yield f"deleted, for a drain leaves them: {join_words(phase.deleted, most=12)}"
    if phase.meanwhile is not None and phase.meanwhile.verdict != "always":
        yield f"pods may wait until the nodes are back: without them, {phase.meanwhile}"
    if phase.kind != "finish" and phase.unmigrated:
        yield f"not moved yet: {join_words(phase.unmigrated, most=12)}"
    for each in phase.quotas:
        keys = ", ".join(f"{key}: {amount}" for key, amount in each.keys.items())
        yield f"{each.quota} has {keys}"
    yield from describe_joint(phase.joint, "All at once then")
    if phase.at_most is not None:
        yield from describe_joint(phase.at_most, AT_MOST)


def _steps(head: str, steps: Sequence[Step]) -> Iterator[str]:
    for each in steps:
        yield f"    {head}: {each.what}"
        yield from (f"      $ {command}" for command in each.commands)


def append_markdown(report: str, plan: Plan) -> str:
    """The report of a migration in Markdown with the plan behind it."""
    lines = [report, f"## {markdown(tell_plan(plan))}", ""]
    lines += [f"- {markdown(each)}" for each in (*plan.refused, *plan.reasons, *plan.notes)]
    lines += [
        f"- {each.severity}: {markdown(str(replace(each, hint='')))}; {markdown(each.hint)}"
        for each in plan.problems
    ]
    for number, phase in enumerate(plan.phases):
        lines += ["", f"### {JOINT_MARKS[phase.joint.verdict]} {number}. {markdown(tell_phase(phase))}", ""]
        lines += [f"- {markdown(each.strip())}" for each in _facts(phase)]
        for head, steps in (("What to do", phase.steps), ("The way back", phase.back)):
            lines += ["", f"{head}:", ""]
            for at, step in enumerate(steps, 1):
                lines.append(f"{at}. {markdown(step.what)}")
                if step.commands:
                    lines += ["", "    ```console", *(f"    $ {one_line(each)}" for each in step.commands)]
                    lines += ["    ```", ""]
    return "\n".join(lines).rstrip() + "\n"


def append_html(report: str, plan: Plan) -> str:
    """The page of a migration with the plan at its end."""
    text = html.escape("\n".join(write_lines(plan)))
    return report.removesuffix("</html>\n") + f"<pre>{text}</pre>\n</html>\n"


APPENDED: Final[Mapping[str, Callable[[str, Plan], str]]] = {"markdown": append_markdown, "html": append_html}
"""The forms of a report that have the plan behind it; JSON has its data."""


def plan_to_data(plan: Plan) -> dict[str, Any]:
    """The plan as JSON has it."""
    return {
        "verdict": plan.verdict,
        "works": plan.works,
        "nodesAtOnce": plan.nodes_at_once,
        "refused": list(plan.refused),
        "reasons": list(plan.reasons),
        "notes": list(plan.notes),
        "problems": to_data(plan.problems),
        "phases": [_phase(each) for each in plan.phases],
    }


def _phase(phase: Phase) -> dict[str, Any]:
    return {
        "kind": phase.kind,
        "nodes": list(phase.nodes),
        "moves": [
            {"name": str(ref), "pods": how, "stuck": ref in phase.stuck, "hint": phase.stuck.get(ref, "")}
            for ref, how in phase.rolls.items()
        ],
        "held": [
            {"name": str(ref), "drain": each.message, "hint": each.hint} for ref, each in phase.held.items()
        ],
        "unmigrated": list(map(str, phase.unmigrated)),
        "migrated": list(map(str, phase.migrated)),
        "evicted": list(map(str, phase.evicted)),
        "deleted": list(map(str, phase.deleted)),
        "quotas": [{"name": str(each.quota), "keys": dict(each.keys)} for each in phase.quotas],
        "joint": phase.joint.to_data(),
        "jointAtMost": phase.at_most.to_data() if phase.at_most else None,
        "meanwhile": phase.meanwhile.to_data() if phase.meanwhile else None,
        "steps": [each._asdict() for each in phase.steps],
        "back": [each._asdict() for each in phase.back],
    }
