"""Small fleets and programs, as plain as the API takes them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Node, NodeTaint, ObjectRef, ResourceSlice
from tests.support.placing import place

DRIVER = "gpu.example.com"
ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def a_device(name, attributes=None, *, memory="", **rest):
    kinds = {bool: "bool", int: "int", str: "string"}
    written = {
        key: value if isinstance(value, dict) else {kinds[type(value)]: value}
        for key, value in (attributes or {}).items()
    }
    device = {"name": name, "attributes": written, **rest}
    return device | ({"capacity": {"memory": {"value": memory}}} if memory else {})


def a_slice(pool, devices, *, name="", node=None, driver=DRIVER, generation=1, count=1, **spec):
    if not spec.keys() & {"allNodes", "nodeSelector", "perDeviceNodeSelection"}:
        spec["nodeName"] = pool if node is None else node
    return ResourceSlice.from_manifest(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name or f"{pool}-{driver}"},
            "spec": {
                "driver": driver,
                "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
                "devices": devices,
                **spec,
            },
        }
    )


def a_node(name, *, labels=None, taints=(), allocatable=None, **rest):
    return Node(
        name=name,
        labels={"kubernetes.io/hostname": name, **(labels or {})},
        allocatable=ROOMY if allocatable is None else allocatable,
        taints=tuple(NodeTaint(**taint) for taint in taints),
        **rest,
    )


def a_fleet(*slices, nodes=None, classes=(), notes=()):
    """Slices with a node for each node name in them, unless nodes are given."""
    names = sorted({each.spec.node_name for each in slices if each.spec.node_name})
    nodes = nodes or tuple(a_node(name) for name in names)
    return Fleet(name="test", nodes=tuple(nodes), slices=tuple(slices), classes=tuple(classes), notes=notes)


def gpus(node, count=8, **attributes):
    return a_slice(node, [a_device(f"gpu-{index}", attributes) for index in range(count)])


def a_class(name="gpu", *expressions, **spec):
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors, **spec},
    }


def a_request(name="gpu", *expressions, device_class="gpu", **exactly):
    exactly = {"deviceClassName": device_class, **exactly}
    if expressions:
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in expressions]
    return {"name": name, "exactly": exactly}


def a_template(name, *requests, constraints=(), namespace="ml"):
    return _claim("ResourceClaimTemplate", name, requests, constraints, namespace)


def a_claim(name, *requests, constraints=(), namespace="ml"):
    return _claim("ResourceClaim", name, requests, constraints, namespace)


def _claim(kind, name, requests, constraints, namespace):
    devices = {"requests": list(requests)}
    if constraints:
        devices["constraints"] = list(constraints)
    spec = {"devices": devices}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": spec} if kind == "ResourceClaimTemplate" else spec,
    }


def pod_spec(*claims, requests=None, **spec):
    """A pod spec with one container; a claim is `template:name` or `claim:name`."""
    fields = {"template": "resourceClaimTemplateName", "claim": "resourceClaimName"}
    entries = []
    for index, claim in enumerate(claims):
        kind, name = claim.split(":")
        entries.append({"name": f"entry-{index}", fields[kind]: name})
    container = {"name": "main", "resources": {"requests": requests or {}}}
    return {"resourceClaims": entries, "containers": [container], **spec}


def a_pod(name, *claims, namespace="ml", **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": pod_spec(*claims, **spec),
    }


def an_object(kind, name, namespace="ml", labels=None, **fields):
    return {
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        **fields,
    }


def a_deployment(name, *claims, replicas=1, kind="Deployment", namespace="ml", labels=None, **spec):
    holder = {"replicas": replicas} if kind != "DaemonSet" else {}
    metadata = {"metadata": {"labels": labels}} if labels else {}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**holder, "template": {**metadata, "spec": pod_spec(*claims, **spec)}},
    }


def place_one(fleet, *manifests):
    """The placement of the only workload."""
    (answer,) = place(manifests, fleet).workloads
    return answer


def place_request(fleet, *requests, constraints=(), **pod):
    """The placement of one pod with a claim of its own, on class `gpu` that selects everything."""
    template = a_template("asked", *requests, constraints=constraints)
    return place_one(fleet, a_class(), template, a_pod("pod", "template:asked", **pod))


def devices(placement):
    return [choice.device for choice in placement.devices]


def codes(answer):
    return [reason.code for reason in answer.reasons]


@pytest.fixture(scope="session")
def build():
    names = (
        a_claim,
        a_class,
        a_deployment,
        a_device,
        a_fleet,
        a_node,
        a_pod,
        a_request,
        a_slice,
        a_template,
        an_object,
        codes,
        devices,
        gpus,
        place_one,
        place_request,
        pod_spec,
    )
    return SimpleNamespace(**{each.__name__: each for each in names}, ref=ObjectRef, driver=DRIVER)
