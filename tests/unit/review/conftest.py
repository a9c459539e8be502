"""Small programs and fleets, and one realistic review that the golden reports are made of."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest

from dra_infra.errors import Place
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    Device,
    DeviceAttribute,
    DeviceCapacity,
    Node,
    NodeTaint,
    ObjectMeta,
    ObjectRef,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dra_infra.placement.placement import (
    DeviceChoice,
    JointVerdict,
    NodePlacement,
    Order,
    Placement,
    Reason,
    WorkloadPlacement,
)
from dra_infra.program_objects import SECRET, UNKNOWN, ComponentRef, NotSeen, Program, ProgramObject
from dra_infra.provenance import ReviewedSide
from dra_infra.review import Review, review
from tests.support.placing import place

DRIVER = "gpu.nvidia.com"
H100 = "H100 80GB HBM3"
A100 = "A100-SXM4-80GB"


def urn(kind: str, name: str, *, api: str = "core/v1", parent: str = "") -> str:
    above = f"{parent}$" if parent else ""
    return f"urn:pulumi:dev::quickstart::{above}kubernetes:{api}:{kind}::{name}"


def an_object(kind, name, spec, *, api_version="v1", namespace="ml", resource=None, component=None, **rest):
    """One object of a program; its resource has the object's name unless said otherwise."""
    metadata = {"namespace": namespace} if namespace else {}
    metadata |= {"name": name} if name else {}
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": metadata}
    fields = {key: rest.pop(key) for key in ("data", "stringData", "type") if key in rest}
    manifest |= fields | ({"spec": spec} if spec is not None else {})
    return ProgramObject(
        urn=urn(kind, resource or name, api=api_version if "/" in api_version else f"core/{api_version}"),
        manifest=manifest,
        component=component,
        **rest,
    )


def claim_spec(count=1, device_class="h100", expression=""):
    exactly = {"deviceClassName": device_class, "count": count}
    if expression:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def a_template(resource, name, *, count=1, device_class="h100", expression="", **rest):
    return an_object(
        "ResourceClaimTemplate",
        name,
        {"spec": claim_spec(count, device_class, expression)},
        api_version="resource.k8s.io/v1",
        resource=resource,
        component=ComponentRef("GpuClaimTemplate", resource),
        **rest,
    )


def a_claim(resource, name, *, count=1, **rest):
    return an_object(
        "ResourceClaim",
        name,
        claim_spec(count),
        api_version="resource.k8s.io/v1",
        resource=resource,
        component=ComponentRef("GpuClaim", resource),
        **rest,
    )


def a_class(name="h100", expression="device.driver == 'gpu.nvidia.com'"):
    return an_object(
        "DeviceClass",
        name,
        {"selectors": [{"cel": {"expression": expression}}]},
        api_version="resource.k8s.io/v1",
        namespace="",
        component=ComponentRef("GpuDeviceClass", name),
    )


def pod_spec(*, template="", claim="", image="registry.example.com/app:1", entry="gpu", **rest):
    container = {"name": "main", "image": image}
    spec = {"containers": [container], **rest}
    if template or claim:
        container["resources"] = {"claims": [{"name": entry}]}
        source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
        spec["resourceClaims"] = [{"name": entry, **source}]
    return spec


def a_workload(kind, name, pods, *, replicas=1, **spec):
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pods}
    if kind == "Job":
        full = {"parallelism": replicas, "template": template}
        return an_object(kind, name, full | spec, api_version="batch/v1")
    full = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return an_object(kind, name, full | spec, api_version="apps/v1")


def a_pod(name, pods):
    return an_object("Pod", name, pods)


def a_program(*objects, stack="dev", **rest):
    ordered = sorted(objects, key=lambda item: (item.ref.namespace, item.ref.kind, item.ref.name))
    return Program(project="quickstart", stack=stack, objects=tuple(ordered), **rest)


def a_node(name, product=H100, gpus=8, *, partitions=0, **rest):
    """A node and its slice: whole GPUs, then GPUs that are cut into seven `1g.10gb`."""
    devices = [_device(f"gpu-{index}", product, type="gpu") for index in range(gpus)]
    for gpu in range(gpus, gpus + partitions):
        parent = f"GPU-{name}-{gpu}"
        devices += [
            _device(
                f"gpu-{gpu}-mig-1g10gb-19-{part}", product, type="mig", profile="1g.10gb", parentUUID=parent
            )
            for part in range(7)
        ]
    spec = ResourceSliceSpec(
        driver=DRIVER,
        pool=ResourcePool(name=name, generation=1, resource_slice_count=1),
        node_name=name,
        devices=devices,
    )
    allocatable = {"cpu": "224", "memory": "2048Gi", "pods": "110"}
    slice_ = ResourceSlice(metadata=ObjectMeta(name=f"{name}-{DRIVER}"), spec=spec)
    return Node(name=name, allocatable=allocatable, **rest), slice_


def _device(name, product, **attributes):
    values = {"productName": f"NVIDIA {product}", **attributes}
    memory = "9728Mi" if "profile" in attributes else {"L40S": "46068Mi"}.get(product, "81559Mi")
    return Device(
        name=name,
        attributes={key: DeviceAttribute(string=value) for key, value in values.items()},
        capacity={"memory": DeviceCapacity(value=memory)},
    )


def a_fleet(*pairs, name="production", nodes=(), **rest):
    return Fleet(
        name=name,
        nodes=tuple(sorted((*nodes, *(node for node, _ in pairs)), key=lambda node: node.name)),
        slices=tuple(slice_ for _, slice_ in pairs),
        **rest,
    )


def _joint(verdict, workloads):
    order = (
        Order(arrivals=(), pending=((workloads[-1].owner, workloads[-1].replicas),)) if workloads else None
    )
    fails = order if verdict == "depends-on-order" else None
    works = Order(arrivals=()) if verdict in ("always", "depends-on-order") else None
    return JointVerdict(verdict=verdict, reasons=("because",), works=works, fails=fails)


def place_first_fit(fleet, *wishes, joint="always", unmodelled=(), notes=()):
    """What a placement looks like, by first fit: (kind, name, replicas, count, model) each, in this order."""
    free = _all(fleet)
    workloads = []
    for kind, name, replicas, count, model in wishes:
        candidates = []
        for node, devices in sorted(_all(fleet).items()):
            matching = [device for device in devices if _model(device) == model]
            if len(matching) >= count:
                candidates.append((node, matching))
        pods = []
        for _ in range(replicas):
            for node, _matching in candidates:
                left = [device for device in free[node] if _model(device) == model]
                if len(left) >= count:
                    pods.append(NodePlacement(node=node, devices=_choices(name, node, left[:count])))
                    free[node] = [device for device in free[node] if device not in left[:count]]
                    break
        capacity = sum(len(matching) // count for _, matching in candidates)
        fits = capacity >= replicas
        workloads.append(
            WorkloadPlacement(
                owner=ObjectRef(kind=kind, name=name, namespace="ml"),
                replicas=replicas,
                verdict="fits" if fits else "does-not-fit",
                nodes=tuple(
                    NodePlacement(node=node, devices=_choices(name, node, matching[:count]))
                    for node, matching in candidates
                ),
                more_pods=max(0, capacity - replicas) if fits else 0,
                reasons=()
                if fits
                else (
                    Reason(
                        code="too-few-nodes",
                        message=f"{capacity} of {replicas} pods fit, each with {count} GPUs on one node",
                    ),
                ),
                unmodelled=tuple(unmodelled),
                pods=tuple(pods),
            )
        )
    workloads.sort(key=lambda workload: (workload.owner.namespace, workload.owner.kind, workload.owner.name))
    return Placement(
        fleet=fleet, workloads=tuple(workloads), joint=_joint(joint, workloads), notes=tuple(notes)
    )


def _all(fleet):
    open_nodes = {node.name for node in fleet.nodes if not node.unschedulable and not node.taints}
    slices = (slice_.spec for slice_ in fleet.slices)
    return {spec.node_name: list(spec.devices or ()) for spec in slices if spec.node_name in open_nodes}


def _model(device):
    attributes = device.attributes
    return attributes["profile"].string if "profile" in attributes else attributes["productName"].string[7:]


def _choices(name, node, devices):
    return tuple(
        DeviceChoice(
            entry="gpu",
            claim=name,
            request="gpu",
            driver=DRIVER,
            pool=node,
            device=device.name,
            device_class="gpu.nvidia.com",
        )
        for device in devices
    )


def a_sample() -> Review:
    """A day's work: a trainer gets twice the GPUs, a server more replicas and memory, one job too large a fleet."""
    fleet = a_fleet(
        *(a_node(f"hgx-h100-{index}") for index in range(8)),
        *(a_node(f"a100-80gb-{index}", A100, 6, partitions=2) for index in range(2)),
        a_node("l40s-0", "L40S", 8, taints=(NodeTaint(key="team", value="render"),)),
        a_node("hgx-h100-8", unschedulable=True),
        nodes=(Node(name="control-plane-0"), Node(name="control-plane-1")),
    )
    whole = "device.attributes['gpu.nvidia.com'].type == 'gpu' && device.attributes['gpu.nvidia.com'].productName.contains('{}')"
    partition = "device.attributes['gpu.nvidia.com'].type == 'mig' && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
    over_40 = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('40Gi')) >= 0"
    over_79 = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('79Gi')) >= 0"
    settings = {"batch-size": "64", "model": "llama-70b", "epochs": "3"}
    base = a_program(
        a_class(expression=whole.format("H100")),
        a_class("mig", partition),
        a_template("trainer", "trainer-3f9c2a1b", count=2),
        a_template("server", "server-9d01e7aa", expression=over_40),
        a_template("notebook", "notebook-51be0c44", device_class="mig"),
        a_template("pretrain", "pretrain-77ab01fe", count=8),
        a_template("eval", "eval-0b6d9e21"),
        a_workload("Job", "train", pod_spec(template="trainer-3f9c2a1b", image="registry.example.com/train:2.4")),
        a_workload("Deployment", "serve", pod_spec(template="server-9d01e7aa", image="registry.example.com/vllm:0.9"), replicas=4),
        a_workload("Deployment", "notebook", pod_spec(template="notebook-51be0c44"), replicas=3),
        a_workload("StatefulSet", "pretrain", pod_spec(template="pretrain-77ab01fe"), replicas=3),
        a_workload("Job", "eval", pod_spec(template="eval-0b6d9e21"), replicas=2),
        an_object("ConfigMap", "train-settings", None, data=settings),
        an_object("Secret", "registry", None, stringData={"token": SECRET}),
        an_object("Service", "serve", {"ports": [{"port": 80, "targetPort": 8000}], "selector": {"app": "serve"}}),
    )  # fmt: skip
    head = a_program(
        a_class(expression=whole.format("H100")),
        a_class("mig", partition),
        a_template("trainer", "trainer-8d21c04e", count=4, place=Place(file="infra/__main__.py", line=14)),
        a_template("server", "server-c2fa77d0", expression=over_79),
        a_template("notebook", "notebook-51be0c44", device_class="mig"),
        a_template("pretrain", "pretrain-77ab01fe", count=8),
        a_template("embed", "embed-4e07d3c9"),
        a_workload("Job", "train", pod_spec(template="trainer-8d21c04e", image="registry.example.com/train:2.4")),
        a_workload("Deployment", "serve", pod_spec(template="server-c2fa77d0", image="registry.example.com/vllm:0.10"), replicas=6),
        a_workload("Deployment", "notebook", pod_spec(template="notebook-51be0c44"), replicas=3),
        a_workload("StatefulSet", "pretrain", pod_spec(template="pretrain-77ab01fe"), replicas=9),
        a_workload("Deployment", "embed", pod_spec(template="embed-4e07d3c9"), replicas=2),
        an_object("ConfigMap", "train-settings", None, data=settings | {"batch-size": "128"}),
        an_object("Secret", "registry", None, stringData={"token": SECRET}),
        an_object("Service", "serve", {"ports": [{"port": 80, "targetPort": 8000}], "selector": {"app": "serve"}, "clusterIP": UNKNOWN}),
        not_seen=(NotSeen(what="StackReference", name="acme/network/prod", reason="its outputs live in another stack"),),
    )  # fmt: skip
    base = replace(
        base,
        objects=tuple(
            replace(item, manifest={**item.manifest, "spec": {**item.manifest["spec"], "clusterIP": UNKNOWN}})
            if item.ref.kind == "Service"
            else item
            for item in base.objects
        ),
    )
    made = review(
        base,
        head,
        base_label="origin/main",
        before=place([item.manifest for item in base.objects], fleet, with_headroom=True),
        after=place([item.manifest for item in head.objects], fleet, with_headroom=True),
    )
    commits = {
        "base": ReviewedSide(origin="commit", label="origin/main", commit="1a2b3c4d5e6f" + "0" * 28),
        "head": ReviewedSide(origin="working tree", commit="9f8e7d6c5b4a" + "0" * 28, is_changed=True),
    }
    # The files of the golden reports do not change with each release.
    return replace(made, provenance=replace(made.provenance, version="X.Y.Z", **commits))


@pytest.fixture
def make():
    """The builders above; test modules cannot import each other."""
    return SimpleNamespace(
        node=a_node,
        fleet=a_fleet,
        place=place_first_fit,
        program=a_program,
        object=an_object,
        template=a_template,
        claim=a_claim,
        device_class=a_class,
        workload=a_workload,
        pod=a_pod,
        pod_spec=pod_spec,
        claim_spec=claim_spec,
        copy=copy.deepcopy,
    )


@pytest.fixture
def sample():
    return a_sample()
