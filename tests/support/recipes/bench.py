"""One example on an empty control plane: what the engine does, and what the scheduler did."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.fleet import Fleet
from tests.support import charts
from tests.support.recipes.recipe import Recipe
from tools.cluster import Api, ApiError, Manifest, NodeStandIn
from tools.engine_cli import Result, Stack, write_program
from tools.errors import ToolError
from tools.pulumi_home import PulumiHome

CLAIM = "resource.k8s.io/v1/ResourceClaim"
TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
CLASS = "resource.k8s.io/v1/DeviceClass"
SLICE = "resource.k8s.io/v1/ResourceSlice"
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"
LONG = 180.0
RETRY_SECONDS = 0.1
YOUNG = (404, 429, 503)
"""What a server answers for a kind that is established, until its storage is made."""


@dataclass(frozen=True, kw_only=True)
class BoundPod:
    """A pod that the scheduler bound, with the devices of its claims in the order of allocation."""

    name: str
    owner: str
    node: str
    devices: tuple[tuple[str, str, str, str, str], ...]
    """(entry, request, driver, pool, device) of each."""


def copy_example(source: Path, target: Path, home: PulumiHome) -> None:
    """Copy an example into a folder of the test, with the provider to use in its Pulumi.yaml."""
    shutil.copytree(source, target)
    project = yaml.safe_load((target / "Pulumi.yaml").read_text())
    if home.plugins:
        project["plugins"] = home.plugins
    (target / "Pulumi.yaml").write_text(yaml.safe_dump(project))


def edit(project: Path, change: tuple[str, str]) -> None:
    """Change the program of *project*; a text that is not there exactly once is a mistake of the test."""
    text = (project / "__main__.py").read_text()
    old, new = change
    assert old in text, f"{old!r} is not in the program of {project}"
    write_program(project, text.replace(old, new))


def from_here(name: str, version: str, folder: Path) -> tuple[str, str]:
    """The change that installs a chart from this machine."""
    testdata = charts.find_testdata(os.environ)
    if testdata is None:
        pytest.skip(
            f"NOT RUN: {name} {version} is made of the values of the real chart; set {charts.TESTDATA}"
        )
    written = f'"version": "{version}"'
    return written, f'{written}, "chart": "{charts.provide(folder, name, version, testdata).path}"'


def up_with_jobs(
    stack: Stack, api: Api, nodes: NodeStandIn, pods: Mapping[str, int]
) -> tuple[Result, list[BoundPod]]:
    """Run `up`, look at the pods while Jobs still hold their devices, then let the Jobs finish.

    Args:
        stack: The stack.
        api: The cluster.
        nodes: Keeps the pods of Jobs running until told.
        pods: How many pods of each owner must be bound, by name of the owner.
    """
    results: list[Result] = []
    run = threading.Thread(target=lambda: results.append(stack.up()))
    run.start()
    try:
        bound = wait_for_pods(api, pods)
    finally:
        nodes.finish_jobs()
        run.join()
    return results[0], bound


def wait_for_pods(api: Api, wanted: Mapping[str, int]) -> list[BoundPod]:
    """Wait until as many pods of each owner as *wanted* are bound and their claims allocated."""
    seen: list[BoundPod] = []

    def enough(pods: list[Mapping[str, Any]]) -> bool:
        seen[:] = [found for pod in pods if (found := _bound_pod(api, pod))]
        return all(sum(each.owner == owner for each in seen) == number for owner, number in wanted.items())

    api.wait_for("v1/Pod", enough, timeout=LONG)
    return seen


def _bound_pod(api: Api, pod: Mapping[str, Any]) -> BoundPod | None:
    node = pod["spec"].get("nodeName")
    entries = pod["spec"].get("resourceClaims")
    if not node or not entries or "deletionTimestamp" in pod["metadata"]:
        return None
    generated = {
        each["name"]: each.get("resourceClaimName")
        for each in pod.get("status", {}).get("resourceClaimStatuses", [])
    }
    devices = []
    for entry in entries:
        name = entry.get("resourceClaimName") or generated.get(entry["name"])
        claim = api.find(CLAIM, name, namespace=pod["metadata"]["namespace"]) if name else None
        if claim is None or "allocation" not in claim.get("status", {}):
            return None
        devices += [
            (entry["name"], each["request"], each["driver"], each["pool"], each["device"])
            for each in claim["status"]["allocation"]["devices"]["results"]
        ]
    return BoundPod(
        name=pod["metadata"]["name"], owner=_owner_of(api, pod), node=node, devices=tuple(devices)
    )


def _owner_of(api: Api, pod: Mapping[str, Any]) -> str:
    """Name of the object that the user wrote: a pod's last owner, such as the Deployment of its ReplicaSet, or the pod."""
    found: Mapping[str, Any] | None = pod
    namespace = pod["metadata"]["namespace"]
    while found is not None:
        name = str(found["metadata"]["name"])
        owners = found["metadata"].get("ownerReferences", [])
        if not owners:
            break
        name = str(owners[0]["name"])
        found = api.find(f"{owners[0]['apiVersion']}/{owners[0]['kind']}", name, namespace=namespace)
    return name


def devices_of_nodes(fleet: Fleet) -> dict[tuple[str, str], list[str]]:
    """The names of each node's devices by node and driver, in the order of its slices."""
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in fleet.slices:
        names[str(each.spec.node_name), each.spec.driver] += [
            device.name for device in each.spec.devices or []
        ]
    return names


def read_definitions(recipe: Recipe, environment: Mapping[str, str]) -> list[Manifest]:
    """The CustomResourceDefinitions that a recipe needs; where they are not here, its test is skipped and says so."""
    testdata = charts.find_testdata(environment)
    if recipe.crds and testdata is None:
        pytest.skip(
            f"NOT RUN: {recipe} needs {', '.join(recipe.crds)} of the real driver; set {charts.TESTDATA}"
        )
    return [
        yaml.load((testdata / "crds" / path).read_text(), yaml.CSafeLoader)
        for path in recipe.crds
        if testdata
    ]


def define(api: Api, definitions: Iterable[Manifest]) -> None:
    """Have the server serve more kinds; returns when it does."""
    for definition in definitions:
        api.create(definition)
        api.wait_until(DEFINITION, definition["metadata"]["name"], _is_established)
        spec = definition["spec"]
        for version in spec["versions"]:
            _wait_until_served(api, f"{spec['group']}/{version['name']}/{spec['names']['kind']}")


def _wait_until_served(api: Api, kind: str) -> None:
    """Wait out that the storage of an established kind is still being made, which nothing but its answer tells."""
    deadline = time.monotonic() + LONG
    while True:
        try:
            api.list(kind)
        except ToolError as error:
            # Discovery, too, may not know of the kind yet.
            is_young = not isinstance(error, ApiError) or error.status in YOUNG
            if not is_young or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return


def _is_established(definition: Manifest) -> bool:
    # A young definition has null for its conditions.
    conditions = definition.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
