"""Every example through the real engine, API server and scheduler, from the first preview to destroy."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.fleet import Fleet
from dra_infra.program.synth import synth
from dra_infra.program_objects import Program
from tests.e2e.recipes.compute_domains import COMPUTE_DOMAIN, ComputeDomainStandIn, is_made_here
from tests.support.placing import place
from tests.support.recipes import bench
from tests.support.recipes.recipe import RECIPES, Recipe
from tests.support.scheduler.controllers import running_controllers
from tools.cluster import Api, ControlPlane, Manifest, NodeStandIn, create_fleet
from tools.engine_cli import Stack
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[3] / "examples"
OWN_KINDS = (
    bench.CLASS,
    bench.TEMPLATE,
    bench.CLAIM,
    "v1/Pod",
    "apps/v1/Deployment",
    "apps/v1/StatefulSet",
    "batch/v1/Job",
)


def test_every_example_is_a_recipe():
    assert {each.example for each in RECIPES} == {path.parent.name for path in EXAMPLES.glob("*/Pulumi.yaml")}


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_recipe_from_preview_to_destroy(
    recipe: Recipe,
    home: PulumiHome,
    empty_plane: ControlPlane,
    binaries: Callable[[str], Path],
    tmp_path: Path,
):
    fleet = _fleet(recipe)
    definitions = bench.read_definitions(recipe, os.environ)
    project = tmp_path / "project"
    bench.copy_example(EXAMPLES / recipe.example, project, home)
    for name, version in recipe.charts:
        bench.edit(project, bench.from_here(name, version, tmp_path / "charts"))
    with (
        NodeStandIn(empty_plane.connection, finish_jobs=False) as nodes,
        empty_plane.api() as api,
        ExitStack() as more,
    ):
        bench.define(api, definitions)
        if recipe.crds:
            more.enter_context(ComputeDomainStandIn(api))
        if recipe.controllers:
            more.enter_context(running_controllers(empty_plane, api, binaries, tmp_path))
        # Of a platform that the example installs, the charts bring the classes.
        brought = bool(recipe.charts) or recipe.brings_classes
        made = [each for each in fleet.to_manifests() if not (brought and each["kind"] == "DeviceClass")]
        create_fleet(api, made)
        present_before = _names(api)
        state = tmp_path / "state"
        state.mkdir()
        stack = Stack(
            project,
            home=home,
            environment={"KUBECONFIG": str(empty_plane.kubeconfig), "PULUMI_BACKEND_URL": state.as_uri()},
        )
        stack.init()

        program = synth(project, stack="dev")
        preview = stack.preview().check()
        assert {step.urn for step in preview.steps if "pulumi:providers:" not in step.urn} == set(
            program.resources
        )

        _deploy_and_compare(stack, api, nodes, program, recipe)
        providers = [
            each for each in stack.export()["resources"] if each["type"].startswith("pulumi:providers:")
        ]
        assert [each["type"] for each in providers] == ["pulumi:providers:kubernetes"]

        bench.edit(project, recipe.in_place)
        _preview_shows(stack, {recipe.updated: ("update",)})
        stack.up().check()
        deployments = {
            each["metadata"]["name"]: each["metadata"]["uid"] for each in api.list("apps/v1/Deployment")
        }

        bench.edit(project, recipe.replacing)
        _preview_shows(stack, recipe.operations)
        nodes.finish_jobs()
        result = stack.up().check()
        for name, operations in recipe.operations.items():
            # A component and its child have one name; of the component only the arguments change.
            done = [
                each for each in result.steps if each.name == name and each.type.startswith("kubernetes:")
            ]
            assert {each.operation for each in done} - {"same"} == set(operations)
        # Rolled over in place: a Deployment that was deleted and made again would have another uid.
        assert deployments == {
            each["metadata"]["name"]: each["metadata"]["uid"] for each in api.list("apps/v1/Deployment")
        }
        wanted = {
            each.ref.name
            for each in synth(project, stack="dev").objects
            if each.ref.kind == "ResourceClaimTemplate"
        }
        made = {each["metadata"]["name"] for each in api.list(bench.TEMPLATE) if not is_made_here(each)}
        assert made == wanted

        stack.refresh("--expect-no-changes").check()
        stack.preview("--expect-no-changes").check()

        stack.destroy().check()
        assert not recipe.crds or api.list(COMPUTE_DOMAIN) == []
        assert [each["type"] for each in stack.export().get("resources", [])] == []
        for kind in present_before:
            # What controllers take away goes behind the answer.
            api.wait_for(kind, lambda found, names=present_before[kind]: _names_of(found) == names)


def _fleet(recipe: Recipe) -> Fleet:
    is_file = recipe.fleet.endswith(".yaml")
    fleet = load_fleet(str(EXAMPLES / recipe.example / recipe.fleet) if is_file else recipe.fleet)
    # No autoscaler runs here, so the nodes that one would add are there from the start.
    return fleet.at_limits


def _deploy_and_compare(stack: Stack, api: Api, nodes: NodeStandIn, program: Program, recipe: Recipe) -> None:
    """`up`, and the scheduler's answer beside ours: the node is a candidate, and the devices are those we named."""
    fleet = _fleet(recipe)
    placement = place([each.manifest for each in program.objects], fleet)
    assert placement.workloads
    assert {each.verdict for each in placement.workloads} == {"fits"}
    # Parts of one object have one name here, and in these examples one claim.
    candidates = {
        each.owner.name: {node.node: node.devices for node in each.nodes} for each in placement.workloads
    }
    wanted: Counter[str] = Counter()
    for each in placement.workloads:
        wanted[each.owner.name] += each.replicas
    result, pods = bench.up_with_jobs(stack, api, nodes, wanted)
    result.check()
    names = bench.devices_of_nodes(fleet)
    by_node: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in pods:
        assert pod.node in candidates[pod.owner], f"{pod} is not on one of {sorted(candidates[pod.owner])}"
        for _, _, driver, _, device in pod.devices:
            by_node[pod.node, driver].add(device)
    if len(pods) == 1 or recipe.shared:
        for pod in pods:
            named = [
                (each.entry, each.request, each.driver, each.pool, each.device)
                for each in candidates[pod.owner][pod.node]
            ]
            assert list(pod.devices) == named
    # Where several pods share a node, which came first is the scheduler's choice; first fit fills it in order.
    for where, devices in by_node.items():
        assert not recipe.in_order or devices == set(names[where][: len(devices)])


def _preview_shows(stack: Stack, operations: dict[str, tuple[str, ...]]) -> None:
    preview = stack.preview(json=True).check()
    shown: dict[str, list[str]] = defaultdict(list)
    for step in preview.digest["steps"]:
        shown[step["urn"].rpartition("::")[2]].append(step["op"])
    for name, wanted in operations.items():
        # The digest says "replace" for the three steps of a replacement.
        assert ("replace" if "replace" in wanted else "update") in shown[name], (name, dict(shown))


def _names(api: Api) -> dict[str, set[str]]:
    return {kind: _names_of(api.list(kind)) for kind in OWN_KINDS}


def _names_of(objects: Iterable[Manifest]) -> set[str]:
    return {each["metadata"]["name"] for each in objects}
