"""The API server takes the objects of KueueQueue, with Kueue's own definitions, and what Kueue's API refuses is refused before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from tools import workload_crds
from tools.cluster import Api
from tools.cluster.api_server import api_server

pytestmark = pytest.mark.e2e

CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"


def is_established(definition: dict[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


@pytest.fixture(scope="module")
def api(binaries: Callable[[str], Path]) -> Iterator[Api]:
    """A server with Kueue's definitions, and nobody who acts on them."""
    [kueue] = [each for each in workload_crds.load() if each.path == "sigs.k8s.io/kueue"]
    with api_server("1.37", binaries=binaries) as plane, plane.api() as api:
        for each in kueue.definitions():
            api.create(each)
            api.wait_until(CRD, each["metadata"]["name"], is_established)
        for name in ("vision", "speech"):
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield api


def queue() -> None:
    """Every argument at once."""
    dra.KueueQueue(
        "gpus",
        quota={"h100": 64, "mig.nvidia.com": 56},
        resources={"cpu": "960", "memory": "8Ti", "example.com/licence": 4},
        namespaces=["vision", "speech"],
        node_labels={"example.com/pool": "training"},
        cohort="all",
        strategy="StrictFIFO",
        labels={"team": "platform"},
        annotations={"example.com/owner": "platform"},
    )


def test_every_object_is_taken_and_nothing_of_it_is_dropped(api: Api) -> None:
    program = synth_function(queue, config={"dra-infra:kubernetes": "1.37"})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    kinds = []
    for each in program.objects:
        kinds.append(each.manifest["kind"])
        made = api.create(each.manifest)
        for key, value in each.manifest["spec"].items():
            if key != "resourceGroups":
                assert made["spec"][key] == value
        for given, stored in zip(
            each.manifest["spec"].get("resourceGroups", ()),
            made["spec"].get("resourceGroups", ()),
            strict=True,
        ):
            assert stored["coveredResources"] == given["coveredResources"]
            amounts = [
                {item["name"]: str(item["nominalQuota"]) for item in side["flavors"][0]["resources"]}
                for side in (given, stored)
            ]
            assert amounts[0] == amounts[1]
    assert sorted(kinds) == ["ClusterQueue", "LocalQueue", "LocalQueue", "ResourceFlavor"]
