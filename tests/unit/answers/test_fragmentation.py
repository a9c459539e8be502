"""`status --fragmentation` on a snapshot: who is in the way of larger claims, by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.answers.fragmenting import read_fragmentation
from dra_infra.catalog import load_fleet
from dra_infra.cli.app import app


def a_claim(name: str, node: str, count: int) -> dict[str, object]:
    results = [
        {"request": "gpu", "driver": "gpu.nvidia.com", "pool": node, "device": f"gpu-{number}"}
        for number in range(count)
    ]
    exactly = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml", "uid": name},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": f"{name}-pod", "uid": f"{name}-pod"}],
        },
    }


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    claims = [a_claim("serve", "hgx-h100-0", 5), a_claim("notebook", "hgx-h100-1", 1)]
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([*load_fleet("hgx-h100 x 2").to_manifests(), *claims]))
    return file


def test_claims_in_the_way_are_named_with_their_pods(snapshot: Path) -> None:
    found = {each.name: each for each in read_fragmentation(snapshot).fragments}["gpu.nvidia.com"]
    assert (found.free, found.largest, found.whole) == (10, 7, 8)
    assert [(each.node, each.holders) for each in found.blocked] == [
        ("hgx-h100-1", ("ResourceClaim ml/notebook (Pod notebook-pod)",)),
        ("hgx-h100-0", ("ResourceClaim ml/serve (Pod serve-pod)",)),
    ]


def test_the_command_prints_text_and_json_of_the_same_numbers(snapshot: Path) -> None:
    arguments = ["status", "--fragmentation", "--snapshot", str(snapshot)]
    text = CliRunner().invoke(app, arguments)
    data = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert text.exit_code == 0
    assert (data["schema"], data["nodes"]) == ("dra-infra.fragmentation/v1", 2)
    whole = next(each for each in data["classes"] if each["name"] == "gpu.nvidia.com")
    assert whole["sizes"] == [
        {"size": 1, "claims": 10},
        {"size": 2, "claims": 4},
        {"size": 4, "claims": 1},
        {"size": 8, "claims": 0},
    ]
    assert "gpu.nvidia.com: 10 devices free, largest claim 7 (8 on an empty node)" in text.stdout
    assert "in the way: hgx-h100-1 has 7 free, and 1 device in use" in text.stdout


@pytest.mark.parametrize(
    "more", [("--by-team",), ("--graph",), ("--watch",), ("--format", "dot"), ("-n", "ml")]
)
def test_options_of_other_views_are_refused(snapshot: Path, more: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["status", "--fragmentation", "--snapshot", str(snapshot), *more])
    assert result.exit_code == 2
    assert "fragmentation is of all namespaces" in result.output
