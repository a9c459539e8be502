"""A review as JSON, for programs. `schema` changes when a field is taken away or changes its meaning.

`schemas/review-v1.json` describes every field.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from dra_infra.errors import Place, Problem
from dra_infra.model.engine_preview import PolicyFinding
from dra_infra.model.metadata import ObjectRef
from dra_infra.planning.changes import Change
from dra_infra.planning.dangers import Danger
from dra_infra.planning.engine_steps import EngineOnly, EngineSide
from dra_infra.planning.placements import WorkloadReview
from dra_infra.planning.reviews import Review
from dra_infra.simulation.placement import NodePlacement, Placement, Room, WorkloadPlacement

SCHEMA: Final = "dra-infra.review/v1"

MAX_NODES: Final = 16
"""Names of nodes per workload; `nodeCount` counts all of them."""

_HIDDEN: Final = re.compile(
    r"[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202f\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]"
)


def render_json(review: Review) -> str:
    """The review as one JSON object with sorted keys; ends with a line break.

    Letters stay as they are; characters that could steer a terminal, and halves of pairs, are written as escapes.
    """
    text = json.dumps(describe_review(review), ensure_ascii=False, indent=2, sort_keys=True)
    return _HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"


def describe_review(review: Review) -> dict[str, Any]:
    """The review as plain JSON data."""
    return {
        "schema": SCHEMA,
        "source": review.source,
        "project": review.project,
        "stack": review.stack,
        "base": review.base_label,
        "grade": review.grade,
        "failed": review.failed,
        "verdict": review.verdict,
        "counts": {**review.counts, "unchanged": review.unchanged},
        "problems": [_problem(problem) for problem in review.problems],
        "dangers": [_danger(danger) for danger in review.dangers],
        "changes": [_change(change) for change in review.changes],
        "fleet": _fleet(review.after),
        "notPlaced": review.unplaced,
        "workloads": [_workload(workload) for workload in review.workloads],
        "headroom": [
            {"name": each.name, "before": _room(each.before), "after": _room(each.after)}
            for each in review.rooms
        ],
        "notKnown": [
            {"what": item.what, "name": item.name, "reason": item.reason} for item in review.not_known
        ],
        "notes": list(review.notes),
        "engine": _engine(review.engine, review.policies),
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
        "severity": problem.severity,
        "place": _place(problem.place),
    }


def _danger(danger: Danger) -> dict[str, Any]:
    return {
        "who": _ref(danger.who),
        "code": danger.code,
        "message": danger.message,
        "cause": danger.cause,
        "hint": danger.hint,
        "place": _place(danger.place),
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "action": change.action,
        "object": _ref(change.ref),
        "previousObject": _ref(change.old_ref) if change.old_ref else None,
        "urn": change.urn,
        "component": change.component,
        "replacing": list(change.replacing),
        "order": change.order,
        "refused": list(change.refused),
        "steps": list(change.steps),
        "place": _place(change.place),
        "diff": [{"path": hunk.path, "lines": list(hunk.lines)} for hunk in change.diff],
    }


def _engine(side: EngineSide | None, policies: tuple[PolicyFinding, ...]) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "whole": side.whole,
        "failure": _problem(side.failure) if side.failure else None,
        "summary": dict(side.summary),
        "others": [_engine_only(each) for each in side.others],
        "warnings": [{"urn": each.urn, "text": each.text} for each in side.warnings],
        "policies": [
            {
                "pack": each.pack,
                "policy": each.policy,
                "level": each.level,
                "urn": each.urn,
                "object": _ref(each.ref) if each.ref else None,
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
        "object": _ref(each.ref) if each.ref else None,
        "steps": list(each.steps),
        "replacing": list(each.replacing),
        "paths": [{"path": path, "kind": kind} for path, kind in each.paths],
    }


def _fleet(placement: Placement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    fleet = placement.fleet
    return {
        "name": fleet.name,
        "nodes": len(fleet.nodes),
        "devices": fleet.device_count,
        "together": placement.together,
    }


def _room(room: Room) -> dict[str, Any]:
    return {
        "claims": room.claims,
        "largest": room.largest,
        "perNode": [{"claims": claims, "nodes": nodes} for claims, nodes in room.per_node.items()],
    }


def _workload(workload: WorkloadReview) -> dict[str, Any]:
    return {
        "object": _ref(workload.owner),
        "trend": workload.trend,
        "summary": workload.summary,
        "previous": workload.previous,
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
        "example": _node(workload.nodes[0]) if workload.nodes else None,
        "pods": [_node(pod) for pod in workload.pods],
        "reasons": [
            {"code": reason.code, "message": reason.message, "nodes": reason.nodes, "example": reason.example}
            for reason in workload.reasons
        ],
        "unmodelled": list(workload.unmodelled),
    }


def _node(node: NodePlacement) -> dict[str, Any]:
    return {
        "node": node.node,
        "devices": [
            {
                "entry": choice.entry,
                "claim": choice.claim,
                "request": choice.request,
                "driver": choice.driver,
                "pool": choice.pool,
                "device": choice.device,
                "admin": choice.admin,
                "share": choice.share,
                "consumed": dict(choice.consumed),
            }
            for choice in node.devices
        ],
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    return {"file": place.file, "line": place.line, "column": place.column} if place else None


def _ref(ref: ObjectRef) -> dict[str, str]:
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
