"""Pools of devices: the scheduler gives out nothing of a pool that is incomplete or contradicts itself.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/structured/internal/*/pools_*.go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dra_infra.cluster.evidence import Evidence
from dra_infra.cluster.kinds import NODES, SLICES
from dra_infra.cluster.objects import mapping, mappings, name_of, text
from dra_infra.errors import Problem
from dra_infra.planning.wording import count_of, join_words

Manifest = Mapping[str, Any]


def newest_pools(slices: Sequence[Manifest]) -> dict[tuple[str, str], list[Manifest]]:
    """The slices of the newest generation of each pool, by driver and name."""
    pools: defaultdict[tuple[str, str], list[Manifest]] = defaultdict(list)
    for each in slices:
        spec = mapping(each.get("spec"))
        pools[text(spec.get("driver")), text(mapping(spec.get("pool")).get("name"))].append(each)
    return {
        key: [each for each in found if _generation(each) == max(map(_generation, found))]
        for key, found in sorted(pools.items())
    }


def check_pools(evidence: Evidence, drivers: set[str]) -> Iterator[Problem]:
    """Codes `pool-incomplete`, `pool-invalid`, `slice-node-gone`, `device-taint`."""
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
            if node and node not in nodes and spec.get("driver") in drivers:
                yield Problem(
                    path=f"ResourceSlice {name_of(each)}",
                    code="slice-node-gone",
                    message=f"it is for node {node}, which is not there",
                    hint=f"kubectl delete resourceslice {name_of(each)}; the kubelet of a node that comes back has it made anew",
                    severity="warning",
                )


def _incomplete(path: str, found: Sequence[Manifest]) -> Iterator[Problem]:
    wanted = mapping(mapping(found[0].get("spec")).get("pool")).get("resourceSliceCount")
    if wanted != len(found):
        yield Problem(
            path=path,
            code="pool-incomplete",
            message=f"generation {_generation(found[0])} has {count_of(len(found), 'slice')} of {wanted}: "
            "none of its devices is given out",
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
