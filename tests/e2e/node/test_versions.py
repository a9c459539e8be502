"""An upgrade and a downgrade of the plugin while pods have claims, between versions that were built."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.node.invariants import DRIVER, look, settled
from tests.support.node.plugin_process import ROOT, PluginProcess
from tests.support.node.workloads import CLAIM, Workloads, request
from tools.cluster import Api
from tools.node import RealNode

pytestmark = pytest.mark.e2e

FLEET = "hgx-h100"
OLD = "e5c2c9af"
"""A commit whose plugin has one file per claim, of the format that is read today, and knows no `<uid>.started`."""

BUILT = ("pyproject.toml", "README.md", "LICENSE", "dra_infra")
PROGRAM = (sys.executable, "-P", "-m", "dra_infra.plugin.command.main")
FORMAT, NEXT_FORMAT = "FORMAT: Final = 1\n", "FORMAT: Final = 2\n"


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=True, timeout=60).stdout


def wheel_in(sources: Path, folder: Path) -> Path:
    """A folder with what a wheel of *sources* installs."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=sources, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    installed = folder / "installed"
    zipfile.ZipFile(wheel).extractall(installed)
    return installed


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """An older version, this one, and one of which the records have a format that this one does not know."""
    folder = tmp_path_factory.mktemp("versions")
    if git("rev-parse", "--is-shallow-repository").strip() == b"true":
        pytest.skip(f"the clone is shallow, without the commit {OLD} of which the older version is built")
    archive = git("archive", OLD, *BUILT)
    (sources := folder / "sources").mkdir()
    subprocess.run(["tar", "--extract"], cwd=sources, input=archive, check=True, timeout=60)
    found = {"old": wheel_in(sources, folder / "old")}
    found |= {name: wheel_in(ROOT, folder / name) for name in ("this", "next")}
    module = found["next"] / "dra_infra" / "plugin" / "record_format.py"
    text = module.read_text()
    assert text.count(FORMAT) == 1
    module.write_text(text.replace(FORMAT, NEXT_FORMAT))
    return found


class Updates:
    """The plugin of a node in one version after the other, each the pod of a rolling update."""

    def __init__(self, node: RealNode, folder: Path, versions: Mapping[str, Path]) -> None:
        self._node = node
        self._folder = folder
        self._versions = versions
        self._started: list[PluginProcess] = []

    def to(self, version: str) -> PluginProcess:
        """Start a version beside the one that runs, and end that one when the kubelet has taken the new one."""
        number = len(self._started)
        plugin = PluginProcess(
            self._node,
            self._folder / f"{number}-{version}.log",
            fleet=FLEET,
            options=("--pod-uid", f"{number:08x}-0000-4000-8000-000000000000"),
            program=PROGRAM,
        )
        before = [each for each in self._started if each.is_running]
        self._started.append(plugin)
        plugin.start({"PYTHONPATH": str(self._versions[version])}, publishes=not before)
        opened = Path(f"/proc/{plugin.pid}/environ").read_bytes()
        assert str(self._versions[version]).encode() in opened
        for each in before:
            each.stop()
        return plugin

    def close(self) -> None:
        """End what runs."""
        for each in self._started:
            each.close()


@pytest.fixture
def updates(
    versions: Mapping[str, Path], device_classes: None, real_node: RealNode, tmp_path: Path
) -> Iterator[Updates]:
    with ExitStack() as closing:
        made = Updates(real_node, tmp_path, versions)
        closing.callback(made.close)
        yield made


def run_pod(workloads: Workloads, name: str, count: int = 1) -> str:
    """A pod that runs with a claim of its own; the UID of the claim."""
    workloads.claim(name, request(count))
    workloads.pod_with_claim(name, name)
    workloads.wait_running(name)
    return str(workloads.api.get(CLAIM, name, namespace=workloads.namespace)["metadata"]["uid"])


def has(workloads: Workloads, *names: str) -> list[tuple[str, list[str]]]:
    """Containers of pods that run, and devices that they were given."""
    pods = [workloads.wait_running(name) for name in names]
    return [
        (pod["status"]["containerStatuses"][0]["containerID"], workloads.devices(name))
        for name, pod in zip(names, pods, strict=True)
    ]


def specs(node: RealNode) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in node.cdi_folder.glob(f"k8s.{DRIVER}-claim_*.json")}


def test_claims_outlive_an_upgrade_and_a_downgrade_and_either_version_releases_them(
    updates: Updates, workloads: Workloads, node_api: Api, real_node: RealNode
):
    updates.to("old")
    first, second = run_pod(workloads, "first"), run_pod(workloads, "second")
    before = has(workloads, "first", "second")
    written = specs(real_node)

    updates.to("this")
    assert has(workloads, "first", "second") == before
    assert specs(real_node) == written
    assert settled(node_api, real_node) == {first, second}
    third = run_pod(workloads, "third")
    # What the older version prepared, this one releases.
    workloads.delete("first")
    assert settled(node_api, real_node) == {second, third}
    kept = has(workloads, "second", "third")
    written = specs(real_node)

    updates.to("old")
    assert has(workloads, "second", "third") == kept
    assert specs(real_node) == written
    # And the other way round; it does not know the first file of a claim, and leaves it.
    workloads.delete("third")
    fourth = run_pod(workloads, "fourth")
    assert look(node_api, real_node).recorded == {second, fourth}

    updates.to("this")
    assert settled(node_api, real_node) == {second, fourth}
    assert has(workloads, "second") == kept[:1]
    # Nothing is kept back for claims that are gone.
    rest = run_pod(workloads, "rest", 6)
    assert settled(node_api, real_node) == {second, fourth, rest}
    workloads.remove_all()
    assert settled(node_api, real_node) == frozenset()


def test_a_version_that_does_not_know_the_format_of_a_record_says_so_and_leaves_the_claim_as_it_is(
    updates: Updates, workloads: Workloads, node_api: Api, real_node: RealNode
):
    updates.to("next")
    uid = run_pod(workloads, "pod")
    before = has(workloads, "pod")
    written = specs(real_node)

    this = updates.to("this")
    assert "checkpoint-newer" in this.log_of_this_life
    assert "it has format 2, and this release reads up to 1" in this.log_of_this_life
    # From the spec and the API server it has a record that it can read, with the same ids.
    assert settled(node_api, real_node) == {uid}
    assert has(workloads, "pod") == before
    assert specs(real_node) == written
    others = run_pod(workloads, "others", 7)

    updates.to("next")
    assert settled(node_api, real_node) == {uid, others}
    assert has(workloads, "pod") == before
    assert specs(real_node).items() >= written.items()
    workloads.remove_all()
    assert settled(node_api, real_node) == frozenset()
