"""Objects of small clusters, as a server sends them."""

from __future__ import annotations

from typing import Any

from dra_infra.client.kinds import CLAIMS, CLASSES, DAEMON_SETS, DEFINITIONS, NODES, PODS, SLICES
from dra_infra.cluster.evidence import Evidence

GPU = "gpu.nvidia.com"


def node(name: str, *, taints: Any = (), allocatable: Any = None, **labels: str) -> dict[str, Any]:
    known = {
        "nvidia.com/gpu.present": "true",
        **{key.replace("__", "/"): value for key, value in labels.items()},
    }
    return {
        "metadata": {"name": name, "labels": known},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": allocatable or {"cpu": "8"}},
    }


def slice_of(
    node_name: str, *devices: Any, driver: str = GPU, number: int | None = None, **more: Any
) -> dict[str, Any]:
    pool = {"name": node_name, "generation": 1, "resourceSliceCount": 1, **more.pop("pool", {})}
    named = [each if isinstance(each, dict) else {"name": each} for each in devices]
    spec = {"driver": driver, "nodeName": node_name, "pool": pool, "devices": named, **more}
    number = len(devices) if number is None else number
    return {"metadata": {"name": f"{node_name}-{driver}-{number}"}, "spec": spec}


def device_class(name: str = GPU, driver: str = GPU, **more: Any) -> dict[str, Any]:
    selectors = [{"cel": {"expression": f"device.driver == '{driver}'"}}]
    return {"metadata": {"name": name}, "spec": {"selectors": selectors, **more}}


def plugin(
    *, release: str = "0.5.0", ready: int = 1, wanted: int = 1, namespace: str = "gpus", **spec: Any
) -> dict[str, Any]:
    gates = {"name": "FEATURE_GATES", "value": spec.pop("gates", "")}
    image = f"registry.invalid/dra-driver-nvidia/dra-driver-nvidia-gpu:v{release}"
    containers = [{"name": name, "image": image, "env": [gates]} for name in ("compute-domains", "gpus")]
    return {
        "metadata": {"name": "dra-driver-nvidia-gpu-kubelet-plugin", "namespace": namespace},
        "spec": {"template": {"spec": {"containers": containers, **spec}}},
        "status": {"desiredNumberScheduled": wanted, "numberReady": ready},
    }


def definitions(*names: str) -> list[dict[str, Any]]:
    return [{"metadata": {"name": f"{name}.resource.nvidia.com"}} for name in names]


def claim(name: str, *devices: str, pods: Any = (), classes: Any = (GPU,), **more: Any) -> dict[str, Any]:
    requests = [
        {"name": f"r{index}", "exactly": {"deviceClassName": each}} for index, each in enumerate(classes)
    ]
    results = [
        dict(zip(("driver", "pool", "device"), each.split("/"), strict=True), request="r0", **more)
        for each in devices
    ]
    status: dict[str, Any] = {"allocation": {"devices": {"results": results}}} if devices else {}
    if pods:
        status["reservedFor"] = [{"resource": "pods", "name": each, "uid": f"uid-{each}"} for each in pods]
    return {
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": requests}},
        "status": status,
    }


def pod(
    name: str, phase: str = "Running", *, claims: Any = (), templates: Any = (), **status: Any
) -> dict[str, Any]:
    entries = [{"name": each, "resourceClaimName": each} for each in claims]
    entries += [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    return {
        "metadata": {"name": name, "namespace": "ml", "uid": f"uid-{name}"},
        "spec": {"resourceClaims": entries, "nodeName": "n1" if phase == "Running" else ""},
        "status": {"phase": phase, **status},
    }


def healthy(**changes: Any) -> Evidence:
    """A cluster of one node with a GPU, with which nothing is wrong; *changes* replace parts of it by kind."""
    objects = {
        NODES: (node("n1"),),
        SLICES: (slice_of("n1", "gpu-0", "gpu-1"),),
        CLASSES: (device_class(),),
        CLAIMS: (claim("a", f"{GPU}/n1/gpu-0", pods=["p"]),),
        PODS: (pod("p", claims=["a"]),),
        DAEMON_SETS: (plugin(),),
        DEFINITIONS: tuple(definitions("computedomains", "computedomaincliques")),
    }
    by_plural = {kind.plural: kind for kind in objects}
    for name in [name for name in changes if name in by_plural]:
        objects[by_plural[name]] = tuple(changes.pop(name))
    return Evidence(**{"kubernetes": "v1.37.1", "served": ("v1",), "objects": objects, **changes})
