"""Scenes drawn at random, as the files that a user would have: objects, a fleet or a snapshot, a minor with gates."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from hypothesis import strategies as st

from dra_infra.answers.scene import Scene
from dra_infra.catalog.fleet_files import gather_fleet
from dra_infra.catalog.fleets import build
from dra_infra.catalog.node_pools import read_described
from dra_infra.catalog.snapshots import Snapshot, snapshot_of
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import GATES, SUPPORTED_MINORS
from dra_infra.placement.running import NOTHING_RUNS, Running
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.specs.guardrails import Rules, compile_guardrails
from dra_infra.target import ClusterTarget, check_target
from tests.contract.test_one_answer import API, DRIVER, HARD, a_fleet

Manifest = dict[str, Any]

NAMESPACE: Final = "ml"
CLASS: Final = "gpu"
PLUGIN: Final = "nvidia.com/gpu"
ELSEWHERE: Final = "elsewhere"
"""A claim template that no scene has."""
DEVICES: Final = f"{CLASS}.deviceclass.resource.k8s.io/devices"
QUEUE: Final = "kueue.x-k8s.io/queue-name"

DECIDING_GATES: Final = (
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAPrioritizedList",
)
"""Gates that decide what is refused, dropped or served in these scenes."""

BROKEN_CLASS: Final = {
    "apiVersion": API,
    "kind": "DeviceClass",
    "metadata": {"name": "broken"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver =="}}]},
}

GROUPS: Final = {"Job": "batch/v1", "CronJob": "batch/v1", "Pod": "v1"}
"""API versions of kinds that make pods; the others are of apps/v1."""


@dataclass(frozen=True, kw_only=True)
class DrawnScene:
    """What a user would write into files, and the scene that `read_scene` would read from them.

    Args:
        manifests: The objects that are asked about.
        nodes: Nodes, ResourceSlices and DeviceClasses; empty with `pools`.
        pools: A fleet file with node pools; None for a fleet of Kubernetes objects.
        running: Pods, claims and other objects of a snapshot; None for a fleet, on which nothing runs.
        kubernetes: The minor; None where the user names none.
        gates: Gates that the cluster sets itself.
    """

    manifests: list[Manifest]
    nodes: list[Manifest] = field(default_factory=list)
    pools: Manifest | None = None
    running: list[Manifest] | None = None
    kubernetes: str | None = None
    gates: dict[str, bool] = field(default_factory=dict)

    @cached_property
    def snapshot(self) -> Snapshot | None:
        """The cluster, where a snapshot is read."""
        if self.running is None:
            return None
        return snapshot_of(copy.deepcopy([*self.nodes, *self.running]))

    @cached_property
    def fleet(self) -> Fleet:
        """The hardware."""
        if self.snapshot is not None:
            return self.snapshot.fleet
        if self.pools is not None:
            described = read_described(self.pools, "fleet.yaml")
            return build(described, separate_counters=self.kubernetes != SUPPORTED_MINORS[0])
        return gather_fleet(self.nodes, "fleet.yaml")

    @cached_property
    def program(self) -> Program:
        """The objects as a program, on the minor and with the gates."""
        return self.program_of(self.manifests)

    @cached_property
    def scene(self) -> Scene:
        """The scene."""
        snapshot = self.snapshot
        running = Running.of(snapshot, self.program) if snapshot is not None else NOTHING_RUNS
        return Scene.of(self.program, fleet=self.fleet, running=running)

    def program_of(self, manifests: list[Manifest]) -> Program:
        """Return objects as a program, on the minor and with the gates."""
        objects = tuple(
            ProgramObject(urn=f"urn:pulumi:manifests::manifests::object::{number}", manifest=manifest)
            for number, manifest in enumerate(manifests)
        )
        return Program(
            project="manifests", stack="", objects=objects, kubernetes=self.kubernetes, gates=self.gates
        )

    def of_kind(self, *kinds: str) -> list[Manifest]:
        """Return the objects of some kinds that are asked about."""
        return [each for each in self.manifests if each["kind"] in kinds]

    @property
    def features(self) -> frozenset[str]:
        """What the scene has, by the names that `FEATURES` counts."""
        return frozenset(_find_features(self))


WORKLOADS: Final = ("Pod", "Deployment", "Job", "StatefulSet", "DaemonSet", "CronJob")

FEATURES: Final = {
    **dict.fromkeys((f"minor {minor}" for minor in SUPPORTED_MINORS), 0.05),
    **dict.fromkeys((f"kind {kind}" for kind in WORKLOADS), 0.05),
    "a broken class": 0.02,
    "a claim of its own": 0.1,
    "a cordoned node": 0.05,
    "a gate off": 0.1,
    "a gate on": 0.1,
    "a guardrail": 0.1,
    "a missing class": 0.01,
    "a node pool": 0.05,
    "a queue": 0.1,
    "a queued workload": 0.1,
    "a quota": 0.1,
    "a rule that taints": 0.05,
    "a selector of nodes": 0.05,
    "a served resource": 0.1,
    "a snapshot": 0.1,
    "alternatives": 0.05,
    "no minor": 0.05,
    "pods of a device plugin": 0.05,
    "pods that run": 0.1,
    "pods that run of a workload": 0.02,
    "pods with claims": 0.4,
    "pods without devices": 0.05,
    "several workloads": 0.2,
    "tainted nodes": 0.05,
}
"""The least share of scenes that has each feature, about half of what is drawn; a test counts them."""


def _find_features(drawn: DrawnScene) -> Iterator[str]:
    yield f"minor {drawn.kubernetes}" if drawn.kubernetes else "no minor"
    yield from (f"a gate {'on' if value else 'off'}" for value in drawn.gates.values())
    yield from _find_features_of_program(drawn)
    yield from _find_features_of_hardware(drawn)
    for each in drawn.of_kind(*WORKLOADS):
        yield from _find_features_of_pods(pod_spec(each))


_FEATURES_OF_KINDS: Final = {
    **{kind: f"kind {kind}" for kind in WORKLOADS},
    "ClusterQueue": "a queue",
    "DeviceTaintRule": "a rule that taints",
    "ResourceClaim": "a claim of its own",
    "ResourceQuota": "a quota",
    "ValidatingAdmissionPolicy": "a guardrail",
}


def _find_features_of_program(drawn: DrawnScene) -> Iterator[str]:
    kinds = {each["kind"] for each in drawn.manifests}
    yield from (feature for kind, feature in _FEATURES_OF_KINDS.items() if kind in kinds)
    workloads = drawn.of_kind(*WORKLOADS)
    classes = [each["metadata"]["name"] for each in drawn.of_kind("DeviceClass")]
    claims_as_text = str(drawn.of_kind("ResourceClaim", "ResourceClaimTemplate"))
    found = {
        "several workloads": len(workloads) > 1,
        "a queued workload": any(QUEUE in each["metadata"]["labels"] for each in workloads),
        "a broken class": "broken" in classes,
        "a missing class": "'missing'" in claims_as_text,
        "alternatives": "firstAvailable" in claims_as_text,
        "a served resource": "extendedResourceName" in str([*drawn.manifests, *drawn.nodes]),
    }
    yield from (feature for feature, is_there in found.items() if is_there)


def _find_features_of_hardware(drawn: DrawnScene) -> Iterator[str]:
    nodes = [each.get("spec", {}) for each in drawn.nodes if each["kind"] == "Node"]
    pods = [each for each in drawn.running or () if each["kind"] == "Pod"]
    found = {
        "a cordoned node": any("unschedulable" in spec for spec in nodes),
        "tainted nodes": any("taints" in spec for spec in nodes),
        "a node pool": drawn.pools is not None,
        "a snapshot": drawn.running is not None,
        "pods that run": bool(pods),
        "pods that run of a workload": any("ownerReferences" in each["metadata"] for each in pods),
    }
    yield from (feature for feature, is_there in found.items() if is_there)


def _find_features_of_pods(spec: Manifest) -> Iterator[str]:
    resources = spec["containers"][0]["resources"]
    if "resourceClaims" in spec:
        yield "pods with claims"
    elif PLUGIN in resources.get("limits", {}):
        yield "pods of a device plugin"
    else:
        yield "pods without devices"
    if "nodeSelector" in spec:
        yield "a selector of nodes"


def pod_spec(workload: Manifest) -> Manifest:
    """Return the spec of the pods that a workload makes."""
    spec: Manifest = workload["spec"]
    if workload["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec if workload["kind"] == "Pod" else spec["template"]["spec"]


Care = Literal["plain", "careful", "careless"]
"""What a scene is made of: devices and nodes alone; all that servers accept; or also what they refuse."""

CARES: Final[Mapping[Care, float]] = {"plain": 0.35, "careful": 0.35, "careless": 0.3}
"""The share of scenes of each. Where any object has an error, every answer ends with 1, so most scenes have none. Answers other than
"no" are rare where quotas, queues and selectors come together, so a part of the scenes has none of these."""

Hardware = Literal["fleet", "pools", "snapshot"]
HARDWARE: Final[tuple[Hardware, ...]] = ("fleet", "pools", "snapshot")

SHAPES: Final[Mapping[tuple[Care, Hardware], float]] = {
    (care, hardware): share / len(HARDWARE) for care, share in CARES.items() for hardware in HARDWARE
}
"""The share of scenes of each care and hardware. Hypothesis draws variations of what it drew before, so a few hundred draws of all
shapes may lack one; a test draws each shape by itself."""


@st.composite
def scenes(draw: st.DrawFn, care: Care | None = None, hardware: Hardware | None = None) -> DrawnScene:
    """A scene of a few workloads on a few nodes, of the given shape or of any."""
    care = care or draw(st.sampled_from([*CARES]))
    hardware = hardware or draw(st.sampled_from(HARDWARE))
    minor = draw(st.sampled_from([None, *SUPPORTED_MINORS]))
    gates = draw(gates_of(minor))
    device_class, *nodes = a_fleet(draw(st.lists(st.sampled_from([4, 2, 3, 1, 0]), min_size=1, max_size=3)))
    if "DRAExtendedResource" in gates or draw(st.integers(0, 3)) == 0:
        device_class["spec"]["extendedResourceName"] = PLUGIN
    for node in nodes:
        if node["kind"] == "Node":
            draw(changes_of(node, care=care))
    made: list[Manifest] = [draw(claims(name, gates, care=care)) for name in ("t0", "t1")]
    if draw(st.integers(0, 2)) == 0:
        made.append(draw(claims("c0", gates, care=care, is_template=False)))
    names = [f"w{number}" for number in range(draw(st.integers(1, 3)))]
    has_claim = made[-1]["kind"] == "ResourceClaim"
    is_partial = hardware == "pools"
    made += [
        draw(workloads(name, gates, has_claim=has_claim, care=care, is_partial=is_partial)) for name in names
    ]
    if care != "plain":
        made += draw(surroundings(minor, gates, is_careful=care == "careful"))
    pools = draw(fleet_files()) if hardware == "pools" else None
    running = draw(objects_that_run(nodes, made)) if hardware == "snapshot" else None
    # A class is of the program or of the fleet; fleets by name have their own only.
    (made if pools is not None or draw(st.booleans()) else nodes).append(device_class)
    return DrawnScene(
        manifests=made,
        nodes=[] if pools is not None else nodes,
        pools=pools,
        running=running,
        kubernetes=minor,
        gates=gates,
    )


@st.composite
def gates_of(draw: st.DrawFn, minor: str | None) -> dict[str, bool]:
    """Up to two gates that a minor lets the cluster set; none where they exclude each other.

    What is drawn after them has what they decide about, so that they change answers.
    """
    release = minor or SUPPORTED_MINORS[-1]
    free = [name for name in DECIDING_GATES if release in GATES[name] and not GATES[name][release].locked]
    chosen = draw(st.lists(st.sampled_from(free), max_size=2, unique=True))
    gates = {name: draw(st.booleans()) for name in chosen}
    return {} if check_target(ClusterTarget(kubernetes=release, gates=gates)) else gates


@st.composite
def changes_of(draw: st.DrawFn, node: Manifest, *, care: Care) -> None:
    """Cordon, taint or label a node, or let a device plugin give out GPUs there; some stay as they are."""
    changes = ["", "", "cordon", "cordon", "taint", "taint", "label", "label", "plugin", "plugin"]
    change = draw(st.sampled_from(["", "label", "label", "taint"] if care == "plain" else changes))
    if change == "cordon":
        node["spec"] = {"unschedulable": True}
    elif change == "taint":
        node["spec"] = {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]}
    elif change == "label":
        node["metadata"]["labels"]["pool"] = "a"
    elif change == "plugin":
        node["status"]["allocatable"][PLUGIN] = str(draw(st.integers(1, 4)))


@st.composite
def claims(
    draw: st.DrawFn, name: str, gates: dict[str, bool], *, care: Care, is_template: bool = True
) -> Manifest:
    """A claim or its template: one that a gate decides about, and where nobody is careful one that the server refuses."""
    others: dict[Care, list[str]] = {"plain": [], "careful": ["missing"], "careless": ["broken"] * 4}
    classes = st.sampled_from([CLASS] * 9 + others[care])
    counts = st.sampled_from([1, 1, 1, 2, 2, 3, *([0, -1] if care == "careless" else [])])
    changes = ["", "", "", "", "selector", "tolerates"]
    changes += {"plain": [], "careful": ["all"], "careless": ["all", "admin", "wrong"]}[care]

    def asks() -> Manifest:
        return {"deviceClassName": draw(classes), "count": draw(counts)}

    if "DRAPrioritizedList" in gates or draw(st.integers(0, 7)) == 0:
        request: Manifest = {
            "name": "gpu",
            "firstAvailable": [{"name": f"way{number}", **asks()} for number in range(2)],
        }
    else:
        exactly = asks()
        request = {"name": "gpu", "exactly": exactly}
        more = "admin" if "DRAAdminAccess" in gates else draw(st.sampled_from(changes))
        if more == "selector":
            exactly["selectors"] = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
        elif more == "wrong":
            exactly["selectors"] = [{"cel": {"expression": "device.driver =="}}]
        elif more == "all":
            exactly["allocationMode"] = "All"
            del exactly["count"]
        elif more == "admin":
            exactly["adminAccess"] = True
        elif more == "tolerates":
            exactly["tolerations"] = [{"operator": "Exists"}]
    devices: Manifest = {"requests": [request]}
    is_decided = "DRAConsumableCapacity" in gates
    if is_decided or (care != "plain" and draw(st.integers(0, 7)) == 0):
        # Without its gate the server refuses a constraint that is distinct.
        key = "matchAttribute" if care == "careful" and not is_decided else "distinctAttribute"
        devices["constraints"] = [{key: f"{DRIVER}/index"}]
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate" if is_template else "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": devices}} if is_template else {"devices": devices},
    }


@st.composite
def workloads(
    draw: st.DrawFn, name: str, gates: dict[str, bool], *, has_claim: bool, care: Care, is_partial: bool
) -> Manifest:
    """A workload of pods with claims, pods that ask a device plugin, or pods without devices.

    Pods of a plain scene may name a template that somebody else makes: whether they fit is not decided. It is not decided either
    where pods without devices select a node that a partial fleet does not have, so these are drawn more often, but not into plain scenes.
    """
    kind = draw(st.sampled_from(WORKLOADS))
    resources: Manifest = {"requests": {"cpu": draw(st.sampled_from(["0", "0", "0", "1", "3"]))}}
    pod: Manifest = {"containers": [{"name": "main", "image": "i", "resources": resources}]}
    uses = ["plugin", "claim"] if "DRAExtendedResource" in gates else ["claim"] * 4 + ["plugin", "nothing"]
    may_be_elsewhere = is_partial and care != "plain"
    use = draw(st.sampled_from([*uses, "nothing"] if may_be_elsewhere else uses))
    if use == "claim":
        sources = [{"resourceClaimTemplateName": each} for each in ("t0", "t1")]
        if has_claim:
            sources.append({"resourceClaimName": "c0"})
        if care == "plain" and draw(st.integers(0, 5)) == 0:
            sources = [{"resourceClaimTemplateName": ELSEWHERE}]
        pod["resourceClaims"] = [{"name": "gpu", **draw(st.sampled_from(sources))}]
        if care == "careless" and draw(st.integers(0, 5)) == 0:
            # One of two sources: the server refuses both.
            pod["resourceClaims"][0] |= {"resourceClaimName": "c0", "resourceClaimTemplateName": "t0"}
    elif use == "plugin":
        resources["limits"] = {PLUGIN: draw(st.integers(1, 4))}
    # Most pods may go to any node: one workload that no node lets in is enough for every answer to end with 1.
    places = [*[""] * 9, "pool", "pool", "tolerates", *([] if care == "plain" else ["elsewhere"])]
    place = draw(
        st.sampled_from(["elsewhere", "elsewhere", ""] if may_be_elsewhere and use == "nothing" else places)
    )
    if place in ("pool", "elsewhere"):
        pod["nodeSelector"] = {"pool": "a" if place == "pool" else "z"}
    elif place == "tolerates":
        pod["tolerations"] = [{"operator": "Exists"}]
    labels = {QUEUE: "gpus"} if care != "plain" and draw(st.integers(0, 4)) == 0 else {}
    return a_workload(kind, name, pod, draw(st.integers(1, 3)), labels)


def a_workload(kind: str, name: str, pod: Manifest, pods: int, labels: Manifest) -> Manifest:
    """Return an object of a kind that makes pods."""
    metadata = {"name": name, "namespace": NAMESPACE, "labels": labels}
    spec: Manifest = {"template": {"metadata": {"labels": {"app": name}}, "spec": pod}}
    if kind == "Pod":
        spec = pod
    elif kind in ("Job", "CronJob"):
        pod["restartPolicy"] = "Never"
        spec["parallelism"] = pods
        spec["completions"] = pods
    else:
        spec["selector"] = {"matchLabels": {"app": name}}
        if kind != "DaemonSet":
            spec["replicas"] = pods
    if kind == "CronJob":
        spec = {"schedule": "0 0 * * *", "jobTemplate": {"spec": spec}}
    elif kind == "StatefulSet":
        spec["serviceName"] = name
    return {
        "apiVersion": GROUPS.get(kind, "apps/v1"),
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


@st.composite
def surroundings(
    draw: st.DrawFn, minor: str | None, gates: dict[str, bool], *, is_careful: bool
) -> list[Manifest]:
    """What of the program is around its workloads: quotas, queues, guardrails, a broken class, a rule that taints devices."""
    made: list[Manifest] = []
    if draw(st.integers(0, 2)) == 0:
        made.append(a_quota(draw(HARD)))
    if not is_careful and draw(st.booleans()):
        made.append(copy.deepcopy(BROKEN_CLASS))
    if draw(st.integers(0, 3)) == 0:
        made += queues(draw(st.integers(0, 3)))
    if draw(st.integers(0, 4)) == 0:
        made += guardrails(draw(st.integers(1, 3)))
    if "DRAAdminAccess" in gates:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        metadata = {"name": NAMESPACE, "labels": labels}
        made.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    decides = not gates.keys().isdisjoint({"DRADeviceTaints", "DRADeviceTaintRules"})
    if decides or draw(st.integers(0, 7)) == 0:
        made.append(a_taint_rule(minor, draw(st.sampled_from(["NoSchedule", "NoExecute"])), draw(NODES)))
    return made


NODES: Final = st.sampled_from(["n0", "n1"])


@st.composite
def fleet_files(draw: st.DrawFn) -> Manifest:
    """A fleet file with one or two node pools, of nodes with eight devices each."""
    pools = []
    for name in ["a3", "b4"][: draw(st.integers(1, 2))]:
        least = draw(st.integers(0, 1))
        pool: Manifest = {"name": name, "nodes": "example", "min": least, "max": draw(st.integers(1, 3))}
        if draw(st.integers(0, 3)) == 0:
            pool["labels"] = {"pool": "a"}
        pools.append({**pool, "allocatable": {"cpu": "4"}})
    return {"pools": pools}


@st.composite
def objects_that_run(draw: st.DrawFn, nodes: list[Manifest], program: list[Manifest]) -> list[Manifest]:
    """Pods on nodes of a snapshot, each perhaps with a claim that has devices, and of a controller of its own or of the program."""
    devices = {
        each["spec"]["nodeName"]: [device["name"] for device in each["spec"]["devices"]]
        for each in nodes
        if each["kind"] == "ResourceSlice"
    }
    owners = [each for each in program if each["kind"] in ("Job", "StatefulSet", "DaemonSet")]
    made: list[Manifest] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
    for number in range(draw(st.integers(0, 3))):
        node = draw(st.sampled_from(sorted(devices)))
        name = f"r{number}"
        resources = {"requests": {"cpu": draw(st.sampled_from(["0", "1", "2"]))}}
        spec: Manifest = {
            "nodeName": node,
            "containers": [{"name": "main", "image": "i", "resources": resources}],
        }
        metadata: Manifest = {"name": name, "namespace": NAMESPACE, "uid": name}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec,
            "status": {"phase": "Running"},
        }
        owner = draw(st.sampled_from(["", "", "program", "job"]))
        if owner == "program" and owners:
            metadata["ownerReferences"] = [_reference_to(draw(st.sampled_from(owners)))]
        elif owner == "job":
            job = a_workload("Job", f"running{number}", copy.deepcopy({**spec, "nodeName": ""}), 1, {})
            del job["spec"]["template"]["spec"]["nodeName"]
            made.append(job)
            metadata["ownerReferences"] = [_reference_to(job)]
        if devices[node] and draw(st.booleans()):
            claim = _an_allocated_claim(name, node, devices[node].pop())
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
            made.append(claim)
        made.append(pod)
    if draw(st.integers(0, 3)) == 0:
        quota = a_quota(draw(HARD))
        quota["metadata"]["name"] = "of-cluster"
        made.append(quota)
    if draw(st.integers(0, 5)) == 0:
        made += queues(draw(st.integers(0, 3)))
    return made


def _reference_to(owner: Manifest) -> Manifest:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["name"],
        "controller": True,
    }


def _an_allocated_claim(name: str, node: str, device: str) -> Manifest:
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": device}
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"claim-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
            },
            "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
        },
    }


def a_quota(hard: dict[str, str]) -> Manifest:
    """Return a quota of the namespace."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "team", "namespace": NAMESPACE},
        "spec": {"hard": hard},
    }


def queues(quota: int) -> list[Manifest]:
    """Return a queue of Kueue for devices of the class, with its ClusterQueue."""
    api = "kueue.x-k8s.io/v1beta2"
    resources = [{"name": DEVICES, "nominalQuota": quota}]
    group = {"coveredResources": [DEVICES], "flavors": [{"name": "f", "resources": resources}]}
    return [
        {
            "apiVersion": api,
            "kind": "LocalQueue",
            "metadata": {"name": "gpus", "namespace": NAMESPACE},
            "spec": {"clusterQueue": "all"},
        },
        {
            "apiVersion": api,
            "kind": "ClusterQueue",
            "metadata": {"name": "all"},
            "spec": {"resourceGroups": [group]},
        },
    ]


def guardrails(most: int) -> list[Manifest]:
    """Return our policies that let a claim have so many devices, without admin access, and no pods of the device plugin."""
    rules = Rules(
        classes={NAMESPACE: [CLASS]},
        most_devices=most,
        all_devices=False,
        admin_access=(),
        admin_label=None,
        config_drivers=None,
        without_device_plugin=(NAMESPACE,),
    )
    return compile_guardrails("team", rules, {})


def a_taint_rule(minor: str | None, effect: str, pool: str) -> Manifest:
    """Return a rule that taints the devices of a node, in the version that the minor serves."""
    versions = {"1.34": "v1alpha3", "1.35": "v1alpha3", "1.36": "v1beta2"}
    return {
        "apiVersion": f"resource.k8s.io/{versions.get(minor or '', 'v1')}",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "broken-fan"},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": pool},
            "taint": {"key": "example.com/fan", "value": "broken", "effect": effect},
        },
    }
