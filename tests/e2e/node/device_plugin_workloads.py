"""Workloads that ask a device plugin for GPUs, how the plugin serves them, and what `dra-infra migrate` makes of their files."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from dra_infra.catalog import load_fleet
from dra_infra.migration.device_plugin import is_device
from tests.e2e.node.device_plugin_standin import replicas
from tests.support.migration.device_plugin_cases import case
from tests.support.warm_commands import warm
from tools.cluster import Manifest

FILE: Final = Path(__file__).with_suffix(".yaml")

ENDING_IMAGES: Final = frozenset(
    f"registry.example.com/{each}:1" for each in ("check", "train", "warm", "work")
)
"""Images of containers whose work is done at once: of Jobs and init containers. Others wait until they are told to end."""

NODE_LABELS: Final = {"zone": "a"}
"""Labels that rows of the table select, beside those of GPU feature discovery."""

_CPU: Final = "200m"
"""What containers of rows ask for that ask for more than the machine of a test has. With less a shell takes seconds to start."""

_REPLICAS: Final = 4


@dataclass(frozen=True, kw_only=True)
class Served:
    """How GPUs of a node are served, before and after.

    Args:
        fleet: The node's devices, to the node plugin.
        config: The device plugin's configuration.
        profiles: By resource name: which of the devices it serves, as their MIG profile; empty for whole GPUs.
        shared: How many replicas the plugin makes of each.
        options: What `migrate` is told beside the configuration.
        rows: Those of the table that run under it.
    """

    fleet: str
    config: Mapping[str, Any]
    profiles: Mapping[str, str]
    shared: int = 0
    options: tuple[str, ...] = ()
    rows: tuple[str, ...] = ()

    @functools.cached_property
    def resources(self) -> Mapping[str, Sequence[str]]:
        """IDs of the devices that the plugin serves, by the resource's name: the UUIDs of the driver's."""
        found: dict[str, Sequence[str]] = {}
        for resource, profile in self.profiles.items():
            uuids = [
                str(_attribute(device, "uuid"))
                for each in load_fleet(self.fleet).to_manifests()
                if each["kind"] == "ResourceSlice"
                for device in each["spec"]["devices"]
                if (_attribute(device, "profile") or "") == profile
            ]
            found[resource] = replicas(uuids, self.shared) if self.shared else uuids
        return found

    @property
    def room(self) -> int:
        """How many devices there are for batches of workloads; of MIG profiles, as of replicas, there are enough."""
        return sum(map(len, self.resources.values()))


SERVED: Final[Mapping[str, Served]] = {
    "whole": Served(
        fleet="hgx-h100",
        config={"version": "v1"},
        profiles={"nvidia.com/gpu": ""},
        rows=(
            *(
                "whole-gpu",
                "eight-gpus",
                "limit-zero",
                "two-containers",
                "init-container",
                "init-container-with-more",
                "init-container-with-less",
            ),
            *("sidecar", "product-label", "memory-label", "family-terms", "count-label", "runtime-class"),
        ),
    ),
    "mixed": Served(
        fleet="hgx-h100 mig=1g.10gb+me*1+1g.10gb*2+2g.20gb*2",
        config={"version": "v1", "flags": {"migStrategy": "mixed"}},
        profiles={
            "nvidia.com/mig-1g.10gb": "1g.10gb",
            "nvidia.com/mig-1g.10gb.me": "1g.10gb+me",
            "nvidia.com/mig-2g.20gb": "2g.20gb",
        },
        rows=("mig-mixed", "mig-media", "mig-two-profiles"),
    ),
    "single": Served(
        fleet="hgx-h100 mig=1g.10gb*7",
        config={"version": "v1", "flags": {"migStrategy": "single"}},
        profiles={"nvidia.com/gpu": "1g.10gb"},
        options=("--mig-profile", "1g.10gb"),
        rows=("mig-single-named",),
    ),
    "sliced": Served(
        fleet=f"hgx-h100 driver=0.5 shares={_REPLICAS}",
        config=case("time-slicing").plugin or {},
        profiles={"nvidia.com/gpu": ""},
        shared=_REPLICAS,
        options=("--kubernetes", "1.37", "--driver", "0.5"),
        rows=("time-slicing",),
    ),
    "renamed": Served(
        fleet=f"hgx-h100 driver=0.5 shares={_REPLICAS}",
        config=case("time-slicing-renamed").plugin or {},
        profiles={"nvidia.com/gpu.shared": ""},
        shared=_REPLICAS,
        options=("--kubernetes", "1.37", "--driver", "0.5"),
        rows=("time-slicing-renamed",),
    ),
}
"""The ways in which a plugin serves GPUs, by a name of their own."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Something that a user applies.

    Args:
        id: Its name, also of its namespace.
        manifests: The text of its file.
        served: How the plugin serves its GPUs.
        runs: How many of its pods run, where a quota refuses the others.
    """

    id: str
    manifests: str = field(repr=False)
    served: str
    runs: int | None = None

    @functools.cached_property
    def objects(self) -> Sequence[Manifest]:
        """What its file says."""
        return read(self.manifests)

    @functools.cached_property
    def expected(self) -> list[tuple[tuple[str, int], ...]]:
        """For each of its pods, its containers with the number of devices that each sees: what its limits say."""
        [(number, spec)] = [found for each in self.objects for found in _pods_of(each)]
        sees = sorted((each["name"], _limit_of(each)) for each in containers_of(spec))
        return [tuple(sees)] * (number if self.runs is None else self.runs)

    @functools.cached_property
    def devices(self) -> int:
        """Devices that it takes of the node: of a pod those of its containers, or of an init container that asks for more."""
        [(_, spec)] = [found for each in self.objects for found in _pods_of(each)]
        sidecars = most = 0
        for each in spec.get("initContainers", ()):
            if each.get("restartPolicy") == "Always":
                sidecars += _limit_of(each)
            else:
                most = max(most, sidecars + _limit_of(each))
        together = sidecars + sum(map(_limit_of, spec["containers"]))
        return len(self.expected) * max(most, together)


def workloads(served: str) -> list[Workload]:
    """Those for a way of serving: rows of the table, and the file's."""
    rows = [
        Workload(id=each, served=served, manifests=_with_small_requests(case(each).input))
        for each in SERVED[served].rows
    ]
    return rows + [Workload(**each) for each in yaml.safe_load(FILE.read_text()) if each["served"] == served]


def migrated(served: str, folder: Path) -> Mapping[str, Sequence[Manifest]]:
    """The objects of each workload after `dra-infra migrate` on its file.

    Args:
        served: Which of them.
        folder: An empty one.
    """
    before = folder / "before"
    after = folder / "after"
    config = folder / "plugin.yaml"
    before.mkdir()
    for each in workloads(served):
        (before / f"{each.id}.yaml").write_text(each.manifests)
    config.write_text(yaml.safe_dump(dict(SERVED[served].config)))
    options = ["--plugin-config", str(config), *SERVED[served].options, "--output", str(after)]
    done = subprocess.run(
        [warm().command, "migrate", "before", *options],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    # It writes the files that it changed, and every one of these is to change.
    found = {each.stem: read(each.read_text()) for each in after.rglob("*.yaml")}
    assert found.keys() == {each.id for each in workloads(served)}
    return found


def read(text: str) -> list[Manifest]:
    """The objects of a file, those of a List one by one."""
    return [
        one
        for each in yaml.safe_load_all(text)
        if each
        for one in (each["items"] if each["kind"] == "List" else [each])
    ]


def batches(of: Sequence[Workload], devices: int) -> Iterator[list[Workload]]:
    """The workloads in groups that take no more than so many devices at once; one that takes more is alone."""
    left = sorted(of, key=lambda each: -each.devices)
    while left:
        group: list[Workload] = []
        for each in list(left):
            if not group or sum(one.devices for one in group) + each.devices <= devices:
                group.append(each)
                left.remove(each)
        yield group


def containers_of(spec: Mapping[str, Any]) -> list[Manifest]:
    """All containers of a pod, those that start it included."""
    return [*spec.get("initContainers", ()), *spec["containers"]]


def images() -> set[str]:
    """Names of the images that the workloads have."""
    return {
        container["image"]
        for served in SERVED
        for workload in workloads(served)
        for each in workload.objects
        for _, spec in _pods_of(each)
        for container in containers_of(spec)
    }


def _pods_of(manifest: Manifest) -> Iterator[tuple[int, Manifest]]:
    """The number and the spec of the pods that an object makes."""
    spec = manifest.get("spec", {})
    if manifest["kind"] == "Pod":
        yield 1, spec
    elif manifest["kind"] == "CronJob":
        yield from _pods_of({"kind": "Job", **spec["jobTemplate"]})
    elif "template" in spec:
        yield spec.get("replicas", spec.get("completions", 1)), spec["template"]["spec"]


def _limit_of(container: Mapping[str, Any]) -> int:
    limits = container.get("resources", {}).get("limits", {})
    return sum(int(number) for name, number in limits.items() if is_device(name))


def _attribute(device: Mapping[str, Any], name: str) -> object:
    return device["attributes"].get(name, {}).get("string")


def _with_small_requests(objects: Sequence[Mapping[str, Any]]) -> str:
    """The text of a row, with no more CPU than the machine of a test has."""
    text = yaml.safe_dump_all(objects, sort_keys=False)
    made = list(yaml.safe_load_all(text))
    for _, spec in (found for each in made for found in _pods_of(each)):
        for container in containers_of(spec):
            for part in container.get("resources", {}).values():
                if "cpu" in part:
                    part["cpu"] = _CPU
    return yaml.safe_dump_all(made, sort_keys=False)
