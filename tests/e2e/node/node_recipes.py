"""The examples on a real node: with which devices each runs there, and what its containers see; or why it does not run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.e2e.node.containers import Container

NVIDIA: Final = "gpu.nvidia.com"
EXAMPLE: Final = "gpu.example.com"
NIC: Final = "dra.net"

NOT_ON_ONE_NODE: Final[Mapping[str, str]] = {
    "14-nvl72-training": "its claims are for 18 nodes of one rack, and it needs the controller and the daemons of compute domains",
    "22-node-pool-from-zero": "its pods are those of 06-four-h100; what it shows is a node pool that has no node",
    "19-team-platform": "its pods take all GPUs of four nodes, and the controllers of JobSet and LeaderWorkerSet make them",
}
"""Examples that are not run on a node here, with the reason."""

_DEVICE: Final = re.compile("[A-Z]+_DEVICE_([0-9A-Z_]+)")
_NO_NAME: Final = re.compile("[^0-9A-Za-z]")

Look = Callable[[Sequence[Container]], None]


@dataclass(frozen=True, kw_only=True)
class NodeRecipe:
    """An example on a node.

    Args:
        example: Folder below `examples/`.
        fleet: The devices of the node; a file is one of the example's folder.
        pods: How many pods of each owner run.
        look: What is to be seen in its containers, beside that each sees the devices that it was allocated.
        drivers: Whose plugins run on the node.
        jobs: Owners whose pods end when they are told to, as their work is done then.
        charts: Name and version of the charts that it installs; stand-ins take their place, and our plugin that of the
            chart's driver.
        edits: Changes of its program, as (old, new); the new text may name `kubelet_root` and `cdi_folder` of the node.
        brings_plugin: Whether the example itself installs the plugin, from its image.
    """

    example: str
    fleet: str
    pods: Mapping[str, int]
    look: Look
    drivers: tuple[str, ...] = (NVIDIA,)
    jobs: frozenset[str] = frozenset()
    charts: tuple[tuple[str, str], ...] = ()
    edits: tuple[tuple[str, str], ...] = ()
    brings_plugin: bool = False

    def __str__(self) -> str:
        return self.example


def devices_in(env: Mapping[str, str]) -> frozenset[str]:
    """The devices that a container's variables name, such as GPU_DEVICE_0=gpu-0."""
    return frozenset(
        text
        for name, text in env.items()
        if (found := _DEVICE.fullmatch(name)) and _NO_NAME.sub("_", text).upper().endswith(found[1])
    )


def seen_by(containers: Iterable[Container], **which: str) -> list[frozenset[str]]:
    """The devices in each container whose owner or name is as *which* says."""
    return [
        devices_in(each.env)
        for each in containers
        if all(getattr(each, name) == wanted for name, wanted in which.items())
    ]


def _number(number: int) -> Look:
    """Every container has *number* devices, and no two share one."""
    return lambda containers: _each_its_own(containers, number=number)


def _each_its_own(containers: Sequence[Container], *, number: int = 1) -> None:
    sets = seen_by(containers)
    assert {len(each) for each in sets} == {number}
    assert len(frozenset().union(*sets)) == number * len(sets)


def _two_teams(containers: Sequence[Container]) -> None:
    """The GPUs of the node, four and twice two of them."""
    sets = seen_by(containers)
    assert sorted(map(len, sets)) == [2, 2, 4]
    assert len(frozenset().union(*sets)) == 8


def _one_for_all(containers: Sequence[Container]) -> None:
    """All containers have the same device, and one."""
    assert len(containers) > 1
    (devices,) = set(seen_by(containers))
    assert len(devices) == 1


def _quickstart(containers: Sequence[Container]) -> None:
    assert [len(each) for each in seen_by(containers, owner="inference")] == [1, 1]
    assert [len(each) for each in seen_by(containers, owner="train")] == [4]
    assert len(frozenset().union(*seen_by(containers))) == 6


def _two_requests(containers: Sequence[Container]) -> None:
    _each_its_own(containers)
    assert {each.name for each in containers} == {"prefill", "decode"}
    # One claim, of which each container has a part.
    assert len(frozenset().union(*(each.claims for each in containers))) == 1


def _two_pods(containers: Sequence[Container]) -> None:
    _one_for_all(containers)
    assert {each.pod for each in containers} == {"writer", "reader"}


def _slices(containers: Sequence[Container]) -> None:
    _each_its_own(containers)
    assert {_setting(each, "PROFILE") for each in containers} == {"1g.10gb"}
    # Side by side on one GPU.
    assert len({_setting(each, "PARENT_UUID") for each in containers}) == 1
    assert len({_setting(each, "UUID") for each in containers}) == len(containers)


def _time_slices(containers: Sequence[Container]) -> None:
    _one_for_all(containers)
    assert {_setting(each, "TIMESLICE_INTERVAL") for each in containers} == {"Short"}


def _mps(containers: Sequence[Container]) -> None:
    _one_for_all(containers)
    for each in containers:
        assert _setting(each, "SHARING_STRATEGY") == "MPS"
        assert _setting(each, "ACTIVE_THREAD_PERCENTAGE") == "25"
        assert _setting(each, "PINNED_DEVICE_MEMORY_LIMIT") == f"{18 * 1024}M"
        assert each.env["CUDA_MPS_PIPE_DIRECTORY"]


def _over_nvlink(containers: Sequence[Container]) -> None:
    _each_its_own(containers, number=4)
    (server,) = containers
    # Of one board, on which all GPUs are joined: what the catalogue says of hgx-h100.
    assert len({text for name, text in server.env.items() if name.endswith("_UUID")}) == 4
    assert server.env["NVIDIA_VISIBLE_DEVICES"] == "void"


def _gpu_and_card(containers: Sequence[Container]) -> None:
    (server,) = containers
    assert {driver: len(devices) for driver, devices in server.allocated.items()} == {NVIDIA: 1, NIC: 1}


def _example_driver(containers: Sequence[Container]) -> None:
    _each_its_own([each for each in containers if each.owner == "one-each"])
    _one_for_all([each for each in containers if each.owner == "one-for-two"])
    _one_for_all([each for each in containers if each.owner == "two-pods"])
    ways = {each.name: each for each in containers if each.owner == "two-ways"}
    for first, second, strategy in (
        ("turn-a", "turn-b", "TimeSlicing"),
        ("part-a", "part-b", "SpacePartitioning"),
    ):
        _one_for_all([ways[first], ways[second]])
        assert {_setting(ways[each], "SHARING_STRATEGY") for each in (first, second)} == {strategy}
    _each_its_own([ways["turn-a"], ways["part-a"]])
    assert _setting(ways["turn-a"], "TIMESLICE_INTERVAL") == "Long"
    assert _setting(ways["part-a"], "PARTITION_COUNT") == "10"


def _setting(container: Container, name: str) -> str:
    """What a variable says of the one device of a container, such as GPU_DEVICE_0_SHARING_STRATEGY."""
    (found,) = [
        text
        for each, text in container.env.items()
        if re.fullmatch(rf"GPU_DEVICE_([0-9]+|[0-9]+_MIG_[0-9A-Z_]*[0-9])_{name}", each)
    ]
    return found


RUNS: Final = (
    NodeRecipe(
        example="00-quickstart",
        fleet="hgx-h100",
        pods={"inference": 2, "train": 1},
        look=_quickstart,
        jobs=frozenset({"train"}),
    ),
    NodeRecipe(example="01-shared-in-pod", fleet="hgx-h100", pods={"assistant": 1}, look=_one_for_all),
    NodeRecipe(example="02-two-requests", fleet="hgx-h100", pods={"serving": 1}, look=_two_requests),
    NodeRecipe(example="06-four-h100", fleet="hgx-h100", pods={"server": 1}, look=_number(4)),
    NodeRecipe(example="08-class-of-another-program", fleet="hgx-h100", pods={"server": 1}, look=_number(2)),
    NodeRecipe(example="10-four-over-nvlink", fleet="hgx-h100", pods={"server": 1}, look=_over_nvlink),
    NodeRecipe(example="18-node-pools", fleet="hgx-h100", pods={"server": 1, "tuner": 2}, look=_two_teams),
    NodeRecipe(example="12-time-slicing", fleet="hgx-h100", pods={"server": 4}, look=_time_slices),
    NodeRecipe(example="13-mps", fleet="hgx-h100", pods={"server": 4}, look=_mps),
    NodeRecipe(example="04-at-least-40gib", fleet="a100-40gb", pods={"embedder": 4}, look=_number(1)),
    NodeRecipe(
        example="05-a100-80gb",
        fleet="a100-80gb",
        pods={"fine-tune": 1},
        look=_number(1),
        jobs=frozenset({"fine-tune"}),
    ),
    # No H100 is there, so both pods take the second rung.
    NodeRecipe(example="07-fallback-ladder", fleet="a100-80gb", pods={"server": 2}, look=_number(2)),
    NodeRecipe(
        example="11-aks-platform",
        fleet="a100-80gb",
        pods={"assistant": 1},
        look=_one_for_all,
        charts=(("gpu-operator", "26.7.0"), ("dra-driver-nvidia-gpu", "0.4.1")),
    ),
    NodeRecipe(example="09-mig-notebook", fleet="a100-80gb mig=1g.10gb*7", pods={"jupyter": 3}, look=_slices),
    NodeRecipe(
        example="15-gpu-with-nic",
        fleet="fleet.yaml",
        drivers=(NVIDIA, NIC),
        pods={"server": 1},
        look=_gpu_and_card,
    ),
    NodeRecipe(
        example="03-claim-for-two-pods",
        fleet="example",
        drivers=(EXAMPLE,),
        pods={"writer": 1, "reader": 1},
        look=_two_pods,
    ),
    NodeRecipe(
        example="16-example-driver",
        fleet="example",
        drivers=(EXAMPLE,),
        pods={"one-each": 2, "one-for-two": 1, "two-pods": 2, "two-ways": 1},
        look=_example_driver,
    ),
    NodeRecipe(
        example="17-node-plugin",
        fleet="hgx-h100",
        pods={"inference": 2},
        look=_number(2),
        edits=(
            ('back_end="sim"', 'back_end="sim", kubelet_root="{kubelet_root}", cdi_folder="{cdi_folder}"'),
            # Its container shows some variables and is slow to end; ours shows all.
            ('    "command": ["sh", "-c", "env | grep GPU_DEVICE; sleep infinity"],\n', ""),
        ),
        brings_plugin=True,
    ),
)
"""In the order of their fleets, so that few plugins are started."""
