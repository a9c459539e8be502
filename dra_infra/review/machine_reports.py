"""A review for machines: JUnit XML, SARIF 2.1.0 and JSON.

- JUnit XML: one test case for each workload and for each thing that something is said of.
- SARIF 2.1.0: problems and dangers at the lines that they come from.
- JSON: `schema` changes when a field is taken away or changes its meaning. `schemas/review-v1.json` describes every
  field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dra_infra.errors import Problem
from dra_infra.output.escaping import json_text, one_line
from dra_infra.output.finding_formats import Finding, TestCase, write_junit, write_sarif
from dra_infra.output.report_data import make_report, to_data
from dra_infra.placement.placement import Placement, WorkloadPlacement
from dra_infra.placement.texts import AT_MOST
from dra_infra.program_objects import PolicyFinding
from dra_infra.review.changes import Change
from dra_infra.review.dangers import Danger
from dra_infra.review.engine_steps import EngineOnly, EngineSide
from dra_infra.review.growth import GrowthChange
from dra_infra.review.placements import WorkloadReview
from dra_infra.review.reviews import Review
from dra_infra.upgrades.differences import Difference
from dra_infra.upgrades.reports import make_data

_TOGETHER: Final = {"always": True, "depends-on-order": True, "never": False, "not-decided": None}
"""Value of `together`, which the first version of the report had, by the verdict on all workloads at once."""


def render_junit(review: Review) -> str:
    """One suite; ends with a line break. Its first case is called by the verdict, and passes: others say what fails.

    A workload fails its case when it has no place any more, an argument or object when it has a problem. Dangers and
    warnings are cases that pass, with what is to be known in their output.
    """
    properties = review.provenance.to_properties()
    return write_junit("dra-infra review", list(_cases(review)), properties=properties) + "\n"


def _cases(review: Review) -> Iterator[TestCase]:
    yield TestCase(group="verdict", name=review.verdict)
    by_path: dict[str, list[Problem]] = {}
    for problem in review.problems:
        by_path.setdefault(problem.path, []).append(problem)
    for workload in review.workloads:
        if workload.after is not None:
            found = by_path.pop(str(workload.owner), [])
            yield _case("placement", str(workload.owner), found, remark=workload.summary)
    for path, found in by_path.items():
        yield _case("problems", path, found)
    for danger in (*review.dangers, *review.rollouts):
        hint = f"\nhint: {one_line(danger.hint)}" if danger.hint else ""
        remark = f"{one_line(f'{danger} [{danger.code}]')}{hint}"
        group = "dangers" if danger.level == "danger" else "rollouts"
        yield TestCase(group=group, name=str(danger.who), remarks=[remark])
    for each in _list_differences(review):
        remark = one_line(f"{each.message} [{each.code}]")
        yield TestCase(group="upgrade", name=each.where, remarks=[remark])


def _list_differences(review: Review) -> tuple[Difference, ...]:
    return review.upgrade.differences if review.upgrade is not None else ()


def _case(group: str, name: str, found: list[Problem], *, remark: str = "") -> TestCase:
    return TestCase(
        group=group,
        name=name,
        failures=[(each.code, _told(each)) for each in found if each.severity == "error"],
        remarks=[
            *(f"{_told(each)} [{each.code}]" for each in found if each.severity != "error"),
            *([one_line(remark)] if remark else []),
        ],
    )


def _told(problem: Problem) -> str:
    where = f"{problem.place}: " if problem.place else ""
    hint = f"\nhint: {one_line(problem.hint)}" if problem.hint else ""
    return f"{one_line(f'{where}{problem.path}: {problem.message}')}{hint}"


def render_sarif(review: Review) -> str:
    """One log with one run; ends with a line break.

    Places are below the top of the repository, which code scanning begins at. A problem has its own severity, a danger is a warning, a rollout that ends a note, and what could not be known is said of the run. What has no
    line in the user's files names its object instead.
    """
    notes = [*map(str, review.not_known), *_notes(review)]
    provenance = review.provenance.to_json()
    findings = list(_findings(review))
    return write_sarif(findings, provenance=provenance, notes=notes, folder=review.folder) + "\n"


def _findings(review: Review) -> Iterator[Finding]:
    for problem in review.problems:
        told = f"{problem.path}: {problem.message}"
        yield Finding(
            code=problem.code,
            level=problem.severity,
            message=_message(told, problem.hint),
            place=problem.place,
            subject=problem.path,
        )
    places = {change.ref: change.place for change in review.changes}
    for danger in (*review.dangers, *review.rollouts):
        yield Finding(
            code=danger.code,
            level="warning" if danger.level == "danger" else "note",
            message=_message(str(danger), danger.hint),
            place=danger.place or places.get(danger.who),
            subject=str(danger.who),
        )
    for each in _list_differences(review):
        yield Finding(
            code=each.code,
            level="note" if each.level == "note" else "warning",
            message=_message(f"{each.where}: {each.message}", each.hint),
            place=each.place,
            subject=each.where,
        )


def _message(told: str, hint: str) -> str:
    return one_line(told) + (f"\nhint: {one_line(hint)}" if hint else "")


MAX_NODES: Final = 16
"""Names of nodes per workload; `nodeCount` counts all of them."""


def render_json(review: Review) -> str:
    """The review as one JSON object with sorted keys; ends with a line break.

    Letters stay as they are; characters that could steer a terminal, and halves of pairs, are written as escapes.
    """
    return json_text(describe_review(review), sort_keys=True, letters=True) + "\n"


def describe_review(review: Review) -> dict[str, Any]:
    """The review as plain JSON data."""
    data: dict[str, Any] = {
        "source": review.source,
        "project": review.project,
        "stack": review.stack,
        "base": review.base_label,
        "grade": review.grade,
        "failed": review.failed,
        "verdict": review.verdict,
        "counts": {**review.counts, "unchanged": review.unchanged},
        "problems": to_data(review.problems),
        "dangers": [_danger(danger) for danger in review.dangers],
        "rollouts": [_danger(each) for each in review.rollouts],
        "upgrade": make_data(review.upgrade) if review.upgrade is not None else None,
        "changes": [_change(change) for change in review.changes],
        "fleet": _fleet(review.after),
        "notPlaced": review.unplaced,
        "workloads": [_workload(workload) for workload in review.workloads],
        "headroom": [
            {"name": each.name, "before": each.before.to_data(), "after": each.after.to_data()}
            for each in review.rooms
        ],
        "fragmentation": [each.to_data() for each in review.after.fragments] if review.after else [],
        "growth": _growth(review.growth) if review.growth else None,
        "notKnown": [
            {"what": item.what, "name": item.name, "reason": item.reason} for item in review.not_known
        ],
        "notes": _notes(review),
        "engine": _engine(review.engine, review.policies),
        "provenance": review.provenance.to_json(),
    }
    return make_report("review", data)


def _growth(change: GrowthChange) -> dict[str, Any]:
    """The growth as JSON has it; amounts of money are texts, so that no reader rounds them."""
    before, after = change.before, change.after
    return {
        "summary": str(change),
        "verdictBefore": before.verdict if before else None,
        "verdict": after.verdict,
        "currency": after.billing.currency,
        "per": after.billing.per,
        "cheapest": after.is_cheapest,
        "pools": [
            {
                "name": pool.name,
                "machine": pool.machine,
                "now": pool.now,
                "addedBefore": before.added[number] if before else 0,
                "added": after.added[number],
                "max": pool.most,
                "price": None if pool.price is None else str(pool.price),
            }
            for number, pool in enumerate(after.pools)
        ],
        "outlooks": [each.to_data() for each in after.outlooks],
        "costs": [
            {
                "part": row.part,
                "name": row.name,
                "devicesBefore": None if row.devices[0] is None else float(row.devices[0]),
                "devices": None if row.devices[1] is None else float(row.devices[1]),
                "costBefore": None if row.cost[0] is None else str(row.cost[0]),
                "cost": None if row.cost[1] is None else str(row.cost[1]),
            }
            for row in change.rows
        ],
    }


def _danger(danger: Danger) -> dict[str, Any]:
    return {
        "level": danger.level,
        "who": to_data(danger.who),
        "code": danger.code,
        "message": danger.message,
        "cause": danger.cause,
        "hint": danger.hint,
        "place": to_data(danger.place),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "action": change.action,
        "object": to_data(change.ref),
        "previousObject": to_data(change.old_ref),
        "urn": change.urn,
        "component": str(change.component or ""),
        "replacing": list(change.replacing),
        "order": change.order,
        "refused": list(change.refused),
        "steps": list(change.steps),
        "place": to_data(change.place),
        "diff": [{"path": hunk.path, "lines": list(hunk.lines)} for hunk in change.diff],
    }


def _engine(side: EngineSide | None, policies: tuple[PolicyFinding, ...]) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "whole": side.whole,
        "failure": to_data(side.failure),
        "summary": dict(side.summary),
        "others": [_engine_only(each) for each in side.others],
        "warnings": [{"urn": each.urn, "text": each.text} for each in side.warnings],
        "policies": [
            {
                "pack": each.pack,
                "policy": each.policy,
                "level": each.level,
                "urn": each.urn,
                "object": to_data(each.ref),
                "message": each.message,
            }
            for each in policies
        ],
    }


def _engine_only(each: EngineOnly) -> dict[str, Any]:
    return {
        "why": each.why,
        "urn": each.urn,
        "type": each.type,
        "name": each.name,
        "object": to_data(each.ref),
        "steps": list(each.steps),
        "replacing": list(each.replacing),
        "paths": [{"path": path, "kind": kind} for path, kind in each.paths],
    }


def _notes(review: Review) -> list[str]:
    at_most = review.joint_at_most
    return [*review.notes, *([f"{AT_MOST}, workloads {at_most}."] if at_most else [])]


def _fleet(placement: Placement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    fleet = placement.fleet
    return {
        "name": fleet.name,
        "nodes": len(fleet.nodes),
        "devices": fleet.device_count,
        "together": _TOGETHER[placement.joint.verdict],
        "joint": {
            "verdict": placement.joint.verdict,
            "reasons": list(placement.joint.reasons),
            "shortages": [each.to_data() for each in placement.joint.shortages],
        },
    }


def _workload(workload: WorkloadReview) -> dict[str, Any]:
    return {
        "object": to_data(workload.owner),
        "trend": workload.trend,
        "summary": workload.summary,
        "previous": workload.previous,
        "team": workload.team,
        "before": _placed(workload.before),
        "after": _placed(workload.after),
    }


def _placed(workload: WorkloadPlacement | None) -> dict[str, Any] | None:
    if workload is None:
        return None
    return {
        "verdict": workload.verdict,
        "replicas": workload.replicas,
        "morePods": workload.more_pods,
        "nodeCount": len(workload.nodes),
        "nodes": [node.node for node in workload.nodes[:MAX_NODES]],
        "example": workload.nodes[0].to_data() if workload.nodes else None,
        "pods": [pod.to_data() for pod in workload.pods],
        "reasons": to_data(workload.reasons),
        "unmodelled": list(workload.unmodelled),
    }
