"""The examples on a real node: `pulumi up`, pods that run with the devices of their claims, `pulumi destroy`, and nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dra_infra.catalog import load_fleet
from tests.e2e.node import example_images
from tests.e2e.node.containers import Container, wait_for_containers
from tests.e2e.node.node_recipes import NOT_ON_ONE_NODE, RUNS, NodeRecipe, devices_in
from tests.support.node.invariants import settled
from tests.support.node.plugin_process import PluginProcess
from tests.support.recipes import bench
from tools.cluster import Api, ControlPlane
from tools.engine_cli import Result, Stack
from tools.image import plugin_image
from tools.node import RealNode
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parents[3] / "examples"
SECONDS = 300.0
"""Longest time for a command of the engine: one that waits for pods which never run ends then."""


def test_every_example_runs_here_or_it_is_said_why_not():
    examples = {path.parent.name for path in EXAMPLES.glob("*/Pulumi.yaml")}
    runs = [each.example for each in RUNS]
    assert sorted([*runs, *NOT_ON_ONE_NODE]) == sorted(examples)


class Plugins:
    """The plugins of the node, which are started anew where other devices are wanted.

    Args:
        node: The node.
        api: Its cluster.
        folder: For the logs.
    """

    def __init__(self, node: RealNode, api: Api, folder: Path) -> None:
        self._node = node
        self._api = api
        self._folder = folder
        self._running: dict[str, PluginProcess] = {}
        self._fleet = ""

    def use(self, fleet: str, drivers: tuple[str, ...]) -> None:
        """Have the node offer what *drivers* publish of a fleet, and nothing else."""
        if (fleet, drivers) == (self._fleet, tuple(self._running)):
            return
        self.stop()
        for each in self._api.list(bench.SLICE):
            if each["spec"]["driver"] not in drivers:
                # The kubelet deletes those of a driver that has left, 30 s after it did.
                self._api.delete(bench.SLICE, each["metadata"]["name"], missing_ok=True)
        self._fleet = fleet
        for driver in drivers:
            log = self._folder / f"{driver}.log"
            plugin = PluginProcess(self._node, log, fleet=fleet, options=("--driver", driver))
            self._running[driver] = plugin
            plugin.start()

    def stop(self) -> None:
        """End them."""
        while self._running:
            self._running.popitem()[1].stop()


@pytest.fixture(scope="module")
def node_with_images(real_node: RealNode, tmp_path_factory: pytest.TempPathFactory) -> RealNode:
    """The node, with an image of each name that an example uses."""
    names = {name for path in EXAMPLES.glob("*/__main__.py") for name in example_images.names_in(path)}
    archive = tmp_path_factory.mktemp("images") / "examples.tar"
    example_images.write(archive, sorted(names))
    real_node.import_images(archive)
    return real_node


@pytest.fixture(scope="module")
def plugins(
    node_with_images: RealNode, node_api: Api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Plugins]:
    made = Plugins(node_with_images, node_api, tmp_path_factory.mktemp("plugins"))
    yield made
    made.stop()


@pytest.mark.parametrize("recipe", RUNS, ids=str)
def test_an_example_runs_and_goes(
    recipe: NodeRecipe,
    home: PulumiHome,
    node_plane: ControlPlane,
    node_api: Api,
    node_with_images: RealNode,
    plugins: Plugins,
    tmp_path: Path,
):
    is_file = recipe.fleet.endswith(".yaml")
    name = str(EXAMPLES / recipe.example / recipe.fleet) if is_file else recipe.fleet
    classes = [each for each in load_fleet(name).to_manifests() if each["kind"] == "DeviceClass"]
    if recipe.charts or recipe.brings_plugin:
        # Which bring the classes.
        classes = []
    if recipe.brings_plugin:
        plugins.use("", ())
        node_with_images.import_images(plugin_image.build().archive)
    else:
        plugins.use(name, recipe.drivers)
    project = tmp_path / "project"
    state = tmp_path / "state"
    bench.copy_example(EXAMPLES / recipe.example, project, home)
    for chart, version in recipe.charts:
        bench.edit(project, bench.from_here(chart, version, tmp_path / "charts"))
    for old, new in recipe.edits:
        places = {"kubelet_root": node_with_images.kubelet_root, "cdi_folder": node_with_images.cdi_folder}
        bench.edit(project, (old, new.format(**places)))
    state.mkdir()
    stack = Stack(
        project,
        home=home,
        environment={"KUBECONFIG": str(node_plane.kubeconfig), "PULUMI_BACKEND_URL": state.as_uri()},
        seconds=SECONDS,
    )
    stack.init()
    for each in classes:
        node_api.create(each)
    try:
        result = up(stack, node_api, node_with_images, recipe)
    finally:
        destroyed = stack.destroy()
        for each in classes:
            node_api.delete(bench.CLASS, each["metadata"]["name"])
    result.check()
    destroyed.check()
    for kind in (bench.CLAIM, "v1/Pod"):
        node_api.wait_for(kind, lambda found: not found)
    for driver in recipe.drivers:
        assert settled(node_api, node_with_images, driver=driver) == frozenset()


def up(stack: Stack, api: Api, node: RealNode, recipe: NodeRecipe) -> Result:
    """`up`, with a look into the containers while all of them run; then the Jobs, for which `up` waits, are done."""
    containers: list[Container] = []
    with ThreadPoolExecutor() as pool:
        result = pool.submit(stack.up)
        try:
            containers = wait_for_containers(api, recipe.pods)
            for each in containers:
                assert devices_in(each.env) == frozenset().union(*each.allocated.values()), each
            recipe.look(containers)
            claims = frozenset().union(*(each.claims for each in containers))
            for driver in recipe.drivers:
                assert settled(api, node, driver=driver) == claims
        finally:
            for each in containers:
                if each.owner in recipe.jobs:
                    example_images.end(node, each.id)
        return result.result()
