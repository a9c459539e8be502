"""The bridge: manifests that ask for nvidia.com/gpu run unchanged, on nodes of the device plugin and on nodes of the DRA driver."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

import dra_infra as dra
from dra_infra.catalog import load_fleet
from dra_infra.program.synth import synth_function
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet

pytestmark = pytest.mark.e2e

POD, CLAIM = "v1/Pod", "resource.k8s.io/v1/ResourceClaim"
PLUGIN_NODE = "old-0"
GPU = "nvidia.com/gpu"

# As a team wrote it years ago, and nobody wants to touch it.
OLD = f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: serve, namespace: default}}
spec:
  replicas: 17
  selector: {{matchLabels: {{app: serve}}}}
  template:
    metadata: {{labels: {{app: serve}}}}
    spec:
      containers:
        - name: main
          image: registry.invalid/serve:1
          resources: {{limits: {{{GPU}: 1}}}}
"""


def a_class() -> dict[str, Any]:
    """The DeviceClass of the component."""
    program = synth_function(
        lambda: dra.GpuDeviceClass("gpus", extended_resource_name=GPU),
        config={"dra-infra:kubernetes": "1.37"},
    )
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    (made,) = program.objects
    return dict(made.manifest)


def a_plugin_node() -> dict[str, Any]:
    """A node whose device plugin has eight GPUs, and which publishes no slices."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": PLUGIN_NODE, "labels": {"kubernetes.io/hostname": PLUGIN_NODE}},
        "status": {
            "capacity": {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"},
            "allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: "8"},
        },
    }


def the_fleet() -> list[dict[str, Any]]:
    return [*load_fleet("hgx-h100 x 1").to_manifests(), a_plugin_node(), a_class()]


@contextmanager
def a_plane(binaries: Callable[[str], Path], minor: str) -> Iterator[Api]:
    gates = {"DRAExtendedResource": True} if minor == "1.35" else {}
    with (
        ControlPlane(binaries=binaries, emulated_version=minor, feature_gates=gates) as plane,
        NodeStandIn(plane.connection),
        plane.api() as api,
    ):
        create_fleet(api, the_fleet())
        api.wait_until("v1/ServiceAccount", "default", bool, namespace="default")
        yield api


def is_settled(pods: list[dict[str, Any]]) -> bool:
    """Sixteen run, and the last was refused a place."""
    refused = [
        each
        for pod in pods
        for each in pod["status"].get("conditions", [])
        if each["type"] == "PodScheduled" and each["status"] == "False"
    ]
    return sum(pod["status"].get("phase") == "Running" for pod in pods) == 16 and len(refused) == 1


def simulated(folder: Path, minor: str, replicas: int) -> dict[str, Any]:
    """The verdict on the old manifest, with so many replicas."""
    (folder / "old.yaml").write_text(OLD.replace("replicas: 17", f"replicas: {replicas}"))
    (folder / "fleet.yaml").write_text(yaml.safe_dump_all(the_fleet()))
    gates = ["--gate", "DRAExtendedResource=true"] if minor == "1.35" else []
    words = ["simulate", "old.yaml", "--fleet", "fleet.yaml", "--kubernetes", minor, "--json", *gates]
    main = "from dra_infra.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("minor", ["1.35", "1.36", "1.37"])
def test_an_old_manifest_runs_on_both_sides_as_far_as_we_say(
    binaries: Callable[[str], Path], minor: str, tmp_path: Path
) -> None:
    with a_plane(binaries, minor) as api:
        api.create(yaml.safe_load(OLD))
        api.wait_for(POD, is_settled, namespace="default")
        pods = api.list(POD, namespace="default")
        claims = {each["metadata"]["name"]: each for each in api.list(CLAIM, namespace="default")}
        nodes = Counter(each["spec"].get("nodeName", "") for each in pods)
        (driver_node,) = set(nodes) - {PLUGIN_NODE, ""}
        assert nodes == {PLUGIN_NODE: 8, driver_node: 8, "": 1}
        devices = []
        for pod in pods:
            said = pod["status"].get("extendedResourceClaimStatus")
            # The plugin serves its own node; the scheduler made a claim elsewhere, one for each pod.
            assert bool(said) == (pod["spec"].get("nodeName") == driver_node)
            if said:
                results = claims[said["resourceClaimName"]]["status"]["allocation"]["devices"]["results"]
                devices += [each["device"] for each in results]
        assert len(set(devices)) == len(devices) == 8
        assert len(claims) == 8
    answers = {count: simulated(tmp_path, minor, count)["joint"]["verdict"] for count in (16, 17)}
    assert answers == {16: "always", 17: "never"}


def test_containers_that_run_one_after_the_other_share_their_devices(binaries: Callable[[str], Path]) -> None:
    def container(name: str, count: int, **more: Any) -> dict[str, Any]:
        limits = {GPU: str(count)}
        return {"name": name, "image": "registry.invalid/main:1", "resources": {"limits": limits}, **more}

    with a_plane(binaries, "1.37") as api:
        (driver_node,) = (
            each["metadata"]["name"]
            for each in api.list("v1/Node")
            if each["metadata"]["name"] != PLUGIN_NODE
        )
        spec = {
            "nodeSelector": {"kubernetes.io/hostname": driver_node},
            "initContainers": [container("prepare", 3), container("log", 1, restartPolicy="Always")],
            "containers": [container("main", 2)],
        }
        metadata = {"name": "staged", "namespace": "default"}
        api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        pod = api.wait_until(
            POD, "staged", lambda each: each["status"].get("phase") == "Running", namespace="default"
        )
        said = pod["status"]["extendedResourceClaimStatus"]
        claim = api.get(CLAIM, said["resourceClaimName"], namespace="default")
        results = claim["status"]["allocation"]["devices"]["results"]
        # The sidecar has one and main two; the first one, which is over by then, has these three.
        assert len(results) == 3
        by_container = Counter(each["containerName"] for each in said["requestMappings"])
        assert set(by_container) == {"prepare", "log", "main"}
