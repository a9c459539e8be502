"""Stand in for the kubelets of hand-made nodes; for tests only.

It runs nothing. It only writes what a kubelet would report, so that controllers go on: bound pods become Running and
Ready, pods of Jobs succeed, deleted pods go.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, cast

import httpx

from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from types import TracebackType

    from tools.cluster.api import Manifest
    from tools.cluster.connection import Connection

_PODS = "/api/v1/pods"
_RECONNECT_SECONDS = 0.2
_ANSWER_SECONDS = 60.0
# 128 + SIGTERM: how a container ends that is told to stop.
_STOPPED = 143


class NodeStandIn:
    """Answer for the pods of nodes that have no kubelet, while the context lasts.

    Each write names the resource version that it is based on. One that the server refuses for that reason is dropped:
    the newer version comes through the watch and is judged afresh.

    Args:
        connection: The cluster's administrator.
        nodes: Names of the nodes to answer for; None means all.
        finish_jobs: Whether pods of Jobs succeed at once, whereupon their claims are deallocated. With False they
            run until `finish_jobs` is called, so that a test can look at the allocation first.

    Raises:
        ToolError: On leaving the context, when the API server refused something unexpectedly.

    Example:
        >>> with ControlPlane() as plane, NodeStandIn(plane.connection):  # doctest: +SKIP
        ...     ...
    """

    def __init__(
        self, connection: Connection, *, nodes: Collection[str] | None = None, finish_jobs: bool = True
    ) -> None:
        self._connection = connection
        self._nodes = None if nodes is None else frozenset(nodes)
        self._jobs_finish = finish_jobs
        self._pods: dict[str, Manifest] = {}
        self._addresses = itertools.count(1)
        self._error: Exception | None = None
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="node-stand-in", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._watching.cancel)
        self._thread.join()
        if self._error is not None:
            message = f"the node stand-in ended early: {self._error}"
            if error is None:
                raise ToolError(message) from self._error
            error.add_note(message)

    def finish_jobs(self) -> None:
        """Let pods of Jobs succeed, those that run and those to come; returns when the former are written."""
        self._jobs_finish = True
        if not self._thread.is_alive():
            raise ToolError("the node stand-in is not running") from self._error
        try:
            asyncio.run_coroutine_threadsafe(self._judge_all(), self._loop).result(_ANSWER_SECONDS)
        except httpx.TransportError as error:
            raise ToolError(f"pods could not be written: {error}") from error

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - raised again in the thread that leaves the context.
            self._error = error
        finally:
            self._started.set()

    async def _watch(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watching = cast("asyncio.Task[None]", asyncio.current_task())
        async with self._connection.async_client() as self._client:
            self._started.set()
            while True:
                try:
                    async for pod in self._changes():
                        await self._judge(pod)
                except httpx.TransportError:
                    await asyncio.sleep(_RECONNECT_SECONDS)

    async def _changes(self) -> AsyncIterator[Manifest]:
        """All pods, then each one that changes, until the server ends the watch."""
        listed = await self._send("GET", _PODS)
        self._pods = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
        for pod in listed["items"]:
            yield pod
        params = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
        timeout = httpx.Timeout(_ANSWER_SECONDS, read=None)
        async with self._client.stream("GET", _PODS, params=params, timeout=timeout) as response:
            if response.is_error:
                return
            async for line in response.aiter_lines():
                event = json.loads(line)
                pod = event["object"]
                if event["type"] == "ERROR":
                    return
                if event["type"] == "DELETED":
                    self._pods.pop(pod["metadata"]["uid"], None)
                else:
                    self._pods[pod["metadata"]["uid"]] = pod
                    yield pod

    async def _judge_all(self) -> None:
        for pod in list(self._pods.values()):
            await self._judge(pod)

    async def _judge(self, pod: Manifest) -> None:
        """Do for *pod* what its kubelet would do next."""
        node = pod["spec"].get("nodeName")
        if node is None or (self._nodes is not None and node not in self._nodes):
            return
        metadata = pod["metadata"]
        phase = pod["status"].get("phase", "Pending")
        is_over = phase in ("Succeeded", "Failed")
        finishes = self._jobs_finish and _belongs_to_job(pod)
        if "deletionTimestamp" in metadata:
            if not is_over:
                await self._report(pod, _ended(pod, phase="Failed", code=_STOPPED))
            elif metadata.get("deletionGracePeriodSeconds") != 0:
                await self._remove(pod)
        elif finishes and not is_over:
            await self._report(pod, _ended(pod, phase="Succeeded", code=0))
        elif phase == "Pending":
            await self._report(pod, _running(pod, address=self._next_address()))

    async def _report(self, pod: Manifest, status: Manifest) -> None:
        version = {"resourceVersion": pod["metadata"]["resourceVersion"]}
        await self._send(
            "PATCH",
            f"{_path(pod)}/status",
            content=json.dumps({"metadata": version, "status": status}),
            # Strategic, because it merges conditions by type and so keeps the scheduler's.
            headers={"Content-Type": "application/strategic-merge-patch+json"},
        )

    async def _remove(self, pod: Manifest) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        await self._send("DELETE", _path(pod), json=options)

    async def _send(self, method: str, path: str, **options: Any) -> Manifest:
        response = await self._client.request(method, path, **options)
        if response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            # As if the connection had been cut: it passes, and everything is listed again.
            raise httpx.RemoteProtocolError(response.text[:500])
        if response.is_error and response.status_code not in (httpx.codes.NOT_FOUND, httpx.codes.CONFLICT):
            raise ToolError(f"{method} {path}: {response.status_code} {response.text[:500]}")
        answer: Manifest = response.json()
        return answer

    def _next_address(self) -> str:
        high, low = divmod(next(self._addresses), 254)
        return f"10.244.{high % 256}.{low + 1}"


def _path(pod: Manifest) -> str:
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _belongs_to_job(pod: Manifest) -> bool:
    owners = pod["metadata"].get("ownerReferences", [])
    return any(owner["kind"] == "Job" and owner.get("controller") for owner in owners)


def _running(pod: Manifest, *, address: str) -> Manifest:
    now = _now()
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": _conditions(now, ready=True),
        "initContainerStatuses": _ended_containers(pod, "initContainers", now, code=0),
        "containerStatuses": [
            {
                **_container(container),
                "ready": True,
                "started": True,
                "state": {"running": {"startedAt": now}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def _ended(pod: Manifest, *, phase: str, code: int) -> Manifest:
    now = _now()
    return {
        "phase": phase,
        "startTime": pod["status"].get("startTime", now),
        "conditions": _conditions(now, ready=False),
        "initContainerStatuses": _ended_containers(pod, "initContainers", now, code=0),
        "containerStatuses": _ended_containers(pod, "containers", now, code=code),
    }


def _ended_containers(pod: Manifest, field: str, now: str, *, code: int) -> list[Manifest]:
    ended = {
        "exitCode": code,
        "reason": "Completed" if code == 0 else "Error",
        "startedAt": now,
        "finishedAt": now,
    }
    return [
        {
            **_container(container),
            "ready": code == 0 and field == "initContainers",
            "state": {"terminated": ended},
        }
        for container in pod["spec"].get(field, [])
    ]


def _container(container: Manifest) -> Manifest:
    return {"name": container["name"], "image": container["image"], "imageID": "", "restartCount": 0}


def _conditions(now: str, *, ready: bool) -> list[Manifest]:
    states = {"Initialized": True, "ContainersReady": ready, "Ready": ready}
    return [{"type": name, "status": str(state), "lastTransitionTime": now} for name, state in states.items()]


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
