"""The answer of `explain` for people and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from dra_infra.answers.explaining import ASIDE, Explained
from dra_infra.errors import Problem
from dra_infra.explanation.records import Change, Explanation, RequestTree, Step, Suggestion
from dra_infra.output.report_data import make_report, to_data
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.texts import describe_growth
from dra_infra.program_objects import ProgramObject, get_field
from dra_infra.program_writing.python_text import write
from dra_infra.program_writing.selector_texts import read_selector

_NODES: Final = 6
"""Reasons of nodes, and further causes of devices, that are told."""


_MARKS: Final = {"always": "✓", "depends-on-order": "!", "never": "✗", "not-decided": "?"}


def describe(report: Explained) -> Iterator[str]:
    """The verdict, what is wrong around, the devices of each request, what would fit, whether all workloads do at once, and what it was checked for."""
    yield from _describe_subject(report)
    if report.joint is not None:
        yield f"  {_MARKS[report.joint.verdict]} all at once: {report.joint}"
    if report.growth is not None:
        yield f"  {describe_growth(report.growth)}"
    if report.has_errors and report.fits:
        yield "  ✗ other objects of the input have errors, so the exit code is 1"
    yield report.provenance.describe()


def _describe_subject(report: Explained) -> Iterator[str]:
    yield _verdict(report)
    for cause in report.causes:
        yield f"  {'✗' if cause.severity == 'error' else '!'} {cause.where}{cause.message} [{cause.code}]"
        if cause.hint:
            yield f"      {cause.hint}"
    answer = report.answer
    if report.undecided:
        if answer is not None and report.absent:
            yield from _trees(answer, report)
        told = {each.code for each in report.causes}
        yield from (f"  not known: {each.message}" for each in report.undecided if each.code not in told)
        yield from _suggestions(answer.suggestions if answer else (), report)
        return
    if answer is None:
        yield from _refused_nodes(report)
        return
    if answer.verdict == "fits":
        yield f"  on {answer.node}: {_devices(answer.devices)}"
        for quirk in answer.quirks:
            yield f"  it fits only because of a bug of Kubernetes {answer.kubernetes}: {quirk}"
        yield from (f"  not known: {each}" for each in answer.unknown)
        return
    yield from _answer(answer, report)
    if report.subject_question.unmodelled:
        yield f"  not taken into account: {', '.join(report.subject_question.unmodelled)}"


def _answer(answer: Explanation, report: Explained) -> Iterator[str]:
    yield from _error(answer)
    yield from _trees(answer, report)
    # A proof about all devices says what is in the way on the nearest node too.
    if answer.node and not any(tree.left == 0 for tree in answer.requests if answer.proof):
        yield f"  nearest is node {answer.node}: {answer.nearest}"
    if answer.proof:
        yield f"  it cannot fit even with all devices free: {answer.proof}"
    question = report.subject_question.question
    if answer.outranked and question is not None:
        yield (
            f"  its priority {question.priority} does not help: no scheduler up to 1.38 preempts a pod for its devices, so it "
            f"waits until one of these ends: {join_words(answer.outranked)}"
        )
    for quirk in answer.quirks:
        yield f"  a bug of Kubernetes {answer.kubernetes} decides: {quirk}"
    yield from _suggestions(answer.suggestions, report)
    if not answer.suggestions and not answer.unknown:
        yield (
            "  no small change fits, nor do two at once"
            if report.is_deep
            else "  no single small change fits; --deep tries two at once"
        )
    yield from (f"  not known: {each}" for each in answer.unknown)


def _verdict(report: Explained) -> str:
    answer, asking = report.answer, report.subject_question
    if report.undecided:
        return f"? {asking.subject}: not known whether it fits ({report.where})"
    if answer is None:
        if asking.settled:
            return f"{_mark(report)} {asking.subject}: {asking.settled}"
        return (
            f"{'✓' if report.fits else '✗'} {asking.subject} {'has its devices' if report.fits else 'waits'}"
        )
    nodes = count_of(answer.nodes, "node")
    of = f"{answer.placed} of {answer.pods} pods fit" if answer.pods > 1 else ""
    where = f"{report.where}, Kubernetes {answer.kubernetes}"
    if answer.verdict == "fits" and not report.fits:
        pods = f"{answer.placed} of {answer.pods} pods" if answer.pods > 1 else "it"
        return f"✗ {asking.subject} does not fit: devices are there for {pods}, and something else is in the way ({where})"
    if answer.verdict == "fits":
        return f"{_mark(report)} {asking.subject}{f': {of}' if of else ' fits'} ({where})"
    if answer.verdict == "not-decided":
        return f"? {asking.subject}: not known whether it fits ({where})"
    return f"✗ {asking.subject}: {of or f'fits on none of {nodes}'} ({where})"


def _mark(report: Explained) -> str:
    if not report.fits:
        return "✗"
    # What fits and is never admitted by a queue has no plain sign.
    return "!" if report.is_held else "✓"


def _refused_nodes(report: Explained) -> Iterator[str]:
    question = report.subject_question.question
    if question is None:
        return
    texts: dict[str, list[str]] = {}
    for node in question.nodes:
        text = "; ".join(map(str, question.refusals.get(node.name, ()))) or "may take it"
        texts.setdefault(text, []).append(node.name)
    for text, names in sorted(texts.items(), key=lambda each: -len(each[1]))[:_NODES]:
        yield f"  {compress_names(names)}: {text}"


def _error(answer: Explanation) -> Iterator[str]:
    error = answer.error
    if error is None:
        return
    yield f"  the scheduler gives up on the pod: {error.text}"
    if error.where:
        yield f"      {error.where} of {error.claim}: {error.expression}"
    if error.device:
        yield f"      it has no value on device {error.device}"


def _trees(answer: Explanation, report: Explained) -> Iterator[str]:
    is_told = any(step.rule == "node" for tree in answer.requests for step in tree.steps)
    if not answer.requests or not (is_told or report.is_free):
        yield from _refused_nodes(report)
    for tree in answer.requests:
        yield from _tree(tree, is_absent=tree.device_class in report.absent)
    if answer.beyond and answer.beyond != answer.proof:
        yield f"  with all of that out of the way: {answer.beyond}"


def _tree(tree: RequestTree, *, is_absent: bool) -> Iterator[str]:
    wanted = "all devices" if tree.count is None else count_of(tree.count, "device")
    note = ", not known here: every device counts as one of it" if is_absent else ""
    yield f"  request {tree.request} of {tree.claim}: {wanted} of class {tree.device_class}{note}"
    width = len(f"{tree.candidates:,}")
    yield f"      {tree.candidates:>{width},} {'device' if tree.candidates == 1 else 'devices'}"
    for step in tree.steps:
        if step.removed:
            yield f"    - {step.removed:>{width},} {_step(step)}"
            also = sorted(step.also, key=lambda each: -each.removed)
            yield from (f"        {each.removed:,} of them also {_step(each)}" for each in also[:_NODES])
            if len(also) > _NODES:
                yield f"        {len(also) - _NODES:,} more causes keep some of them away"
    most = f", {tree.most} of them on {tree.node}" if tree.most and tree.left != tree.most else ""
    most = f", all on {tree.node}" if tree.most and tree.left == tree.most else most
    yield f"    = {tree.left:>{width},} left{most}"


def _step(step: Step) -> str:
    words = {
        "no-node": step.text,
        "node": f"on nodes that refuse the pod: {step.text}",
        "pool": step.text,
        "class": f"fail {step.where}: {step.text}",
        "request": f"fail {step.where}: {step.text}",
        "error": f"{step.where} has no value: {step.text}",
        "place": step.text,
        "gate": step.text,
        "taint": f"tainted {step.text}",
        "capacity": f"cannot give the share: {step.text}",
        "counter": f"take more than counter set {step.text} has",
        "in-use": f"in use ({step.text})" if step.text != "device" else "in use",
    }
    told = words[step.rule]
    if step.values:
        told += f" ({step.values})"
    if step.holders:
        told += f" by {', '.join(step.holders)}"
    return told


def _suggestions(found: Sequence[Suggestion], report: Explained) -> Iterator[str]:
    if found:
        errors = {each.code for each in report.causes if each.severity == "error"}
        beside = "where the quota lets it be made, " if found[0].refused else ""
        if errors - {*ASIDE, "class-not-known", "quota-refuses"}:
            beside = "apart from what is marked ✗, "
        yield f"  {beside}it fits with one of these, each tried out:"
    for number, each in enumerate(found, 1):
        yield f"    {number}. {each.text} (then on {each.node})"
        for where, changes in groupby(each.changes, key=lambda change: change.where):
            yield f"         {where}"
            yield from (f"           {line}" for change in changes for line in change.line.splitlines())
        if each.refused:
            yield f"         the quota says: {each.refused}"


_SELECT: Final = r"selectors\[{}\]\.cel\.expression"
_FIELDS: Final = re.compile(
    rf"spec\.{_SELECT.format(1)}|(?:spec\.)?spec\.devices\.requests\[(\d+)\]\.exactly\.(?:{_SELECT.format(0)}|(count))"
)
"""Fields that are an argument: a class begins with the selector of its driver, so that its second one is the user's."""
_ARGUED: Final = ("GpuClaim", "GpuClaimTemplate", "GpuDeviceClass", "SharedGpu")


def in_python(answer: Explanation, made: Mapping[str, ProgramObject]) -> Explanation:
    """The answer with changes of what components make as changes of their arguments, in Python.

    Args:
        answer: The answer.
        made: The objects that components make, by kind, namespace and name.
    """
    found = []
    for each in answer.suggestions:
        changes = tuple(_in_python(change, made) for change in each.changes)
        where = "; ".join(dict.fromkeys(change.where for change in changes))
        line = "; ".join(change.line for change in changes)
        found.append(replace(each, changes=changes, where=where, line=line))
    return replace(answer, suggestions=tuple(found))


def _in_python(change: Change, made: Mapping[str, ProgramObject]) -> Change:
    name, _, path = change.where.partition(": ")
    item = made.get(name)
    field = _FIELDS.fullmatch(path)
    component = item.component if item is not None else None
    if item is None or field is None or component is None or component.kind not in _ARGUED:
        return change
    requests = get_field(item.manifest, path.partition("[")[0]) if field[1] else ()
    # What is one request by this name is written without a list.
    is_short = not requests or [each.get("name") for each in requests] == ["gpu"]
    argument = "count" if field[2] else "select"
    cel = change.line.removeprefix("expression: ")
    if field[2]:
        text = f"count={change.line.rpartition(' ')[2]}"
    elif cel == change.line:
        text = "(leave out select)"
    else:
        cel = cel[1:-1].replace("''", "'") if cel.startswith("'") else cel
        text = f"select={write(read_selector(cel).code)}"
    where = f"{component}.{'' if is_short else f'requests[{field[1]}].'}{argument}"
    return Change(where=where, line=text)


def _devices(names: Sequence[str]) -> str:
    pools: dict[str, list[str]] = {}
    for name in names:
        pool, _, device = name.rpartition("/")
        pools.setdefault(pool, []).append(device)
    return "; ".join(f"{pool}/{compress_names(devices)}" for pool, devices in pools.items())


def to_json(report: Explained, not_seen: Sequence[Problem]) -> dict[str, Any]:
    """The report as JSON data; every key is always there."""
    answer = report.answer
    return make_report(
        "explain",
        {
            "subject": report.subject_question.subject,
            "where": report.where,
            "fits": report.fits,
            "verdict": report.verdict,
            "undecided": [each.message for each in report.undecided],
            "settled": report.subject_question.settled,
            "causes": to_data(report.causes),
            "answer": to_data(answer),
            "hasErrors": report.has_errors,
            "joint": report.joint.to_data() if report.joint else None,
            "growth": report.growth.to_data() if report.growth else None,
            "unmodelled": list(report.subject_question.unmodelled),
            "notSeen": to_data(not_seen),
            "provenance": report.provenance.to_json(),
        },
    )
