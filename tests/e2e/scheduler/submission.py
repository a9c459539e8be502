"""Submits workloads to the real control plane: in any order, or so that their pods come to the scheduler in one that is named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from dra_infra.placement.placement import Order
from tests.e2e.scheduler.informer import Informer
from tests.e2e.scheduler.workloads import NAME_LABEL, Submitted
from tests.support.scheduler.stage import (
    HOSTNAME,
    Stage,
    is_decided,
    is_refused_by_quota,
    scheduled_condition,
)
from tools.cluster import Api, ApiError, ControlPlane, Manifest, WaitTimeoutError, kind_of
from tools.cluster.components import SCHEDULER

RETRY_SECONDS: Final = 30.0
GATE: Final = {"name": "e2e.example.com/turn"}
POD: Final = "v1/Pod"
EVENT: Final = "v1/Event"
MAKERS: Final = (
    "apps/v1/Deployment",
    "apps/v1/ReplicaSet",
    "apps/v1/StatefulSet",
    "apps/v1/DaemonSet",
    "batch/v1/Job",
)
OTHER_MAKERS: Final = ("jobset.x-k8s.io/v1alpha2/JobSet", "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet")
CLAIM_REFUSED: Final = "FailedResourceClaimCreation"
"""Reason of the event on a pod whose claim was not made: the scheduler does not look at it, and its status says nothing."""
POD_REFUSED: Final = "FailedCreate"
"""Reason of the event on an object whose controller could not make a pod."""


class Submission:
    """A stage on which workloads are submitted, and what becomes of them.

    Args:
        stage: The stage; somebody answers for the pods of its nodes.
        api: An administrator for the watches.
        plane: The control plane.
        others: Kinds of others of which there are controllers.
    """

    def __init__(self, stage: Stage, api: Api, plane: ControlPlane, others: Sequence[str] = ()) -> None:
        self.stage = stage
        self._plane = plane
        self._api = stage.api
        self._makers = (*MAKERS, *others)
        self._seen = Informer(api, (POD, EVENT, *self._makers))
        self._refused: dict[str, str] = {}

    def restart_scheduler(self) -> None:
        """Replace the scheduler by a new process, which knows only what the API server stores."""
        with self._plane.without(SCHEDULER):
            pass

    def submit(self, workloads: Sequence[Submitted], *, until_bound: bool, in_turn: bool) -> dict[str, str]:
        """Create workloads in the order given; those of which pods wait at the end, with what is known of why.

        Args:
            workloads: All of a platform.
            until_bound: Wait for a node for each pod: one that was refused is tried again, some seconds after another came.
                Else until it is decided of each pod whether it is made, gets its claims, and has a node.
            in_turn: Wait so after each workload.
        """
        with self._on_stage(workloads):
            for each in workloads:
                self._create(each, each.manifest)
                if in_turn:
                    self._wait_until_settled([each])
            if until_bound:
                with suppress(WaitTimeoutError):
                    self._seen.wait_for(lambda: not any(map(self._waiting, workloads)), timeout=RETRY_SECONDS)
            else:
                self._wait_until_settled(workloads)
            return {each.name: self._why(each) for each in workloads if self._waiting(each)}

    def play(self, workloads: Sequence[Submitted], order: Order) -> dict[str, int]:
        """Let pods come to the scheduler in an order, each for the node that it names, then all others; how many wait.

        Pods of controllers are held back by a gate, which is taken away when it is their turn.
        """
        by_name = {each.name: each for each in workloads}
        with self._on_stage(workloads):
            for each in workloads:
                if each.kind != "Pod":
                    self._create(each, each.with_spec(schedulingGates=[GATE]))
            for arrivals in order.arrivals:
                for _ in range(arrivals.pods):
                    if not self._send(by_name[arrivals.owner.name], arrivals.node):
                        break
            left = [by_name[owner.name] for owner, _ in order.pending]
            for each in left:
                if each.kind == "Pod":
                    self._create(each, each.manifest)
                self._release(each)
            return {each.name: waiting for each in workloads if (waiting := self._waiting(each))}

    def _create(self, workload: Submitted, manifest: Manifest) -> None:
        try:
            self._api.create(manifest)
        except ApiError as error:
            if not is_refused_by_quota(error):
                raise
            self._refused[workload.name] = str(error)

    def _send(self, workload: Submitted, node: str) -> bool:
        """Let one pod of a workload come, for a node; true once it is there."""
        if workload.kind == "Pod":
            selector = {**workload.spec.get("nodeSelector", {}), HOSTNAME: node}
            self._create(workload, workload.with_spec(nodeSelector=selector))
        else:
            pods = self._seen.wait_for(
                lambda: [each for each in self._held(workload) if _may_go_to(each, node)]
            )
            self._open(pods[0], {"nodeSelector": {HOSTNAME: node}})
        with suppress(WaitTimeoutError):
            self._seen.wait_for(
                lambda: not any(map(_is_coming, self._pods(workload))) and self._pods(workload),
                timeout=RETRY_SECONDS,
            )
            return True
        return False

    def _release(self, workload: Submitted) -> None:
        """Let all pods of a workload come that were held back until now, and wait until it is decided of each."""
        while True:
            self._seen.wait_for(lambda: self._held(workload) or self._is_settled(workload))
            held = self._held(workload)
            for pod in held:
                self._open(pod, {})
            if not held:
                return

    def _open(self, pod: Manifest, more: Manifest) -> None:
        metadata = pod["metadata"]
        self._api.patch(
            POD,
            metadata["name"],
            {"spec": {"schedulingGates": None, **more}},
            namespace=metadata["namespace"],
        )
        self._seen.wait_for(lambda: not any(_is(each, pod) and _is_held(each) for each in self._pods_in(pod)))

    def _pods_in(self, pod: Manifest) -> list[Manifest]:
        return self._seen.of(POD, pod["metadata"]["namespace"])

    def _held(self, workload: Submitted) -> list[Manifest]:
        return [each for each in self._pods(workload) if _is_held(each)]

    def _pods(self, workload: Submitted) -> list[Manifest]:
        return [
            each
            for each in self._seen.of(POD, workload.namespace)
            if each["metadata"].get("labels", {}).get(NAME_LABEL) == workload.name
        ]

    def _expected(self, workload: Submitted) -> int | None:
        """How many pods the workload should have; None while its controller has not said."""
        if workload.pods is not None:
            return workload.pods
        status = self._objects(workload)[0].get("status", {}) if self._objects(workload) else {}
        found: int | None = status.get("desiredNumberScheduled") if status.get("observedGeneration") else None
        return found

    def _waiting(self, workload: Submitted) -> int:
        """How many of its pods have no node; one where it is not known how many it has."""
        expected = self._expected(workload)
        bound = sum(bool(each["spec"].get("nodeName")) for each in self._pods(workload))
        return 1 if expected is None else expected - bound

    def _wait_until_settled(self, workloads: Sequence[Submitted]) -> None:
        try:
            self._seen.wait_for(lambda: all(map(self._is_settled, workloads)))
        except WaitTimeoutError as error:
            left = [each for each in workloads if not self._is_settled(each)]
            seen = [(each.manifest, self._expected(each), self._pods(each)) for each in left]
            raise WaitTimeoutError(f"{error}; last seen: {json.dumps(seen)[:6000]}") from None

    def _is_settled(self, workload: Submitted) -> bool:
        """All pods that there will be are there, and it is decided of each whether it has a node."""
        if workload.name in self._refused:
            return True
        expected = self._expected(workload)
        pods = self._pods(workload)
        if expected is None or not all(map(self._is_decided, pods)):
            return False
        waits = any(not each["spec"].get("nodeName") for each in pods)
        return len(pods) >= expected or (waits and workload.is_in_turn) or bool(self._pods_refused(workload))

    def _is_decided(self, pod: Manifest) -> bool:
        namespace = pod["metadata"]["namespace"]
        named = {each.get("resourceClaimName") for each in pod["spec"].get("resourceClaims") or ()}
        return (
            is_decided(pod)
            or bool(self._events(CLAIM_REFUSED, namespace, {pod["metadata"]["uid"]}))
            or any((namespace, name) in self.stage.refused for name in named)
        )

    def _pods_refused(self, workload: Submitted) -> list[str]:
        """What was said when a pod of it could not be made."""
        uids = {each["metadata"]["uid"] for each in self._objects(workload)}
        below = [each for kind in (*self._makers, POD) for each in self._seen.of(kind, workload.namespace)]
        while more := {each["metadata"]["uid"] for each in below if _owners(each) & uids} - uids:
            uids |= more
        return self._events(POD_REFUSED, workload.namespace, uids)

    def _objects(self, workload: Submitted) -> list[Manifest]:
        found = self._seen.of(kind_of(workload.manifest), workload.namespace)
        return [each for each in found if each["metadata"]["name"] == workload.name]

    def _events(self, reason: str, namespace: str, uids: set[str]) -> list[str]:
        return [
            each["message"]
            for each in self._seen.of(EVENT, namespace)
            if each["reason"] == reason and each["involvedObject"].get("uid") in uids
        ]

    def _why(self, workload: Submitted) -> str:
        told = [scheduled_condition(each).get("message", "") for each in self._pods(workload)]
        uids = {each["metadata"]["uid"] for each in self._pods(workload)}
        told += self._events(CLAIM_REFUSED, workload.namespace, uids)
        if workload.kind != "Pod":
            told += self._pods_refused(workload)
        return "; ".join(dict.fromkeys(filter(None, [self._refused.get(workload.name), *told])))

    @contextmanager
    def _on_stage(self, workloads: Sequence[Submitted]) -> Iterator[None]:
        """All is seen that there is, and all that is made goes again."""
        self._refused = {}
        # The scheduler has seen that the pods of the order before are gone.
        self.stage.wait_until_seen()
        try:
            yield
        finally:
            self._clear(workloads)

    def _clear(self, workloads: Sequence[Submitted]) -> None:
        for each in workloads:
            self._api.delete(kind_of(each.manifest), each.name, namespace=each.namespace, missing_ok=True)
        for namespace in {each.namespace for each in workloads}:
            # Those that wait go first, or one of them may get what another one leaves. In the other order some pods of the next
            # order were refused devices that were free by then; why the scheduler did so was not found out.
            pods = self._api.list(POD, namespace=namespace)
            for pod in sorted(pods, key=lambda each: bool(each["spec"].get("nodeName"))):
                name = pod["metadata"]["name"]
                self._api.delete(POD, name, namespace=namespace, grace_seconds=0, missing_ok=True)
            for kind in (*self._makers, POD):
                self._api.wait_for(kind, lambda left: not left, namespace=namespace)
            self.stage.wait_until_free(namespace)
            # What was said of them is of no use any more, and all that is watched is looked at after each change.
            self._api.request("DELETE", f"/api/v1/namespaces/{namespace}/events")
        self.stage.wait_until_returned()


def _owners(manifest: Manifest) -> set[str]:
    return {owner["uid"] for owner in manifest["metadata"].get("ownerReferences", ())}


def _is_held(pod: Manifest) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def _is_coming(pod: Manifest) -> bool:
    """It is held back by nothing, and has no node."""
    return not _is_held(pod) and not pod["spec"].get("nodeName")


def _is(pod: Manifest, other: Manifest) -> bool:
    return bool(pod["metadata"]["uid"] == other["metadata"]["uid"])


def _may_go_to(pod: Manifest, node: str) -> bool:
    """A pod of a DaemonSet is made for one node, which its affinity names."""
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    named = [
        field["values"]
        for term in required.get("nodeSelectorTerms", ())
        for field in term.get("matchFields", ())
        if field["key"] == "metadata.name"
    ]
    return not named or [node] in named
