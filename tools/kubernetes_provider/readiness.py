"""When an object counts as ready, kind by kind, after `provider/pkg/await` of pulumi/pulumi-kubernetes.

Kinds that are not listed are ready as soon as they are accepted. That includes every kind of
`resource.k8s.io`, as with the vendor, and `Service`, `Ingress` and volumes, unlike the vendor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

REVISION: Final = "deployment.kubernetes.io/revision"
FATAL_JOB_REASONS: Final = frozenset({"BackoffLimitExceeded", "DeadlineExceeded"})

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """What the status of an object says.

    Args:
        ready: Nothing to wait for.
        failed: Waiting is in vain.
        reasons: Why it is not ready, in the words of its controller.
    """

    ready: bool
    failed: bool = False
    reasons: tuple[str, ...] = ()


READY: Final = Readiness(ready=True)


def assess(live: Json) -> Readiness:
    """Read the readiness of an object from its status."""
    check = CHECKS.get(f"{live.get('apiVersion')}/{live.get('kind')}")
    return check(live) if check else READY


def _conditions(live: Json) -> dict[str, Json]:
    return {condition["type"]: condition for condition in live.get("status", {}).get("conditions") or ()}


def _holds(conditions: Mapping[str, Json], name: str) -> bool:
    return conditions.get(name, {}).get("status") == "True"


def _complaints(conditions: Mapping[str, Json], *names: str) -> tuple[str, ...]:
    """Return reason and message of those conditions that exist and do not hold."""
    return tuple(
        f"[{conditions[name].get('reason', name)}] {conditions[name].get('message', '')}".rstrip()
        for name in names
        if name in conditions and not _holds(conditions, name)
    )


def _is_observed(live: Json) -> bool:
    return bool(live["status"].get("observedGeneration", 0) >= live["metadata"].get("generation", 0))


def _wanted(live: Json) -> int:
    return int(live["spec"].get("replicas", 1))


def _deployment(live: Json) -> Readiness:
    status = live.get("status", {})
    conditions = _conditions(live)
    revision = (live["metadata"].get("annotations") or {}).get(REVISION)
    if not status or not revision or not _is_observed(live):
        return Readiness(ready=False, reasons=("the Deployment controller has not seen this change yet",))
    rolled_out = (
        revision == "1" or conditions.get("Progressing", {}).get("reason") == "NewReplicaSetAvailable"
    )
    updated, ready = status.get("updatedReplicas", 0), status.get("readyReplicas", 0)
    return Readiness(
        ready=_holds(conditions, "Available")
        and rolled_out
        and updated >= _wanted(live)
        and ready >= _wanted(live),
        reasons=(
            f"{ready} of {_wanted(live)} pods are ready, {updated} are of the new template",
            *_complaints(conditions, "Progressing", "Available"),
        ),
    )


def _stateful_set(live: Json) -> Readiness:
    status = live.get("status", {})
    if not status or not _is_observed(live):
        return Readiness(ready=False, reasons=("the StatefulSet controller has not seen this change yet",))
    updated, ready = status.get("updatedReplicas", 0), status.get("readyReplicas", 0)
    rolled_out = status.get("currentRevision") == status.get("updateRevision")
    return Readiness(
        ready=rolled_out and ready >= _wanted(live),
        reasons=(f"{ready} of {_wanted(live)} pods are ready, {updated} are of the new template",),
    )


def _daemon_set(live: Json) -> Readiness:
    status = live.get("status", {})
    if not status or not _is_observed(live):
        return Readiness(ready=False, reasons=("the DaemonSet controller has not seen this change yet",))
    wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    updated = status.get("updatedNumberScheduled", 0)
    return Readiness(
        ready=ready >= wanted and updated >= wanted,
        reasons=(f"{ready} of {wanted} pods are ready, {updated} are of the new template",),
    )


def _job(live: Json) -> Readiness:
    status = live.get("status", {})
    conditions = _conditions(live)
    failure = conditions.get("Failed", {})
    if _holds(conditions, "Failed") and failure.get("reason") in FATAL_JOB_REASONS:
        reason = f"[{failure['reason']}] {failure.get('message', '')}"
        return Readiness(ready=False, failed=True, reasons=(reason,))
    return Readiness(
        ready=_holds(conditions, "Complete"),
        reasons=(", ".join(f"{name} {status.get(name, 0)}" for name in ("active", "succeeded", "failed")),),
    )


def _pod(live: Json) -> Readiness:
    conditions = _conditions(live)
    phase = live.get("status", {}).get("phase")
    steps = ("PodScheduled", "Initialized", "Ready")
    return Readiness(
        ready=phase == "Succeeded" or all(_holds(conditions, step) for step in steps),
        reasons=(f"phase {phase or 'unknown'}", *_complaints(conditions, *steps)),
    )


CHECKS: Final[dict[str, Callable[[Json], Readiness]]] = {
    "apps/v1/DaemonSet": _daemon_set,
    "apps/v1/Deployment": _deployment,
    "apps/v1/StatefulSet": _stateful_set,
    "batch/v1/Job": _job,
    "v1/Pod": _pod,
}
