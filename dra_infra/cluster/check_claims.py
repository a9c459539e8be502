"""Checks of claims and device pools in a cluster.

Claims may be held for pods that are gone, with devices that are gone, or for MIG devices that nobody publishes. The
scheduler gives out nothing of a pool that is incomplete or contradicts itself.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/*/pools_*.go.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dra_infra.client.kinds import CLAIMS, NODES, PODS, SLICES
from dra_infra.client.objects import full_name, name_of, namespace_of, requests_of, text
from dra_infra.cluster.bound_pods import find_unallocated
from dra_infra.cluster.evidence import Evidence
from dra_infra.cluster.nvidia import GPU_DRIVER, MIG_CLASS
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import PodRecord, mapping, mappings
from dra_infra.kubernetes.scheduler.allocator import describe_counts
from dra_infra.output.wording import count_of, join_words

Manifest = Mapping[str, Any]


def newest_pools(slices: Sequence[Manifest]) -> dict[tuple[str, str], list[Manifest]]:
    """The slices of the newest generation of each pool, by driver and name."""
    pools: defaultdict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for each in slices:
        spec = mapping(each.get("spec"))
        pools[text(spec.get("driver")), text(mapping(spec.get("pool")).get("name"))].append(each)
    newest = {key: max(map(_generation, found)) for key, found in pools.items()}
    return {
        key: [each for each in found if _generation(each) == newest[key]]
        for key, found in sorted(pools.items())
    }


def published_devices(slices: Sequence[Manifest]) -> set[tuple[str, str, str]]:
    """Driver, pool and name of the devices in the newest generation of each pool."""
    return {
        (driver, pool, text(device.get("name")))
        for (driver, pool), found in newest_pools(slices).items()
        for item in found
        for device in mappings(mapping(item.get("spec")).get("devices"))
    }


def check_pools(evidence: Evidence, drivers: set[str]) -> Iterator[Problem]:
    """Codes `pool-incomplete`, `slice-counts-differ`, `pool-invalid`, `slice-node-gone`, `device-taint`."""
    for (driver, pool), found in newest_pools(evidence.of(SLICES)).items():
        if driver in drivers:
            path = f"pool {driver}/{pool}"
            yield from _incomplete(path, found)
            yield from _invalid(path, found)
            yield from _tainted(path, found)
    if evidence.saw(NODES):
        nodes = {name_of(each) for each in evidence.of(NODES)}
        for each in evidence.of(SLICES):
            spec = mapping(each.get("spec"))
            node = text(spec.get("nodeName"))
            if node and node not in nodes and text(spec.get("driver")) in drivers:
                yield Problem(
                    path=f"ResourceSlice {name_of(each)}",
                    code="slice-node-gone",
                    message=f"it is for node {node}, which is not there",
                    hint=f"{_delete('resourceslice', each)}; the kubelet of a node that comes back has it made anew",
                    severity="warning",
                )


def _incomplete(path: str, found: Sequence[Manifest]) -> Iterator[Problem]:
    counts = {mapping(mapping(each.get("spec")).get("pool")).get("resourceSliceCount") for each in found}
    wanted = sorted(count for count in counts if isinstance(count, int))
    if len(wanted) > 1:
        yield Problem(
            path=path,
            code="slice-counts-differ",
            message=f"generation {_generation(found[0])} has {count_of(len(found), 'slice')}, and {describe_counts(wanted)}",
            hint="the driver has to publish one number in all slices of a generation: restart its pod, or report the bug",
        )
    elif wanted and wanted[0] < len(found):
        names = join_words(sorted(name_of(each) for each in found))
        yield Problem(
            path=path,
            code="pool-incomplete",
            message=f"generation {_generation(found[0])} has {count_of(len(found), 'slice')} and they claim {wanted[0]}: "
            "none of its devices is allocated",
            hint=f"one of {names} is left from an earlier run: delete it, or restart the driver's pod, which publishes anew",
        )
    elif wanted != [len(found)]:
        yield Problem(
            path=path,
            code="pool-incomplete",
            message=f"generation {_generation(found[0])} has {count_of(len(found), 'slice')} of "
            f"{wanted[0] if wanted else None}: none of its devices is given out",
            hint="the driver is still writing them, or the server refused one: see the log of its pod on that node",
        )


def _invalid(path: str, found: Sequence[Manifest]) -> Iterator[Problem]:
    devices = [each for item in found for each in mappings(mapping(item.get("spec")).get("devices"))]
    twice = [name for name, count in Counter(text(each.get("name")) for each in devices).items() if count > 1]
    sets = [each for item in found for each in mappings(mapping(item.get("spec")).get("sharedCounters"))]
    known = {text(each.get("name")): set(mapping(each.get("counters"))) for each in sets}
    unknown = sorted(
        {
            f"{text(use.get('counterSet'))}/{counter}"
            for each in devices
            for use in mappings(each.get("consumesCounters"))
            for counter in set(mapping(use.get("counters"))) - known.get(text(use.get("counterSet")), set())
        }
    )
    reasons = []
    if twice:
        reasons.append(f"{join_words(sorted(twice))} there twice")
    if unknown:
        reasons.append(f"devices use counters that no slice has: {join_words(unknown)}")
    if reasons:
        yield Problem(
            path=path,
            code="pool-invalid",
            message=f"{'; '.join(reasons)}: none of its devices is given out",
            hint="that is a bug of the driver; restarting its pod on the node makes it publish anew",
        )


def _tainted(path: str, found: Sequence[Manifest]) -> Iterator[Problem]:
    taints: defaultdict[str, list[str]] = defaultdict(list)
    for item in found:
        for device in mappings(mapping(item.get("spec")).get("devices")):
            for taint in mappings(device.get("taints")):
                if taint.get("effect") in ("NoSchedule", "NoExecute"):
                    value = f"={taint['value']}" if taint.get("value") else ""
                    taints[f"{taint.get('key')}{value}:{taint.get('effect')}"].append(
                        text(device.get("name"))
                    )
    for shown, devices in sorted(taints.items()):
        yield Problem(
            path=path,
            code="device-taint",
            message=f"{join_words(devices)} tainted {shown}: only requests that tolerate it get them",
            hint="look at the device on its node; the driver takes a taint for bad health away when its pod restarts",
            severity="warning",
        )


def _generation(item: Manifest) -> int:
    found = mapping(mapping(item.get("spec")).get("pool")).get("generation")
    return found if isinstance(found, int) else 0


def check_claims(evidence: Evidence, drivers: set[str]) -> Iterator[Problem]:
    """Codes `claim-reserved`, `claim-device-gone`, `claim-not-allocated`, `mig-not-published`."""
    records = [*map(PodRecord.of, evidence.of(PODS))]
    pods = {pod.uid: pod for pod in records}
    devices = published_devices(evidence.of(SLICES))
    for claim in evidence.of(CLAIMS):
        if evidence.saw(PODS):
            yield from _reserved(claim, pods)
        if evidence.saw(SLICES):
            yield from _gone(claim, devices, drivers, evidence.of(PODS))
    if evidence.saw(CLAIMS):
        for pod in records:
            if pod.waits and pod.node:
                yield from find_unallocated(pod.manifest, evidence.of(CLAIMS))
    if evidence.saw(SLICES) and GPU_DRIVER in drivers:
        yield from _without_mig(evidence)


def _reserved(claim: Mapping[str, Any], pods: Mapping[str, PodRecord]) -> Iterator[Problem]:
    for each in mappings(mapping(claim.get("status")).get("reservedFor")):
        if each.get("resource") != "pods" or each.get("apiGroup"):
            continue
        pod = pods.get(text(each.get("uid")))
        if pod is None or pod.is_done:
            why = "is gone" if pod is None else f"has {pod.phase.lower()}"
            yield Problem(
                path=f"ResourceClaim {full_name(claim)}",
                code="claim-reserved",
                message=f"it is still reserved for pod {text(each.get('name'))}, which {why}: its devices stay taken",
                hint="the claim controller of kube-controller-manager frees it; see whether that runs. A claim that no "
                f"other pod uses can go: {_delete('resourceclaim', claim)}",
            )


def _gone(
    claim: Mapping[str, Any],
    devices: set[tuple[str, str, str]],
    drivers: set[str],
    pods: Sequence[Mapping[str, Any]],
) -> Iterator[Problem]:
    allocation = mapping(mapping(claim.get("status")).get("allocation"))
    held = [
        (text(each.get("driver")), text(each.get("pool")), text(each.get("device")))
        for each in mappings(mapping(allocation.get("devices")).get("results"))
    ]
    gone = ["/".join(each) for each in held if each not in devices and each[0] in drivers]
    if gone:
        users = [
            text(each.get("name"))
            for each in mappings(mapping(claim.get("status")).get("reservedFor"))
            if each.get("resource") == "pods" and not each.get("apiGroup")
        ]
        going = [
            name_of(each)
            for each in pods
            if namespace_of(each) == namespace_of(claim)
            and name_of(each) in users
            and mapping(each.get("metadata")).get("deletionTimestamp")
        ]
        if going:
            yield _deleting(claim, gone, going)
            return
        first = f"{_delete('pod', claim, users)}; and, if it stays, " if users else ""
        yield Problem(
            path=f"ResourceClaim {full_name(claim)}",
            code="claim-device-gone",
            message=f"it has {join_words(gone)}, which no slice has: pods of it do not start again",
            hint="the device left the inventory (health, MIG layout, node gone): "
            f"{first}{_delete('resourceclaim', claim)}",
        )


def _deleting(claim: Manifest, gone: Sequence[str], going: Sequence[str]) -> Problem:
    """Return the problem of a claim whose devices no slice has, while its pods are being deleted."""
    drivers = join_words(sorted({each.partition("/")[0] for each in gone}))
    force = shlex.join([*shlex.split(_delete("pod", claim, going)), "--grace-period=0", "--force"])
    return Problem(
        path=f"ResourceClaim {full_name(claim)}",
        code="pod-deleting",
        message=f"pod {join_words(going)} is being deleted and still has {join_words(gone)}, which no slice has",
        hint=f"the kubelet needs driver {drivers} on the node to release the devices: get the driver's pod there to run. If that "
        "pod waits for this one (NVIDIA/k8s-driver-manager#213), update the driver manager; or, once no process uses the "
        f"device: {force}",
    )


def _without_mig(evidence: Evidence) -> Iterator[Problem]:
    published = any(
        mapping(mapping(device.get("attributes")).get("type")).get("string") == "mig"
        for each in evidence.of(SLICES)
        for device in mappings(mapping(each.get("spec")).get("devices"))
    )
    waiting = [
        full_name(each)
        for each in evidence.of(CLAIMS)
        if MIG_CLASS in requests_of(each).values() and not mapping(each.get("status")).get("allocation")
    ]
    if waiting and not published:
        yield Problem(
            path=f"DeviceClass {MIG_CLASS}",
            code="mig-not-published",
            message=f"{count_of(len(waiting), 'claim')} wait for MIG devices, and no node publishes one: {join_words(waiting)}",
            hint="make them with the MIG manager (label nvidia.com/mig.config) and restart the driver's pods, or switch on "
            "the driver's gate DynamicMIG",
        )


def _delete(resource: str, item: Mapping[str, Any], names: Sequence[str] = ()) -> str:
    """The command that deletes an object, or *names* in its namespace; a server that lies gets no shell to say more."""
    namespace = namespace_of(item)
    where = ["-n", namespace] if namespace else []
    return shlex.join(["kubectl", "delete", resource, *where, *(names or [name_of(item)])])
