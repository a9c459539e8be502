"""Clusters in which pods run, as snapshots have them: deployments with pods and allocated claims on chosen nodes and devices."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from dra_infra.answers.making_room import RoomAnswer, find_room
from dra_infra.answers.scene import Scene
from dra_infra.answers.wanted_shapes import is_shape, read_shape
from dra_infra.catalog import load_fleet
from dra_infra.catalog.snapshots import Snapshot, snapshot_of
from dra_infra.placement.open_programs import open_program
from dra_infra.placement.outcomes import Chosen
from dra_infra.placement.placement import DeviceChoice
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.running import Running
from dra_infra.program_objects import Program, ProgramObject

SPACE = "ml"
GPU_DRIVER = "gpu.nvidia.com"


def an_owner(kind: str, name: str) -> dict[str, Any]:
    group = {"Job": "batch/v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1", "StatefulSet": "apps/v1"}[
        kind
    ]
    return {"apiVersion": group, "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}


def a_request(count: int = 1, *, device_class: str = GPU_DRIVER, **exactly: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count, **exactly}}


def a_template(name: str, *requests: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"spec": {"devices": {"requests": list(requests)}}},
    }


def a_pod_spec(template: str, **more: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.invalid/main:1",
        "resources": {"claims": [{"name": "gpu"}]},
    }
    return {
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        **more,
    }


def a_workload(kind: str, name: str, template: str, replicas: int = 1, **pod: Any) -> dict[str, Any]:
    """A Deployment, StatefulSet or Job whose pods use a claim template."""
    labels = {"app": name}
    spec: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": a_pod_spec(template, **pod)}}
    if kind == "Job":
        spec |= {"parallelism": replicas, "completions": replicas}
        spec["template"]["spec"]["restartPolicy"] = "Never"
    else:
        spec |= {"replicas": replicas, "selector": {"matchLabels": labels}}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name, "namespace": SPACE}, "spec": spec}


def a_running_pod(
    name: str,
    template: str,
    node: str,
    devices: Sequence[str | dict[str, Any]],
    *,
    owner: tuple[str, str] | None,
    **pod: Any,
) -> list[dict[str, Any]]:
    """A pod on a node with its claim, which has devices of the node's pool.

    Args:
        name: Name of the pod.
        template: Its claim template.
        node: Its node.
        devices: Names of its devices, or results of an allocation.
        owner: Kind and name of what made it; None for a bare pod.
        pod: Further fields of the pod spec.
    """
    metadata: dict[str, Any] = {"name": name, "namespace": SPACE, "uid": f"pod-{name}", "labels": {}}
    if owner is not None:
        metadata |= {"labels": {"app": owner[1]}, "ownerReferences": [an_owner(*owner)]}
    results = [
        {"request": "gpu", "driver": GPU_DRIVER, "pool": node, "device": each}
        if isinstance(each, str)
        else each
        for each in devices
    ]
    selector = {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]
    }
    claim = f"{name}-gpu"
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"nodeName": node, **a_pod_spec(template, **pod)},
            "status": {
                "phase": "Running",
                "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": claim}],
            },
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {
                "name": claim,
                "namespace": SPACE,
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Pod",
                        "name": name,
                        "uid": f"pod-{name}",
                        "controller": True,
                    }
                ],
            },
            "spec": {},
            "status": {
                "allocation": {"devices": {"results": results}, "nodeSelector": selector},
                "reservedFor": [{"resource": "pods", "name": name, "uid": f"pod-{name}"}],
            },
        },
    ]


def a_budget(name: str, app: str, allowed: int) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": SPACE},
        "spec": {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def a_snapshot(fleet: str, *objects: dict[str, Any]) -> Snapshot:
    """A cluster with hardware by name and some objects."""
    return snapshot_of([*load_fleet(fleet).to_manifests(), *objects])


def a_program(*manifests: dict[str, Any], kubernetes: str | None = None) -> Program:
    """Objects as a program has them."""
    objects = [
        ProgramObject(urn=f"urn:pulumi:room::room::object::{number:06}", manifest=manifest)
        for number, manifest in enumerate(manifests)
    ]
    return Program(project="room", stack="", objects=tuple(objects), kubernetes=kubernetes)


def ask_for_room(
    snapshot: Snapshot, wanted: str, *manifests: dict[str, Any], kubernetes: str | None = None, **more: Any
) -> RoomAnswer:
    """What `dra-infra make-room` answers about a workload of *manifests*, of the snapshot, or a shape."""
    shape = read_shape(wanted, snapshot.fleet) if is_shape(wanted) else None
    program = a_program(*(shape.manifests if shape else manifests), kubernetes=kubernetes)  # type: ignore[arg-type]
    scene = Scene.of(program, fleet=snapshot.fleet, running=Running.of(snapshot, program))
    return find_room(scene, wanted, shape=shape, **more)


def small_claims() -> list[dict[str, Any]]:
    """Two nodes of eight GPUs with small pods on both, so that eight on one node are free nowhere."""
    objects = [a_template("one", a_request()), a_template("two", a_request(2))]
    objects += [a_workload("Deployment", "notebook", "one", 2), a_workload("StatefulSet", "search", "two", 2)]
    for number, (node, devices) in enumerate([("hgx-h100-0", ["gpu-0"]), ("hgx-h100-1", ["gpu-4"])]):
        objects += a_running_pod(f"notebook-{number}", "one", node, devices, owner=("Deployment", "notebook"))
    for number, (node, devices) in enumerate(
        [("hgx-h100-0", ["gpu-1", "gpu-2"]), ("hgx-h100-0", ["gpu-6", "gpu-7"])]
    ):
        objects += a_running_pod(f"search-{number}", "two", node, devices, owner=("StatefulSet", "search"))
    return objects


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A cluster in which pods run, and a workload that wants room.

    Args:
        fleet: Hardware by name.
        objects: What runs.
        wanted: The workload `Job ml/wanted`, with its claim template.
    """

    fleet: str
    objects: list[dict[str, Any]]
    wanted: list[dict[str, Any]]


def a_profile_request(profile: str) -> dict[str, Any]:
    expression = f'device.attributes["gpu.nvidia.com"].profile == "{profile}"'
    return a_request(device_class="mig.nvidia.com", selectors=[{"cel": {"expression": expression}}])


_WHOLE = {"one": a_request(1), "two": a_request(2), "three": a_request(3), "four": a_request(4)}
_PROFILES = {f"m{each[0]}": a_profile_request(each) for each in ("1g.6gb", "2g.12gb", "4g.24gb")}
_SHARES = {f"s{each}": a_request(capacity={"requests": {"memory": f"{each}Gi"}}) for each in (12, 20, 40)}
HARDWARE = (
    (("a30 x 3", "a30 x 4"), _WHOLE),
    (("a30 x 2 devices=1 dynamic-mig", "a30 x 3 devices=1 dynamic-mig"), _PROFILES),
    (("l40s x 2 devices=1 shares=memory", "l40s x 3 devices=1 shares=memory"), _SHARES),
)
"""Nodes with four whole GPUs, with one GPU in partitions, and with one GPU that claims share; with the claims that pods have."""


def _result_of(choice: DeviceChoice) -> dict[str, Any]:
    share = {"shareID": str(uuid4()), "consumedCapacity": dict(choice.consumed)} if choice.share else {}
    return {
        "request": choice.request,
        "driver": choice.driver,
        "pool": choice.pool,
        "device": choice.device,
        **share,
    }


def draw_cluster(rng: random.Random, *, most_pods: int = 7) -> Drawn:
    """Draw a small cluster that filled up and lost some pods again, so that what is free lies apart."""
    fleets, requests = rng.choice(HARDWARE)
    fleet = rng.choice(fleets)
    templates = [a_template(name, request) for name, request in requests.items()]
    kinds = {f"w{number}": rng.choice(("Deployment", "StatefulSet", "Job")) for number in range(4)}
    small, *larger = requests
    uses = {name: rng.choice((small, small, larger[0])) for name in kinds}
    workloads = [a_workload(kind, name, uses[name], 4) for name, kind in kinds.items()]
    question = PlacementQuestion(manifests=[*templates, *workloads], fleet=load_fleet(fleet))
    opened = open_program(question)
    plans = {each.owner.name: each.plan for each in opened.workloads}
    state, nodes = opened.free.state(), opened.free.cluster.nodes
    placed: list[tuple[str, str, list[dict[str, Any]]]] = []
    for _ in range(rng.randint(len(nodes), 5 * len(nodes))):
        name, node = rng.choice(list(kinds)), rng.randrange(len(nodes))
        outcome = state.attempt(plans[name], node)
        if isinstance(outcome, Chosen):
            where = state.commit(plans[name], node, outcome)
            placed.append((name, where.node, [_result_of(each) for each in where.devices]))
    rng.shuffle(placed)
    objects = [*templates, *workloads]
    for number, (name, node, devices) in enumerate(placed[: rng.randint(2, most_pods)]):
        owner = (kinds[name], name) if rng.random() < 0.9 else None
        objects += a_running_pod(f"{name}-{number}", uses[name], node, devices, owner=owner)
    if rng.random() < 0.3:
        objects.append(a_budget("budget", rng.choice(list(kinds)), rng.randint(0, 1)))
    wanted = a_workload("Job", "wanted", rng.choice((*larger, larger[-1])), rng.choice((1, 1, 1, 2)))
    return Drawn(fleet=fleet, objects=objects, wanted=[wanted])
