"""Waiting for objects to become ready or to disappear."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from tools.kubernetes_provider.api_server import ApiServer, RefusedError
from tools.kubernetes_provider.kubeconfig import UnreachableError
from tools.kubernetes_provider.readiness import assess
from tools.kubernetes_provider.resource_types import GroupVersionKind

FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 1.0
MOST_PODS_NAMED: Final = 5

POD: Final = GroupVersionKind(group="", version="v1", kind="Pod")

Json = dict[str, Any]


class NotDoneError(Exception):
    """The object exists but is not as it was waited for.

    Attributes:
        live: The object as last seen.
        reasons: What stood in the way.
    """

    def __init__(self, message: str, live: Json, reasons: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join((message, *(f"- {reason}" for reason in reasons))))
        self.live = live
        self.reasons = reasons


def wait_until_ready(
    server: ApiServer, kind: GroupVersionKind, live: Json, *, seconds: float, cancelled: threading.Event
) -> Json:
    """Return the object once its status says that it is ready.

    Raises:
        NotDoneError: It failed for good, time is up, or the user cancelled.
    """
    metadata = live["metadata"]
    namespace = metadata.get("namespace", "")
    name = metadata["name"]
    for remaining in _pauses(seconds, cancelled):
        readiness = assess(live)
        if readiness.ready:
            return live
        if readiness.failed or not remaining:
            break
        try:
            live = server.get(kind, namespace, name)
        except UnreachableError:
            # The object exists: an error here would lose it from the stack's state.
            continue
        except RefusedError as refusal:
            message = f'{kind.kind} "{name}" cannot be read while waiting for it: {refusal}'
            raise NotDoneError(message, live) from refusal
    reasons = (*readiness.reasons, *_pod_complaints(server, live))
    what = "failed" if readiness.failed else _interruption(seconds, cancelled)
    raise NotDoneError(f'{kind.kind} "{name}" did not become ready: {what}', live, reasons)


def wait_until_gone(
    server: ApiServer,
    kind: GroupVersionKind,
    namespace: str,
    name: str,
    *,
    seconds: float,
    cancelled: threading.Event,
) -> None:
    """Return once no object of that name and age exists.

    Raises:
        NotDoneError: Time is up, or the user cancelled.
    """
    first: Json | None = None
    live: Json = {}
    for _ in _pauses(seconds, cancelled):
        try:
            live = server.get(kind, namespace, name)
        except RefusedError as refusal:
            if refusal.reason == "NotFound":
                return
            raise
        first = first or live
        if live["metadata"]["uid"] != first["metadata"]["uid"]:
            return
    finalizers = live["metadata"].get("finalizers") or ()
    raise NotDoneError(
        f'{kind.kind} "{name}" is still being deleted: {_interruption(seconds, cancelled)}',
        live,
        tuple(f"finalizer {finalizer} is still set" for finalizer in finalizers),
    )


def _pauses(seconds: float, cancelled: threading.Event) -> Iterator[bool]:
    """Yield at once and after each pause; the last time, when time is up or never will be, yield False."""
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    while (left := deadline - time.monotonic()) > 0 and not cancelled.is_set():
        yield True
        cancelled.wait(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
    yield False


def _interruption(seconds: float, cancelled: threading.Event) -> str:
    return "the operation was cancelled" if cancelled.is_set() else f"timed out after {seconds:g} s"


def _pod_complaints(server: ApiServer, live: Json) -> Iterator[str]:
    """Yield why pods of a workload are not ready, for the first few."""
    labels = ((live.get("spec") or {}).get("selector") or {}).get("matchLabels")
    if not isinstance(labels, dict) or not labels:
        return
    selector = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
    namespace = live["metadata"].get("namespace", "")
    try:
        found = server.select(POD, namespace, selector)
    except (RefusedError, UnreachableError):
        return
    pods = [{**pod, "apiVersion": "v1", "kind": "Pod"} for pod in found]
    waiting = [pod for pod in pods if not assess(pod).ready]
    for pod in sorted(waiting, key=lambda pod: str(pod["metadata"]["name"]))[:MOST_PODS_NAMED]:
        yield f"Pod {pod['metadata']['name']}: {'; '.join(assess(pod).reasons)}"
