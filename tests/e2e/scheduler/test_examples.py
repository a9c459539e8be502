"""The pods of every example on the real scheduler, one after the other: each goes where we said, with the devices we named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program
from dra_infra.specs.compute_domains import KIND, channel_template
from tests.e2e.scheduler.answers import release_of
from tests.e2e.scheduler.comparison import compare
from tests.support.recipes.recipe import RECIPES, Recipe
from tests.support.scheduler.scenario import Scenario
from tests.support.scheduler.stage import Stage
from tools.cluster import Manifest

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[3] / "examples"
PLACED = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")
MOST_PINNED = 4
"""Nodes of a fleet to which the first pod is sent one by one."""


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_the_scheduler_places_the_pods_of_an_example_as_we_say(stage: Stage, recipe: Recipe):
    scenario = read_example(recipe)
    report = compare(stage, scenario, release_of("1.37"))
    assert not report.differences, "\n".join(report.differences)
    assert all(report.nodes), report.messages


def read_example(recipe: Recipe) -> Scenario:
    """The pods that an example makes, on the fleet of its recipe."""
    folder = EXAMPLES / recipe.example
    program = synth(folder, stack="dev")
    is_file = recipe.fleet.endswith(".yaml")
    fleet = load_fleet(str(folder / recipe.fleet) if is_file else recipe.fleet)
    written = [_complete(each.manifest) for each in program.objects if each.ref.kind in PLACED]
    templates = [
        _complete(made)
        for each in program.objects
        if each.ref.kind == KIND and (made := channel_template(each.manifest)) is not None
    ]
    own = {each["metadata"]["name"] for each in written if each["kind"] == "DeviceClass"}
    return Scenario(
        name=recipe.example,
        fleet=tuple(
            each
            for each in fleet.to_manifests()
            if each["kind"] != "DeviceClass" or each["metadata"]["name"] not in own
        ),
        objects=(*written, *templates),
        pods=tuple(_pods(program)),
        pinned=len(fleet.nodes) <= MOST_PINNED,
    )


def _pods(program: Program) -> Iterator[Manifest]:
    for each in program.objects:
        for template in find_pod_templates(each.manifest):
            if not template.spec.get("resourceClaims"):
                continue
            assert template.replicas is not None
            part = f"-{template.owner.part}" if template.owner.part else ""
            for number in range(template.replicas):
                yield {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {
                        "name": f"{each.ref.name}{part}-{number}",
                        "namespace": each.ref.namespace or "default",
                        "labels": dict(template.labels),
                    },
                    "spec": dict(template.spec),
                }


def _complete(manifest: Mapping[str, Any]) -> Manifest:
    """With the namespace that a client would fill in."""
    if manifest["kind"] == "DeviceClass":
        return dict(manifest)
    metadata = {"namespace": "default", **manifest["metadata"]}
    return {**manifest, "metadata": metadata}
