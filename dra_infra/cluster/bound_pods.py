"""Pods that have their node: what keeps their containers from starting, or the pod from ending.

The scheduler is done with such a pod. Its claims must be allocated and reserved, its node ready, and its kubelet must
prepare the devices. Source: pkg/kubelet/cm/dra/manager.go (prepareResources) and pkg/controller/resourceclaim.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.client.objects import claims_of, name_of, namespace_of, text, uid_of, warning_about
from dra_infra.cluster.kubelets import DEFAULT_VERSION, OLDER_VERSION, describe_old_kubelet
from dra_infra.errors import Problem
from dra_infra.explanation.asking import ClusterContext, read_allocation
from dra_infra.kubernetes.api import (
    AllocationResult,
    Node,
    ObjectRef,
    PodRecord,
    mapping,
    mappings,
    matches_node_selector,
)
from dra_infra.output.wording import compress_names, join_words

Manifest = Mapping[str, Any]

UNREGISTERED: Final = "is not registered"
"""What a kubelet says of a driver that it does not know (dra_plugin_manager.go)."""
_WRONG_VERSION: Final = "could not find the requested resource"
"""What an API server answers to a version that it does not serve."""
_FAILED: Final = "FailedPrepareDynamicResources"

_STUCK: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)
"""Reasons of a waiting container that do not go away while nobody does anything (pkg/kubelet/images, kuberuntime)."""


def reserves(claim: Manifest, pod: Manifest) -> bool:
    """Return True where a claim is reserved for a pod; a pod that was written without a uid counts by its name."""
    reserved = mappings(mapping(claim.get("status")).get("reservedFor"))
    return any(
        each.get("resource") == "pods"
        and (text(each.get("uid")) == uid_of(pod) if uid_of(pod) else text(each.get("name")) == name_of(pod))
        for each in reserved
    )


def find_unallocated(pod: Manifest, claims: Sequence[Manifest]) -> Iterator[Problem]:
    """Yield the claims of a pod with a node that have no devices: code `claim-not-allocated`.

    The scheduler alone allocates claims, and it no longer looks at the pod.
    """
    node = PodRecord.of(pod).node
    names, _ = claims_of(pod)
    for claim in claims:
        if namespace_of(claim) != namespace_of(pod) or name_of(claim) not in names:
            continue
        if not mapping(mapping(claim.get("status")).get("allocation")):
            yield Problem(
                path=f"Pod {namespace_of(pod)}/{name_of(pod)}",
                code="claim-not-allocated",
                message=f"it has node {node} already, and its ResourceClaim {name_of(claim)} has no devices: only the "
                "scheduler allocates claims, and it does not look at a pod that has a node",
                hint=f"{_delete_pod(pod)}, and create it without spec.nodeName; to choose the node, write nodeSelector: "
                f"{{kubernetes.io/hostname: {node}}}",
            )


def find_obstacles(
    pod: Manifest,
    ref: ObjectRef,
    claims: Sequence[Manifest],
    events: Sequence[Manifest],
    around: ClusterContext,
) -> Iterator[Problem]:
    """Yield what keeps a pod that waits on its node from running.

    Codes `claim-not-allocated`, `pod-not-reserved`, `claim-elsewhere`, `kubelet-too-old`, `node-not-ready`,
    `plugin-not-ready`, `prepare-failed`, `container-waits`.
    """
    names, _ = claims_of(pod)
    own = [each for each in claims if namespace_of(each) == ref.namespace and name_of(each) in names]
    name = PodRecord.of(pod).node
    node = next((each for each in around.fleet.nodes if each.name == name), None)
    yield from find_unallocated(pod, own)
    for claim in own:
        result = read_allocation(claim)
        if result is not None:
            yield from _check_allocated(claim, result, pod, name, node)
    yield from _check_node(ref, name, node, around)
    old = [*find_old_kubelets(ref, [node] if node is not None and names else [], around)]
    yield from old
    is_known = any(each.severity == "error" for each in old)
    yield from _find_kubelet_words(pod, ref, name, events, is_known=is_known)
    yield from _find_waiting_containers(pod, ref)


def _check_allocated(
    claim: Manifest, result: AllocationResult, pod: Manifest, name: str, node: Node | None
) -> Iterator[Problem]:
    """Yield why a claim with devices is of no use on the node: it is for another one, or not reserved."""
    path = f"ResourceClaim {namespace_of(claim)}/{name_of(claim)}"
    selector = result.node_selector
    if (
        node is not None
        and selector is not None
        and not matches_node_selector(selector.to_manifest(), node.labels, node.name)
    ):
        yield Problem(
            path=path,
            code="claim-elsewhere",
            message=f"its devices are not on {name}, where the pod is",
            hint=f"{_delete_pod(pod)}: the scheduler then finds the node for it",
        )
    if not reserves(claim, pod) and uid_of(pod):
        yield Problem(
            path=path,
            code="pod-not-reserved",
            message=f"it is not reserved for Pod {name_of(pod)}, so the kubelet does not prepare its devices",
            hint="kube-controller-manager reserves it for a pod with a node: see whether it runs",
            severity="warning",
        )


def _check_node(ref: ObjectRef, name: str, node: Node | None, around: ClusterContext) -> Iterator[Problem]:
    if node is None and around.fleet.nodes and not around.is_blind:
        yield Problem(
            path=str(ref),
            code="node-not-ready",
            message=f"its node {name} is not there",
            hint="delete the pod: the garbage collector of pods does so too, after a while",
        )
    elif node is not None and node.is_ready is False:
        yield Problem(
            path=str(ref),
            code="node-not-ready",
            message=f"its node {name} is not Ready, so no kubelet starts it",
            hint=f"kubectl describe node {shlex.quote(name)}",
        )


def find_old_kubelets(ref: ObjectRef, nodes: Iterable[Node], around: ClusterContext) -> Iterator[Problem]:
    """Yield the nodes whose kubelets cannot read claims: code `kubelet-too-old`.

    It is a warning where it is not known which versions the API server serves.
    """
    found: dict[str, list[str]] = {}
    for node in nodes:
        if old := describe_old_kubelet(node.kubelet, around.served or (DEFAULT_VERSION,)):
            found.setdefault(old, []).append(node.name)
    for old, names in sorted(found.items()):
        unless = "" if around.served else f" unless --runtime-config names resource.k8s.io/{OLDER_VERSION}"
        yield Problem(
            path=str(ref),
            code="kubelet-too-old",
            message=f"on {compress_names(names)} the claims cannot be read: {old}{unless}",
            hint=f"upgrade these kubelets to 1.34 or newer, or start the API server with "
            f"--runtime-config=resource.k8s.io/{OLDER_VERSION}=true",
            severity="error" if around.served else "warning",
        )


def find_kubelet_trouble(
    pod: Manifest, ref: ObjectRef, node: str, events: Sequence[Manifest]
) -> Iterator[Problem]:
    """Yield that the kubelet of a pod's node does not know a driver: code `plugin-not-ready`."""
    for each in events:
        message = text(each.get("message"))
        if text(mapping(each.get("involvedObject")).get("uid")) == uid_of(pod) and UNREGISTERED in message:
            yield Problem(
                path=str(ref),
                code="plugin-not-ready",
                message=f"the kubelet of {node} does not know the driver: {message[:300]}",
                hint=f"the driver's pod on {node} does not run, or its socket is not there: dra-infra doctor",
            )
            return


_MEANINGS: Final = (
    (
        re.compile(r": not allocated$"),
        "a claim of the pod has no devices, and only the scheduler allocates claims",
        "delete the pod, and create it without spec.nodeName",
    ),
    (
        re.compile(r"is not allowed to use ResourceClaim"),
        "a claim is not reserved for the pod",
        "kube-controller-manager reserves it for a pod with a node: see whether it runs",
    ),
    (
        re.compile(r"previous pod force-deleted"),
        "the kubelet still has the claim of an earlier pod with the same name, which was deleted by force",
        "delete the pod and use another name, or restart the kubelet once the driver has released that claim",
    ),
    (
        re.compile(r"is being unprepared"),
        "the kubelet still releases the claim of an earlier pod",
        "it tries again; if it stays, see the log of the driver's pod on the node",
    ),
    (
        re.compile(r"resourceclaims?\S* \"[^\"]*\" not found"),
        "a claim of the pod is not there any more",
        "delete the pod: its owner makes another one",
    ),
    (
        re.compile(r"context deadline exceeded|connection refused|DeadlineExceeded|Unavailable"),
        "the driver does not answer the kubelet",
        "see the log of the driver's pod on the node",
    ),
)
"""What a kubelet's message on the devices of a pod means, and what helps; the first that matches counts."""


def _find_kubelet_words(
    pod: Manifest, ref: ObjectRef, node: str, events: Sequence[Manifest], *, is_known: bool
) -> Iterator[Problem]:
    """Yield what the kubelet's last warning about the pod's devices means."""
    last = warning_about(pod, [each for each in events if text(each.get("reason")) == _FAILED])
    if last is None:
        return
    message = text(last.get("message"))
    if UNREGISTERED in message:
        yield from find_kubelet_trouble(pod, ref, node, [last])
    elif _WRONG_VERSION in message:
        if not is_known:
            yield Problem(
                path=str(ref),
                code="kubelet-too-old",
                message=f"the kubelet of {node} reads its claims in a version that the API server does not serve: {message[:300]}",
                hint=f"upgrade the kubelet of {node} to the version of the API server",
            )
    else:
        meanings = ((why, hint) for pattern, why, hint in _MEANINGS if pattern.search(message))
        why, hint = next(meanings, ("the driver refuses", "see the log of the driver's pod on the node"))
        yield Problem(
            path=str(ref),
            code="prepare-failed",
            message=f"the kubelet of {node} cannot prepare its devices, because {why}: {message[:300]}",
            hint=hint,
        )


def _find_waiting_containers(pod: Manifest, ref: ObjectRef) -> Iterator[Problem]:
    status = mapping(pod.get("status"))
    for field in ("initContainerStatuses", "containerStatuses"):
        for each in mappings(status.get(field)):
            waiting = mapping(mapping(each.get("state")).get("waiting"))
            reason = text(waiting.get("reason"))
            if reason in _STUCK:
                words = text(waiting.get("message"))[:300]
                yield Problem(
                    path=f"{ref}: container {text(each.get('name'))}",
                    code="container-waits",
                    message=f"it does not start: {reason}{f': {words}' if words else ''}",
                    hint=f"kubectl describe pod -n {shlex.quote(ref.namespace)} {shlex.quote(ref.name)}",
                )


def find_end(
    pod: Manifest,
    ref: ObjectRef,
    claims: Sequence[Manifest],
    events: Sequence[Manifest],
    around: ClusterContext,
) -> Iterator[Problem]:
    """Yield that a pod is being deleted, with what it still has and what keeps it: codes `pod-deleting`, `plugin-not-ready`."""
    metadata = mapping(pod.get("metadata"))
    node = PodRecord.of(pod).node
    held = [each for each in claims if namespace_of(each) == ref.namespace and reserves(each, pod)]
    since = f"since {text(metadata.get('deletionTimestamp'))}"
    has = f", and still has ResourceClaim {join_words([name_of(each) for each in held])}" if held else ""
    silent = _find_silent_drivers(held, node, around)
    unknown = [*find_kubelet_trouble(pod, ref, node, events)]
    if unknown or silent:
        named = f"driver {join_words(silent)}" if silent else "the driver"
        hint = (
            f"its kubelet needs {named} on {node} to release the devices: get the driver's pod there to run. If that pod waits "
            "for this one (NVIDIA/k8s-driver-manager#213), update the driver manager; or, once no process uses the device, "
            f"delete it by force: {_delete_pod(pod)} --grace-period=0 --force"
        )
    elif metadata.get("finalizers"):
        hint = f"it goes when {join_words([text(each) for each in metadata['finalizers']])} is removed from its finalizers"
    elif node:
        hint = f"it goes when the kubelet of {node} has stopped its containers and released its devices"
    else:
        hint = "it goes by itself"
    yield Problem(path=str(ref), code="pod-deleting", message=f"it is being deleted {since}{has}", hint=hint)
    yield from unknown
    fleet = {each.name: each for each in around.fleet.nodes}
    if node:
        yield from _check_node(ref, node, fleet.get(node), around)


def _find_silent_drivers(claims: Sequence[Manifest], node: str, around: ClusterContext) -> list[str]:
    """Return the drivers of claims that publish no slice for the node on which they must release the devices."""
    results = [found for each in claims if (found := read_allocation(each)) is not None]
    drivers = {each.driver for result in results for each in result.devices.results or ()}
    published = {
        each.spec.driver
        for each in around.fleet.slices
        if each.spec.node_name == node or not each.spec.node_name
    }
    return sorted(drivers - published)


def find_failure(pod: Manifest, ref: ObjectRef) -> Iterator[Problem]:
    """Yield that a pod has failed, with what its kubelet says of it: code `pod-failed`."""
    status = mapping(pod.get("status"))
    if PodRecord.of(pod).phase == "Failed":
        words = ": ".join(filter(None, (text(status.get("reason")), text(status.get("message"))[:300])))
        yield Problem(
            path=str(ref),
            code="pod-failed",
            message=f"it has failed and does not run again{f': {words}' if words else ''}",
            hint=f"{_delete_pod(pod)}: its owner, if it has one, makes another",
        )


def _delete_pod(pod: Manifest) -> str:
    """Return the command that deletes a pod."""
    namespace = namespace_of(pod)
    return shlex.join(["kubectl", "delete", "pod", *(["-n", namespace] if namespace else []), name_of(pod)])
