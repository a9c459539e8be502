"""Platforms of many teams, for reports at size: manifests of a base and a head, and the review of both.

`python -m tests.support.review.platforms FOLDER NODES WORKLOADS` writes `base.yaml` and `head.yaml`, and prints the fleet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from dra_infra.answers.reviewing import compare
from dra_infra.catalog import load_fleet
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.review import Review

TEAMS = ("ads", "fraud", "maps", "ml", "ranking", "research", "safety", "search", "speech", "vision")
KINDS = (("Deployment", "apps/v1"), ("StatefulSet", "apps/v1"), ("Job", "batch/v1"))


def fleet_of(nodes: int) -> str:
    """A fleet of three models: four in five nodes have H100s, most others A100s."""
    a100 = nodes * 3 // 20
    l40s = nodes // 20
    return f"hgx-h100 x {nodes - a100 - l40s}, a100-80gb x {a100}, l40s x {l40s}"


def manifests(workloads: int, *, head: bool, pods: int = 0) -> Iterator[dict[str, Any]]:
    """Claims and workloads of all teams; one fits in neither, and the head changes five others.

    Args:
        workloads: How many there are, shared out over `TEAMS`.
        head: Whether the change is made: one asks for more devices, one for more pods than there is room, one is new, one is
            gone, and one has another image.
        pods: Of each workload; 0 takes one to five.
    """
    for name in ("h100", "a100"):
        product = f"device.attributes['gpu.nvidia.com'].productName.contains('{name.upper()}')"
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": product}}]},
        }
    for index in range(workloads + head):
        if head and index == 20:
            continue
        devices = (1, 2, 1, 4, 1, 8)[index % 6]
        replicas = pods or index % 5 + 1
        image = "1.0"
        device_class = "a100" if index % 7 == 3 else "h100"
        if index == 11:
            devices, device_class = 16, "h100"
        if head and index == 6:
            devices = 2
        if head and index == 9:
            replicas = 10_000
        if head and index == 12:
            image = "1.1"
        yield from _workload(index, devices, device_class, replicas, image)


def _workload(
    index: int, devices: int, device_class: str, replicas: int, image: str
) -> Iterator[dict[str, Any]]:
    kind, version = KINDS[index % 3]
    name = f"{('serve', 'train', 'embed', 'eval')[index % 4]}-{index:03}"
    metadata = {"name": name, "namespace": TEAMS[index * index % 97 % len(TEAMS)]}
    template = f"{name}-{devices}"
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": devices}}
    yield {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {**metadata, "name": template},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    container = {
        "name": "main",
        "image": f"registry.example/app:{image}",
        "resources": {"claims": [{"name": "gpu"}]},
    }
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec: dict[str, Any] = {
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [container], "resourceClaims": claims},
        }
    }
    if kind == "Job":
        spec["template"]["spec"]["restartPolicy"] = "Never"
        spec |= {"parallelism": replicas, "completions": replicas}
    else:
        spec |= {"replicas": replicas, "selector": {"matchLabels": {"app": name}}}
        spec |= {"serviceName": name} if kind == "StatefulSet" else {}
    yield {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def a_platform(nodes: int, workloads: int, *, pods: int = 0) -> Review:
    """The review of both sides on a fleet of so many nodes, placed for real."""
    base, head = (_program(manifests(workloads, head=head, pods=pods)) for head in (False, True))
    return compare(base, head, base_label="origin/main", fleet=load_fleet(fleet_of(nodes)))


def _program(objects: Iterator[dict[str, Any]]) -> Program:
    return Program(
        project="platform",
        stack="prod",
        objects=tuple(ProgramObject(urn=_urn(each), manifest=each) for each in objects),
    )


def _urn(manifest: dict[str, Any]) -> str:
    """The resource keeps its name where its object gets another one."""
    kind, metadata = manifest["kind"], manifest["metadata"]
    name = metadata["name"].rpartition("-")[0] if kind == "ResourceClaimTemplate" else metadata["name"]
    return f"urn:pulumi:prod::platform::kubernetes:{manifest['apiVersion']}:{kind}::{name}"


def main(folder: Path, nodes: int, workloads: int) -> None:
    """Write both sides."""
    folder.mkdir(parents=True, exist_ok=True)
    for side in ("base", "head"):
        text = yaml.safe_dump_all(manifests(workloads, head=side == "head"), sort_keys=False)
        (folder / side).mkdir(exist_ok=True)
        (folder / side / "platform.yaml").write_text(text)
    print(fleet_of(nodes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
