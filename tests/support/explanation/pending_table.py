"""The table of pending pods: each cause alone, and the pairs of causes that meet, with the change that is offered.

All is of Kubernetes 1.37 with its default gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.support.allocator.known import counting, drawing
from tests.support.explanation.pending_pods import (
    API,
    GPU,
    ROOT,
    Object,
    PendingPod,
    a_claim,
    a_class,
    a_gpu,
    a_node,
    a_pod,
    asking,
    gpus,
    running,
    slice_of,
)

MEMORY: Final = f"device.capacity['{GPU}'].memory.compareTo(quantity('{{}}')) >= 0"
PRODUCT: Final = f"device.attributes['{GPU}'].productName == '{{}}'"
BAD_GPU: Final = {"taints": [{"key": "xid", "value": "79", "effect": "NoSchedule"}]}
BAD_NODE: Final = {"taints": [{"key": "reserved", "value": "ops", "effect": "NoSchedule"}]}
TOLERATE_GPU: Final = ("tolerate", '- {key: xid, operator: Equal, value: "79", effect: NoSchedule}')
TOLERATE_NODE: Final = ("allow-nodes", '- {key: reserved, operator: Equal, value: "ops", effect: NoSchedule}')
ASK_FOR_LESS: Final = ("allow-nodes", "(ask for less, or free some on the node)")
BOUND: Final = ("lower-bound", 'quantity("80Gi")')


def row(
    name: str,
    objects: Sequence[Object],
    says: Sequence[str],
    edit: tuple[str, ...] | None,
    *,
    deep: bool = False,
    **more: Any,
) -> PendingPod:
    """A row of the table."""
    return PendingPod(name=name, objects=tuple(objects), says=tuple(says), edit=edit, is_deep=deep, **more)


def around(
    *objects: Object,
    claim: Object | None = None,
    devices: Sequence[Object] = (),
    node: Object | None = None,
    pod: Object | None = None,
    classes: Sequence[Object] = (),
) -> list[Object]:
    """One node with two GPUs and a pod that asks for one, but for what is said."""
    return [
        node or a_node(),
        *(classes or [a_class()]),
        slice_of(*(devices or gpus(2))),
        claim or a_claim(asking()),
        pod or a_pod("gpus"),
        *objects,
    ]


def shared(capacity: str = "40Gi", **policy: Any) -> Object:
    """A GPU whose memory is shared, by a policy."""
    memory: dict[str, Any] = {"value": capacity}
    if policy:
        memory["requestPolicy"] = policy
    gpu = a_gpu("gpu-0")
    return {**gpu, "allowMultipleAllocations": True, "capacity": {"memory": memory}}


def share(amount: str, **rest: Any) -> Object:
    """A claim for a share of memory."""
    return a_claim(asking(capacity={"requests": {"memory": amount}}, **rest))


RANGE: Final = {"default": "1Gi", "validRange": {"min": "1Gi", "max": "20Gi", "step": "1Gi"}}
VALUES: Final = {"default": "8Gi", "validValues": ["8Gi", "16Gi", "32Gi"]}
STEPS: Final = {"default": "16Gi", "validRange": {"min": "16Gi", "step": "16Gi"}}


def partitions(slots: int, number: int, each: int = 2, **rest: Any) -> list[Object]:
    """Slices of a node whose devices draw on one set of counters."""
    devices = [{**a_gpu(f"part-{at}"), **drawing(f"part-{at}", each, **rest)} for at in range(number)]
    return counting(slots, "1.37", slice_of(*devices), nodeName="n0")


def on_counters(slots: int, number: int, *objects: Object, claim: Object, **rest: Any) -> list[Object]:
    """A node with partitions in place of whole GPUs."""
    slices = [
        {"apiVersion": API, "kind": "ResourceSlice", **each} for each in partitions(slots, number, **rest)
    ]
    return [a_node(), a_class(), *slices, claim, a_pod("gpus"), *objects]


def rooted(*roots: str, **rest: Any) -> list[Object]:
    """GPUs at PCIe roots."""
    return [a_gpu(f"gpu-{at}", root=root, **rest) for at, root in enumerate(roots)]


ONE_ROOT: Final = {"constraints": [{"matchAttribute": ROOT}]}
AFFINITY: Final = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}
                ]
            }
        }
    }
}


def allocated(node: str = "n0", device: str = "gpu-0") -> Object:
    """The claim of the pod, which has a device of a node already."""
    _, claim = running("old", device, node=node)
    claim["metadata"] = {"name": "gpus", "namespace": "ml", "uid": "claim-gpus"}
    del claim["status"]["reservedFor"]
    return claim


ALONE: Final = (
    row(
        "a bound that is too high",
        around(claim=a_claim(asking(MEMORY.format("100Gi")))),
        ["memory is 80Gi"],
        BOUND,
    ),
    row(
        "a value that is misspelt",
        around(claim=a_claim(asking(PRODUCT.format("H1OO")))),
        ['productName is "H100"'],
        ("other-value", 'productName == "H100"'),
    ),
    row(
        "a class for other devices",
        around(
            claim=a_claim(asking(of="h200")), classes=[a_class(), a_class("h200", PRODUCT.format("H200"))]
        ),
        ["fail class h200, selector #0"],
        ("other-class", "deviceClassName: gpu"),
    ),
    row(
        "a taint of the devices",
        around(devices=gpus(2, **BAD_GPU)),
        ["tainted xid=79:NoSchedule"],
        TOLERATE_GPU,
    ),
    row(
        "a taint of the node",
        around(node=a_node(**BAD_NODE)),
        ["taint reserved=ops:NoSchedule"],
        TOLERATE_NODE,
    ),
    row(
        "a node selector",
        around(pod=a_pod("gpus", nodeSelector={"zone": "b"})),
        ["nodeSelector wants zone=b"],
        ("allow-nodes", "(delete it, or label the nodes)"),
    ),
    row(
        "a node affinity",
        around(pod=a_pod("gpus", **AFFINITY)),
        ["required node affinity matches no term"],
        ("allow-nodes", "matchFields: [{key: metadata.name, operator: In"),
    ),
    row(
        "a node that is cordoned",
        around(node=a_node(unschedulable=True)),
        ["cordoned"],
        ("allow-nodes", "uncordon n0"),
    ),
    row(
        "more devices than there are",
        around(claim=a_claim(asking(count=3))),
        ["3 devices"],
        ("fewer-devices", "count: 2"),
    ),
    row(
        "a share above the largest of a range",
        around(devices=[shared(**RANGE)], claim=share("24Gi")),
        ["requestPolicy", "at most 20Gi of memory"],
        ("lower-capacity", "memory: 20Gi"),
    ),
    row(
        "a share above the largest of the values",
        around(devices=[shared("64Gi", **VALUES)], claim=share("40Gi")),
        ["requestPolicy", "8Gi, 16Gi, 32Gi"],
        ("lower-capacity", "memory: 32Gi"),
    ),
    row(
        "a share that is rounded up to a step",
        around(devices=[shared("24Gi", **STEPS)], claim=share("17Gi")),
        ["17Gi takes 32Gi"],
        ("lower-capacity", "memory: 16Gi"),
    ),
    row(
        "a share that is rounded up to a value",
        around(devices=[shared("24Gi", **VALUES)], claim=share("17Gi")),
        ["17Gi takes 32Gi"],
        ("lower-capacity", "memory: 16Gi"),
    ),
    row(
        "a share that is larger than the device",
        around(devices=[shared("40Gi")], claim=share("48Gi")),
        ["memory is 40Gi"],
        ("lower-capacity", "memory: 40Gi"),
    ),
    row(
        "a share of which too little is left",
        around(
            *running("old", "gpu-0", amount={"memory": "25Gi"}), devices=[shared("40Gi")], claim=share("24Gi")
        ),
        ["15Gi of memory", "ml/old-gpus"],
        ("lower-capacity", "memory: 15Gi"),
    ),
    row(
        "a share that is rounded up beyond what is left",
        around(
            *running("old", "gpu-0", amount={"memory": "16Gi"}),
            devices=[shared("40Gi", **STEPS)],
            claim=share("17Gi"),
        ),
        ["17Gi takes 32Gi"],
        ("lower-capacity", "memory: 16Gi"),
    ),
    row(
        "a capacity that devices do not have",
        around(claim=share("1Gi"), devices=[{"name": "gpu-0"}]),
        ["memory is absent"],
        None,
    ),
    row(
        "counters",
        on_counters(4, 3, claim=a_claim(asking(count=3))),
        ["counters"],
        ("fewer-devices", "count: 2"),
    ),
    row(
        "counters that others use",
        on_counters(4, 2, *running("old", "part-0"), claim=a_claim(asking()), each=3),
        ["in use (counters)", "Pod ml/old"],
        ("free-claims", "kubectl delete pod -n ml old"),
    ),
    row(
        "a partition larger than its counters",
        on_counters(1, 1, claim=a_claim(asking())),
        ["take more than counter set set has"],
        None,
    ),
    row(
        "devices that have no value in common",
        around(devices=rooted("a", "b"), claim=a_claim(asking(count=2), **ONE_ROOT)),
        ["with one value of", "the largest group has 1"],
        ("drop-constraint", "(delete this entry)"),
    ),
    row(
        "devices that do not differ",
        around(
            devices=rooted("a", "a"),
            claim=a_claim(asking(count=2), constraints=[{"distinctAttribute": ROOT}]),
        ),
        ["with different values of"],
        ("drop-constraint", "(delete this entry)"),
    ),
    row(
        "a claim of another pod",
        around(*running("old", "gpu-0", "gpu-1")),
        ["in use", "ResourceClaim ml/old-gpus (Pod ml/old)"],
        ("free-claims", "kubectl delete pod -n ml old"),
    ),
    row(
        "claims of two other pods",
        around(*running("one", "gpu-0"), *running("two", "gpu-1"), claim=a_claim(asking(count=2))),
        ["in use"],
        ("free-claims", "kubectl delete pod -n ml one", "kubectl delete pod -n ml two"),
    ),
    row(
        "a pod of higher priority",
        around(*running("old", "gpu-0", "gpu-1", priority=0), pod=a_pod("gpus", priority=1000)),
        ["preempt", "priority 1000", "Pod ml/old"],
        ("free-claims", "kubectl delete pod -n ml old"),
    ),
    row(
        "too little cpu",
        around(pod=a_pod("gpus", cpu="100")),
        ["requests 100 cpu, and 64 is left"],
        ASK_FOR_LESS,
    ),
    row(
        "too little memory",
        around(
            node={**a_node(), "status": {"allocatable": {"cpu": "64", "memory": "0", "pods": "8"}}},
            pod=a_pod("gpus")
            | {"spec": a_pod("gpus")["spec"] | {"resources": {"requests": {"memory": "1Gi"}}}},
        ),
        ["requests 1Gi memory"],
        ASK_FOR_LESS,
    ),
    row(
        "a class that is not there",
        around(claim=a_claim(asking(of="gpus"))),
        ["DeviceClass gpus is not among those that were read", "did you mean gpu?"],
        ("other-class", "deviceClassName: gpu"),
    ),
    row(
        "a claim that is not there",
        around(pod=a_pod("gpu")),
        ["there is no ResourceClaim ml/gpu", "did you mean gpus?"],
        None,
    ),
    row(
        "a template that is not there",
        [
            *around(pod=a_pod(templates=["gpu"])),
            {
                "apiVersion": API,
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "gpus", "namespace": "ml"},
                "spec": {"spec": a_claim(asking())["spec"]},
            },
        ],
        ["there is no ResourceClaimTemplate ml/gpu", "did you mean gpus?"],
        None,
    ),
    row(
        "an older generation of a pool",
        [
            a_node(),
            a_class(),
            slice_of(*gpus(2), name="old"),
            slice_of(*gpus(1), name="new", generation=2),
            a_claim(asking(count=2)),
            a_pod("gpus"),
        ],
        ["1 of generation 1 of resource pool gpu.nvidia.com/n0, which has generation 2 by now"],
        ("fewer-devices", "count: 1"),
    ),
    row(
        "a pool that moves to another node",
        [
            a_node(),
            a_node("n1"),
            a_class(),
            slice_of(*gpus(2), count=2),
            slice_of(*gpus(2), node="n1", pool="n0", name="new", generation=2, count=2),
            a_claim(asking()),
            a_pod("gpus"),
        ],
        ["is obsolete: slices of a newer generation than 1 are there"],
        None,
    ),
    row(
        "a pool that is not complete",
        [a_node(), a_class(), slice_of(*gpus(2), count=2), a_claim(asking()), a_pod("gpus")],
        ["is incomplete: 1 of 2 slices are published"],
        None,
    ),
    row(
        "a pool with two devices of one name",
        [
            a_node(),
            a_class(),
            slice_of(a_gpu("gpu-0"), count=2, name="one"),
            slice_of(a_gpu("gpu-0"), count=2, name="two"),
            a_claim(asking()),
            a_pod("gpus"),
        ],
        ["is invalid"],
        None,
    ),
    row(
        "admin access to more than there is",
        around(
            *running("old", "gpu-0", "gpu-1"),
            claim=a_claim(asking(count=3, adminAccess=True)),
        ),
        ["3 devices"],
        ("fewer-devices", "count: 2"),
    ),
    row(
        "a claim with a device on another node than the node selector",
        around(
            a_node("n1", labels={"zone": "b"}),
            claim=allocated(),
            pod=a_pod("gpus", nodeSelector={"zone": "b"}),
        ),
        ["nodeSelector wants zone=b", "ResourceClaim ml/gpus is allocated, and not for this node"],
        ("allow-nodes", "(delete it, or label the nodes)"),
    ),
    row(
        "a claim with a device on a node without cpu",
        around(*running("old", "gpu-1", cpu="64"), claim=allocated()),
        ["requests 1 cpu, and none is left"],
        ASK_FOR_LESS,
    ),
    row(
        "the domain of an attribute",
        around(claim=a_claim(asking("device.attributes['nvidia.com'].productName == 'H100'"))),
        ["did you mean gpu.nvidia.com?"],
        ("other-domain", f"device.attributes[\"{GPU}\"].productName == 'H100'"),
    ),
    row(
        "a number in quotes",
        around(claim=a_claim(asking(f"device.attributes['{GPU}'].index == '0'"))),
        ["index is 0, 1"],
        ("other-comparison", f"device.attributes['{GPU}'].index == 0"),
    ),
    row(
        "a comparison of quantities",
        around(claim=a_claim(asking(f"device.capacity['{GPU}'].memory >= quantity('40Gi')"))),
        ["no matching overload"],
        ("other-comparison", f"device.capacity['{GPU}'].memory.compareTo(quantity('40Gi')) >= 0"),
    ),
    row(
        "an attribute that is not there",
        around(
            devices=[*gpus(1), {"name": "gpu-1"}],
            claim=a_claim(asking(f"device.attributes['{GPU}'].size > 1")),
        ),
        ["it has no value on device"],
        None,
    ),
    row(
        "an attribute that some devices do not have",
        around(
            devices=[{"name": "gpu-0"}, a_gpu("gpu-1")],
            claim=a_claim(asking(f"device.attributes['{GPU}'].index == 1")),
        ),
        ["it has no value on device gpu.nvidia.com/n0/gpu-0"],
        ("guard", f"has(device.attributes['{GPU}'].index)"),
    ),
    row(
        "devices of a node that is gone",
        [a_node(), a_class(), slice_of(*gpus(2), node="n9"), a_claim(asking()), a_pod("gpus")],
        ["slices are for nodes that are not there: n9"],
        None,
    ),
    row(
        "a driver that publishes nothing",
        [a_node(), a_class(), a_claim(asking()), a_pod("gpus")],
        [f"no ResourceSlice of its driver {GPU} is there"],
        None,
    ),
    row(
        "MIG devices that are not made",
        around(classes=[a_class("gpu", f"device.attributes['{GPU}'].type == 'mig'")]),
        ["it is for MIG devices, and all devices are of type gpu"],
        ("other-value", "gpu"),
    ),
    row(
        "a gate of the pod",
        around(pod=a_pod("gpus", schedulingGates=[{"name": "kueue.x-k8s.io/topology"}])),
        ["the scheduler does not look at it while it has the gates"],
        None,
    ),
    row(
        "a quota",
        around(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "few", "namespace": "ml"},
                "spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "1"}},
                "status": {
                    "hard": {"gpu.deviceclass.resource.k8s.io/devices": "1"},
                    "used": {"gpu.deviceclass.resource.k8s.io/devices": "0"},
                },
            },
            claim=a_claim(asking(count=2)),
        ),
        ["few", "quota"],
        None,
        planned=("Pod", "ResourceClaim"),
        is_judged=False,
    ),
    row(
        "groups that the scheduler does not come to in its time",
        around(
            devices=[a_gpu(f"gpu-{at}", root="a" if at < 19 else "b") for at in range(39)],
            claim=a_claim(asking(count=20), **ONE_ROOT),
        ),
        ["10 s"],
        None,
        verdict="not-decided",
        is_judged=False,
    ),
)

PAIRS: Final = (
    row(
        "a selector and a taint of the devices",
        around(devices=gpus(2, **BAD_GPU), claim=a_claim(asking(MEMORY.format("100Gi")))),
        ["memory is 80Gi", "tainted xid=79:NoSchedule"],
        ("lower-bound + tolerate", BOUND[1], TOLERATE_GPU[1]),
        deep=True,
    ),
    row(
        "a taint of the node and a selector",
        around(node=a_node(**BAD_NODE), claim=a_claim(asking(MEMORY.format("100Gi")))),
        ["taint reserved=ops:NoSchedule", "memory is 80Gi"],
        ("allow-nodes + lower-bound", TOLERATE_NODE[1], BOUND[1]),
        deep=True,
    ),
    row(
        "a taint of the node and one of the devices",
        around(node=a_node(**BAD_NODE), devices=gpus(2, **BAD_GPU)),
        ["taint reserved=ops:NoSchedule", "tainted xid=79:NoSchedule"],
        ("allow-nodes + tolerate", TOLERATE_NODE[1], TOLERATE_GPU[1]),
        deep=True,
    ),
    row(
        "a node selector and a taint of the devices",
        around(pod=a_pod("gpus", nodeSelector={"zone": "b"}), devices=gpus(2, **BAD_GPU)),
        ["nodeSelector wants zone=b", "tainted xid=79:NoSchedule"],
        ("allow-nodes + tolerate", "(delete it, or label the nodes)", TOLERATE_GPU[1]),
        deep=True,
    ),
    row(
        "a node selector and a selector",
        around(pod=a_pod("gpus", nodeSelector={"zone": "b"}), claim=a_claim(asking(PRODUCT.format("H1OO")))),
        ["nodeSelector wants zone=b", 'productName is "H100"'],
        ("allow-nodes + other-value", "(delete it, or label the nodes)", 'productName == "H100"'),
        deep=True,
    ),
    row(
        "a taint of the node and a node selector",
        around(node=a_node(**BAD_NODE), pod=a_pod("gpus", nodeSelector={"zone": "b"})),
        ["taint reserved=ops:NoSchedule", "nodeSelector wants zone=b"],
        ("allow-nodes + allow-nodes", TOLERATE_NODE[1], "(delete it, or label the nodes)"),
        deep=True,
    ),
    row(
        "a taint of the node and too little cpu",
        around(node=a_node(**BAD_NODE), pod=a_pod("gpus", cpu="100")),
        ["taint reserved=ops:NoSchedule", "requests 100 cpu"],
        ("allow-nodes + allow-nodes", TOLERATE_NODE[1], "(ask for less, or free some on the node)"),
        deep=True,
    ),
    row(
        "a selector and more devices than there are",
        around(claim=a_claim(asking(MEMORY.format("100Gi"), count=3))),
        ["memory is 80Gi", "3 devices"],
        ("fewer-devices + lower-bound", "count: 2", BOUND[1]),
        deep=True,
    ),
    row(
        "a selector and a claim of another pod",
        around(*running("old", "gpu-0", "gpu-1"), claim=a_claim(asking(MEMORY.format("100Gi")))),
        ["memory is 80Gi", "in use by ResourceClaim ml/old-gpus"],
        ("lower-bound + free-claims", BOUND[1], "kubectl delete pod -n ml old"),
        deep=True,
    ),
    row(
        "a taint of the devices and a claim of another pod",
        around(*running("old", "gpu-0", "gpu-1"), devices=gpus(2, **BAD_GPU)),
        ["tainted xid=79:NoSchedule", "in use by ResourceClaim ml/old-gpus"],
        ("tolerate + free-claims", TOLERATE_GPU[1], "kubectl delete pod -n ml old"),
        deep=True,
    ),
    row(
        "a taint of the node and a claim of another pod",
        around(*running("old", "gpu-0", "gpu-1"), node=a_node(**BAD_NODE)),
        ["taint reserved=ops:NoSchedule", "in use by ResourceClaim ml/old-gpus"],
        ("allow-nodes + free-claims", TOLERATE_NODE[1], "kubectl delete pod -n ml old"),
        deep=True,
    ),
    row(
        "two tests of one selector",
        around(claim=a_claim(asking(f"{PRODUCT.format('H1OO')} && {MEMORY.format('100Gi')}"))),
        ['productName is "H100"', "memory is 80Gi"],
        ("lower-bound + other-value", 'productName == "H100"', 'quantity("80Gi")'),
        deep=True,
    ),
    row(
        "two selectors",
        around(claim=a_claim(asking(PRODUCT.format("H1OO"), MEMORY.format("100Gi")))),
        ['productName is "H100"', "memory is 80Gi"],
        ("lower-bound + other-value", 'productName == "H100"', 'quantity("80Gi")'),
        deep=True,
    ),
    row(
        "a class for other devices and a selector",
        around(
            claim=a_claim(asking(MEMORY.format("100Gi"), of="h200")),
            classes=[a_class(), a_class("h200", PRODUCT.format("H200"))],
        ),
        ["fail class h200, selector #0", "memory is 80Gi"],
        ("lower-bound + other-class", "deviceClassName: gpu", BOUND[1]),
        deep=True,
    ),
    row(
        "a class that is not there and a selector",
        around(claim=a_claim(asking(MEMORY.format("100Gi"), of="gpus"))),
        ["did you mean gpu?"],
        ("other-class + lower-bound", "deviceClassName: gpu", BOUND[1]),
        deep=True,
    ),
    row(
        "a class that is not there and a taint of the node",
        around(claim=a_claim(asking(of="gpus")), node=a_node(**BAD_NODE)),
        ["did you mean gpu?", "taint reserved=ops:NoSchedule"],
        ("other-class + allow-nodes", "deviceClassName: gpu", TOLERATE_NODE[1]),
        deep=True,
    ),
    row(
        "a policy of shares and a taint of the devices",
        around(devices=[{**shared(**RANGE), **BAD_GPU}], claim=share("24Gi")),
        ["at most 20Gi of memory", "tainted xid=79:NoSchedule"],
        ("tolerate + lower-capacity", "memory: 20Gi", TOLERATE_GPU[1]),
        deep=True,
    ),
    row(
        "a policy of shares and a taint of the node",
        around(devices=[shared(**RANGE)], claim=share("24Gi"), node=a_node(**BAD_NODE)),
        ["at most 20Gi of memory", "taint reserved=ops:NoSchedule"],
        ("allow-nodes + lower-capacity", "memory: 20Gi", TOLERATE_NODE[1]),
        deep=True,
    ),
    row(
        "a policy of shares and a selector",
        around(
            devices=[shared(**RANGE)],
            claim=a_claim(asking(PRODUCT.format("H1OO"), capacity={"requests": {"memory": "24Gi"}})),
        ),
        ['productName is "H100"', "at most 20Gi of memory"],
        ("lower-capacity + other-value", "memory: 20Gi", 'productName == "H100"'),
        deep=True,
    ),
    row(
        "a policy of shares and one that another pod has",
        around(
            *running("old", "gpu-0", amount={"memory": "30Gi"}),
            devices=[shared(**RANGE)],
            claim=share("24Gi"),
        ),
        ["at most 20Gi of memory"],
        ("lower-capacity", "memory: 10Gi"),
    ),
    row(
        "counters and a taint of the devices",
        on_counters(4, 3, claim=a_claim(asking(count=3)), **BAD_GPU),
        ["counters", "tainted xid=79:NoSchedule"],
        ("fewer-devices + tolerate", "count: 2", TOLERATE_GPU[1]),
        deep=True,
    ),
    row(
        "counters and a selector",
        on_counters(4, 3, claim=a_claim(asking(MEMORY.format("100Gi"), count=3))),
        ["memory is 80Gi", "counters"],
        ("fewer-devices + lower-bound", "count: 2", BOUND[1]),
        deep=True,
    ),
    row(
        "a value in common and a taint of the devices",
        around(devices=rooted("a", "b", **BAD_GPU), claim=a_claim(asking(count=2), **ONE_ROOT)),
        ["with one value of", "tainted xid=79:NoSchedule"],
        ("tolerate + drop-constraint", TOLERATE_GPU[1], "(delete this entry)"),
        deep=True,
    ),
    row(
        "a value in common and a claim of another pod",
        around(
            *running("old", "gpu-0"),
            devices=rooted("a", "a", "b"),
            claim=a_claim(asking(count=2), **ONE_ROOT),
        ),
        ["Pod ml/old"],
        ("free-claims", "kubectl delete pod -n ml old"),
    ),
    row(
        "a value in common and a taint of the node",
        around(devices=rooted("a", "b"), claim=a_claim(asking(count=2), **ONE_ROOT), node=a_node(**BAD_NODE)),
        ["with one value of", "taint reserved=ops:NoSchedule"],
        ("allow-nodes + drop-constraint", TOLERATE_NODE[1], "(delete this entry)"),
        deep=True,
    ),
    row(
        "a value in common and a selector",
        around(devices=rooted("a", "b"), claim=a_claim(asking(MEMORY.format("100Gi"), count=2), **ONE_ROOT)),
        ["memory is 80Gi", "with one value of"],
        ("drop-constraint + lower-bound", BOUND[1], "(delete this entry)"),
        deep=True,
    ),
    row(
        "a domain of an attribute and a taint of the devices",
        around(
            claim=a_claim(asking("device.attributes['nvidia.com'].productName == 'H100'")),
            devices=gpus(2, **BAD_GPU),
        ),
        ["did you mean gpu.nvidia.com?", "tainted xid=79:NoSchedule"],
        ("tolerate + other-domain", f'"{GPU}"', TOLERATE_GPU[1]),
        deep=True,
    ),
    row(
        "more devices than there are and a claim of another pod",
        around(*running("old", "gpu-0"), claim=a_claim(asking(count=3))),
        ["3 devices", "in use by ResourceClaim ml/old-gpus"],
        ("fewer-devices", "count: 1"),
    ),
    row(
        "two claims for the same device",
        around(
            a_claim(asking(PRODUCT.format("H100")), name="more"),
            devices=gpus(1),
            pod=a_pod("gpus", "more"),
        ),
        ["2 different devices for the 2 requests are asked for"],
        None,
    ),
)
