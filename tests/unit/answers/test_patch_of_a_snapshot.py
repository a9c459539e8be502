"""The patch of the API server: snapshots name it, answers follow it, and what a user names counts before it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.answers.reading import read_scene
from dra_infra.answers.reviewing import review
from dra_infra.answers.settings import on_server_of
from dra_infra.catalog import load_snapshot
from dra_infra.catalog.snapshot_headers import SERVER, find_server_version
from dra_infra.program_objects import Program
from dra_infra.review.dangers import Danger

HEAD = "# A snapshot of a cluster, by dra-infra 0.1.0. Plain objects.\n"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n0"},
    "status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}},
}
RULE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "service"},
    "spec": {
        "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "n0"},
        "taint": {"key": "example.com/service", "effect": "NoExecute"},
    },
}


def a_pod(name: str, *, extended: bool) -> list[dict[str, Any]]:
    """A pod on n0 with a device of its own, by a claim or by an extended resource."""
    place = {"name": name, "namespace": "ml"}
    spec: dict[str, Any] = {"nodeName": "n0", "containers": [{"name": "c", "image": "i"}]}
    status: dict[str, Any] = {"phase": "Running"}
    if extended:
        status["extendedResourceClaimStatus"] = {"resourceClaimName": name}
    else:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
    device = {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n0", "device": f"gpu-{name}"}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**place, "uid": name},
            "spec": spec,
            "status": status,
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {**place, "ownerReferences": [owner]},
            "spec": {"devices": {"requests": requests}},
            "status": {
                "allocation": {"devices": {"results": [device]}},
                "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
            },
        },
    ]


def a_snapshot(server: str, *objects: dict[str, Any]) -> str:
    line = f"{SERVER.format(server)}\n" if server else ""
    return "---\n".join([HEAD + line, *(yaml.safe_dump(each) for each in (NODE, *objects))])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    (tmp_path / "head").mkdir()
    (tmp_path / "base" / "empty.yaml").write_text("")
    (tmp_path / "head" / "rule.yaml").write_text(yaml.safe_dump(RULE))
    return tmp_path


def danger_of(folder: Path, server: str, kubernetes: str | None) -> Danger:
    file = folder / "cluster.yaml"
    file.write_text(a_snapshot(server, *a_pod("own", extended=False), *a_pod("bridged", extended=True)))
    options = {"kubernetes": kubernetes} if kubernetes else {}
    reviewed = review(folder / "head", base_path=folder / "base", snapshot=file, **options)  # type: ignore[arg-type]
    (danger,) = (each for each in reviewed.review.dangers if each.code == "rule-evicts")
    return danger


@pytest.mark.parametrize(
    ("server", "kubernetes", "is_evicted"),
    [
        ("v1.37.2", None, True),
        ("v1.37.2+k3s1", None, True),
        ("v1.37.1", None, False),
        ("v1.37.1-eks-abc12", "1.37", False),
        ("v1.37.1", "1.37.2", True),
        ("v1.37.2", "v1.37.1", False),
        ("", "1.37.1", False),
        ("", "1.37.2", True),
        ("", "1.37", True),
        ("", None, True),
    ],
)
def test_a_review_names_the_pod_with_an_extended_resource_as_its_patch_evicts_it(
    folder: Path, server: str, kubernetes: str | None, *, is_evicted: bool
):
    danger = danger_of(folder, server, kubernetes)
    if is_evicted:
        assert danger.message == "evicts 2 pods from n0/gpu-bridged and n0/gpu-own: ml/bridged and ml/own"
        assert "by an extended resource" not in danger.hint
    else:
        assert danger.message == "evicts 1 pod from n0/gpu-own: ml/own"
        assert danger.hint.endswith("; ml/bridged stays, by an extended resource")


def test_the_line_of_a_review_names_the_patch_of_the_snapshot(folder: Path):
    file = folder / "cluster.yaml"
    file.write_text(a_snapshot("v1.36.2-gke.1000"))
    reviewed = review(folder / "head", base_path=folder / "base", snapshot=file)
    assert "Kubernetes 1.36.2 (rules of 1.36.4)" in reviewed.review.provenance.describe()


@pytest.mark.parametrize(
    ("server", "kubernetes", "patch"),
    [
        ("v1.36.4", None, "1.36.4"),
        ("v1.36.4", "1.36", "1.36.4"),
        ("v1.36.4", "1.36.5", "1.36.5"),
        ("v1.36.4", "1.37", "1.37.2"),
        ("v1.33.1", None, "1.37.2"),
        ("v1.36", None, "1.37.2"),
        ("", None, "1.37.2"),
    ],
)
def test_a_scene_is_on_the_patch_of_its_snapshot(
    folder: Path, server: str, kubernetes: str | None, patch: str
):
    file = folder / "cluster.yaml"
    file.write_text(a_snapshot(server))
    scene = read_scene(folder / "head", snapshot=file, kubernetes=kubernetes)
    assert scene.release.patch == patch


def test_a_gate_that_the_server_lacks_keeps_the_program_as_it_is():
    program = Program(project="p", stack="dev", gates={"DRADerivedAttributes": True})
    snapshot = load_snapshot([a_snapshot("v1.36.4")])
    assert on_server_of(program, snapshot) == program
    assert on_server_of(program, None) == program


@pytest.mark.parametrize(
    "text",
    [
        "# Kubernetes v1.37.2\n",
        f"{HEAD}kind: Node\n# Kubernetes v1.37.2\n",
        f"{HEAD}# Kubernetes latest\n",
        f"{HEAD}# Kubernetes v1.37.2 and more\n",
        f"{HEAD}# Kubernetes v{'1' * 200}\n",
    ],
)
def test_no_other_line_is_taken_for_the_version_of_the_server(text: str):
    assert find_server_version(text) == ""


def test_of_several_files_the_last_one_that_names_a_server_counts():
    texts = [a_snapshot("v1.36.4"), a_snapshot("v1.37.1"), a_snapshot("")]
    assert load_snapshot(texts).server == "v1.37.1"
