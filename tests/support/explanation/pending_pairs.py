"""Pairs of causes of which the first keeps the scheduler from the second: a class that is not there, pools that give nothing out.

Each row has the cluster with both causes, with one of them put right, and with both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.support.explanation.pending_pods import (
    GPU,
    Object,
    PendingPod,
    a_claim,
    a_class,
    a_node,
    a_pod,
    asking,
    gpus,
    running,
    slice_of,
)
from tests.support.explanation.pending_table import (
    AFFINITY,
    ALONE,
    ASK_FOR_LESS,
    BAD_GPU,
    BAD_NODE,
    BOUND,
    MEMORY,
    ONE_ROOT,
    PAIRS,
    PRODUCT,
    RANGE,
    ROOT,
    TOLERATE_GPU,
    TOLERATE_NODE,
    around,
    on_counters,
    rooted,
    row,
    shared,
)

NODE_AWAY: Final = ("allow-nodes", "(delete it, or label the nodes)")


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause.

    Args:
        name: In words.
        parts: The arguments of `cluster` that make it.
        says: What the answer names.
        edit: Kind and line of the change that puts it right; None where the user has none.
    """

    name: str
    parts: Mapping[str, Any]
    says: tuple[str, ...]
    edit: tuple[str, str] | None = None


def cluster(
    *,
    node: Mapping[str, Any] | None = None,
    taint: Mapping[str, Any] | None = None,
    devices: tuple[Object, ...] = (),
    published: str = "whole",
    tests: tuple[str, ...] = (),
    request: Mapping[str, Any] | None = None,
    claim: Mapping[str, Any] | None = None,
    pod: Mapping[str, Any] | None = None,
    others: tuple[Object, ...] = (),
    counters: bool = False,
) -> list[Object]:
    """One node with two GPUs, and a pod that asks for one, but for what is said."""
    found = [{**each, **(taint or {})} for each in devices or gpus(2)]
    wanted = {"count": 2, **(request or {})} if published == "older" else request or {}
    asked = a_claim(asking(*tests, **wanted), **(claim or {}))
    if counters:
        slices = [
            each
            for each in on_counters(4, 3, claim=asked, **(taint or {}))
            if each["kind"] == "ResourceSlice"
        ]
    elif published == "incomplete":
        slices = [slice_of(*found, count=2)]
    elif published == "contradictory":
        slices = [slice_of(*found, count=2, name=name) for name in ("one", "two")]
    elif published == "older":
        slices = [slice_of(*found, name="old"), slice_of(*found[:1], name="new", generation=2)]
    else:
        slices = [slice_of(*found)]
    return [a_node(**(node or {})), a_class(), *slices, asked, a_pod("gpus", **(pod or {})), *others]


def both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of two causes."""
    merged = {**one, **other}
    for name in one.keys() & other.keys():
        first, second = one[name], other[name]
        merged[name] = {**first, **second} if isinstance(first, Mapping) else first + second
    return merged


SELECTOR: Final = Cause(
    name="a selector",
    parts={"tests": (MEMORY.format("100Gi"),)},
    says=("memory is 80Gi",),
    edit=BOUND,
)
VALUE: Final = Cause(
    name="a value",
    parts={"tests": (PRODUCT.format("H1OO"),)},
    says=('productName is "H100"',),
    edit=("other-value", 'productName == "H100"'),
)
QUOTES: Final = Cause(
    name="a number in quotes",
    parts={"tests": (f"device.attributes['{GPU}'].index == '0'",)},
    says=("index is 0, 1", "index is a number"),
    edit=("other-comparison", "index == 0"),
)
AMOUNTS: Final = Cause(
    name="a comparison of quantities",
    parts={"tests": (f"device.capacity['{GPU}'].memory >= quantity('40Gi')",)},
    says=("no matching overload", "memory is an amount"),
    edit=("other-comparison", "compareTo(quantity('40Gi')) >= 0"),
)
ABSENT: Final = Cause(
    name="an attribute that is not there",
    parts={"tests": (f"device.attributes['{GPU}'].size > 1",)},
    says=("selector #0 has no value: no such key: size",),
)
TAINT: Final = Cause(
    name="a taint of the devices",
    parts={"taint": BAD_GPU},
    says=("tainted xid=79:NoSchedule",),
    edit=TOLERATE_GPU,
)
NODE_TAINT: Final = Cause(
    name="a taint of the node",
    parts={"node": BAD_NODE},
    says=("taint reserved=ops:NoSchedule",),
    edit=TOLERATE_NODE,
)
NODE_SELECTOR: Final = Cause(
    name="a node selector",
    parts={"pod": {"nodeSelector": {"zone": "b"}}},
    says=("nodeSelector wants zone=b",),
    edit=NODE_AWAY,
)
NODE_AFFINITY: Final = Cause(
    name="a node affinity",
    parts={"pod": AFFINITY},
    says=("required node affinity matches no term",),
    edit=("allow-nodes", "matchFields: [{key: metadata.name, operator: In"),
)
CPU: Final = Cause(
    name="too little cpu",
    parts={"pod": {"cpu": "100"}},
    says=("requests 100 cpu",),
    edit=ASK_FOR_LESS,
)
CORDON: Final = Cause(
    name="a node that is cordoned",
    parts={"node": {"unschedulable": True}},
    says=("cordoned",),
    edit=("allow-nodes", "kubectl uncordon n0"),
)
NUMBER: Final = Cause(
    name="more devices than there are",
    parts={"request": {"count": 3}},
    says=("3 devices for request r0 of ResourceClaim ml/gpus are asked for; 2 match",),
    edit=("fewer-devices", "count: 2"),
)
MATCH: Final = Cause(
    name="a value in common",
    parts={"request": {"count": 2}, "claim": ONE_ROOT, "devices": tuple(rooted("a", "b"))},
    says=("2 devices with one value of", "the largest group has 1"),
    edit=("drop-constraint", "(delete this entry)"),
)
DISTINCT: Final = Cause(
    name="values that differ",
    parts={
        "request": {"count": 2},
        "claim": {"constraints": [{"distinctAttribute": ROOT}]},
        "devices": tuple(rooted("a", "a")),
    },
    says=("2 devices with different values of", "there are 1 values"),
    edit=("drop-constraint", "(delete this entry)"),
)
SHARE: Final = Cause(
    name="a share",
    parts={
        "devices": (shared(**RANGE),),
        "request": {"capacity": {"requests": {"memory": "24Gi"}}},
    },
    says=("at most 20Gi of memory",),
    edit=("lower-capacity", "memory: 20Gi"),
)
COUNTERS: Final = Cause(
    name="counters",
    parts={"counters": True, "request": {"count": 3}},
    says=("the counters that they share allow 2 of the 3 that match",),
    edit=("fewer-devices", "count: 2"),
)
IN_USE: Final = Cause(
    name="a claim of another pod",
    parts={"others": tuple(running("old", "gpu-0", "gpu-1"))},
    says=("in use by ResourceClaim ml/old-gpus (Pod ml/old)",),
    edit=("free-claims", "kubectl delete pod -n ml old"),
)
NO_CLASS: Final = Cause(
    name="a class that is missing",
    parts={"request": {"of": "nope"}},
    says=("DeviceClass nope is not among those that were read", "of class nope, not known here"),
    edit=("other-class", "deviceClassName: gpu"),
)
INCOMPLETE: Final = Cause(
    name="a pool that is not complete",
    parts={"published": "incomplete"},
    says=("resource pool gpu.nvidia.com/n0 is incomplete: 1 of 2 slices are published",),
)
CONTRADICTORY: Final = Cause(
    name="a pool with two devices of one name",
    parts={"published": "contradictory"},
    says=("resource pool gpu.nvidia.com/n0 is invalid: duplicate device name gpu-0",),
)
OLDER: Final = Cause(
    name="an older generation of a pool",
    parts={"published": "older"},
    says=("1 of generation 1 of resource pool gpu.nvidia.com/n0, which has generation 2 by now",),
    edit=("fewer-devices", "count: 1"),
)

ON_NODES: Final = (NODE_TAINT, NODE_SELECTOR, NODE_AFFINITY, CPU, CORDON)
ON_DEVICES: Final = (SELECTOR, VALUE, TAINT, IN_USE)
BEYOND: Final = (NUMBER, MATCH, DISTINCT)
ERRORS: Final = (AMOUNTS, ABSENT)


def pair(first: Cause, second: Cause) -> PendingPod:
    """The row of two causes."""
    edit = None
    if first.edit and second.edit:
        edit = (f"{first.edit[0]} + {second.edit[0]}", first.edit[1], second.edit[1])
    # What counting tells of pools that are not whole is told with that.
    more = (", as far as pools are published",) if first.edit is None and second in BEYOND else ()
    made = row(
        f"{first.name} and {second.name}",
        cluster(**both(first.parts, second.parts)),
        [*first.says, *second.says, *more],
        edit,
        deep=True,
    )
    # Of an older generation the number is left, for which there are devices then.
    numbered = {"request": {"count": 2}} if first is OLDER else {}
    return replace(
        made,
        mended=(cluster(**both(numbered, second.parts)), cluster(**first.parts)),
        whole=cluster(**numbered),
    )


PAIRS_BEHIND: Final = (
    *(pair(NO_CLASS, each) for each in (*ON_NODES, *ON_DEVICES, *BEYOND, *ERRORS, QUOTES, SHARE, COUNTERS)),
    *(pair(NO_CLASS, each) for each in (INCOMPLETE, CONTRADICTORY, OLDER)),
    *(
        pair(first, second)
        for first in (INCOMPLETE, CONTRADICTORY)
        for second in (*ON_NODES, *ON_DEVICES, *BEYOND, *ERRORS, QUOTES)
    ),
    pair(INCOMPLETE, SHARE),
    *(pair(OLDER, each) for each in (*ON_NODES, SELECTOR, VALUE, TAINT)),
    *(pair(IN_USE, each) for each in ERRORS),
)
"""Pairs of which the scheduler tells the first alone."""

ON_NO_DEVICES: Final = (
    row(
        "a claim that is not there and a taint of the node",
        around(node=a_node(**BAD_NODE), pod=a_pod("gpu")),
        ["there is no ResourceClaim ml/gpu", "taint reserved=ops:NoSchedule"],
        None,
    ),
    row(
        "a driver that publishes nothing and a taint of the node",
        [a_node(**BAD_NODE), a_class(), a_claim(asking()), a_pod("gpus")],
        [f"no ResourceSlice of its driver {GPU} is there", "taint reserved=ops:NoSchedule"],
        None,
    ),
    row(
        "devices of a node that is gone and too little cpu",
        [
            a_node(),
            a_class(),
            slice_of(*gpus(2), node="n9"),
            a_claim(asking()),
            a_pod("gpus", cpu="100"),
        ],
        ["slices are for nodes that are not there: n9", "requests 100 cpu"],
        None,
    ),
    row(
        "a pool that moves to a node with a taint",
        [
            a_node(),
            a_node("n1", **BAD_NODE),
            a_class(),
            slice_of(*gpus(2), count=2),
            slice_of(*gpus(2), node="n1", pool="n0", name="new", generation=2),
            a_claim(asking()),
            a_pod("gpus"),
        ],
        ["is obsolete: slices of a newer generation than 1 are there", "taint reserved=ops:NoSchedule"],
        TOLERATE_NODE,
    ),
    row(
        "a class that is missing and a quota",
        around(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "few", "namespace": "ml"},
                "spec": {"hard": {"nope.deviceclass.resource.k8s.io/devices": "1"}},
            },
            claim=a_claim(asking(of="nope", count=2)),
        ),
        ["class nope, not known here", "ResourceQuota ml/few allows 1 of nope.deviceclass"],
        ("other-class", "deviceClassName: gpu"),
        planned=("Pod", "ResourceClaim"),
        verdict="not-decided",
        is_judged=False,
    ),
)
"""Pairs of which the one is about no device that could be looked at for the other."""

TABLE: Final = (*ALONE, *PAIRS, *PAIRS_BEHIND, *ON_NO_DEVICES)
"""All pending pods."""
