"""What is left: counted by the allocator, and the same as filling the fleet with real workloads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.scheduler import Taken
from dra_infra.placement.cluster import Cluster, newest_release
from dra_infra.placement.cluster_state import Attempts, InUse, SharedPools
from dra_infra.placement.headroom import find_room, probes_of
from dra_infra.target import ClusterTarget
from tests.support.placing import place


def rooms(fleet, taken=None):
    cluster = Cluster(fleet, newest_release())
    attempts = Attempts(cluster)
    in_use = InUse(cluster, SharedPools(cluster), (taken or Taken()).state)
    classes = {class_.metadata.name: class_ for class_ in fleet.classes}
    nodes = range(len(cluster.nodes))
    return {each.name: find_room(attempts, in_use, nodes, each) for each in probes_of(attempts, classes)}


def test_room_of_a_free_fleet_is_all_of_it():
    room = rooms(load_fleet("hgx-h100 x 4"))["gpu.nvidia.com"]
    assert (room.claims, room.largest, dict(room.per_node)) == (32, 8, {8: 4})


def test_room_counts_by_node_what_is_left_of_it():
    fleet = load_fleet("hgx-h100 x 3")
    pools = [slice_.spec.pool.name for slice_ in fleet.slices if slice_.spec.driver == "gpu.nvidia.com"]
    taken = Taken(
        devices=frozenset(
            ("gpu.nvidia.com", pool, f"gpu-{index}") for pool in pools[:2] for index in range(6)
        )
    )
    room = rooms(fleet, taken)["gpu.nvidia.com"]
    assert (room.claims, room.largest, dict(room.per_node)) == (12, 8, {8: 1, 2: 2})


def test_every_profile_of_the_fleet_has_its_room():
    fleet = load_fleet("a100-80gb mig=1g.10gb*7")
    found = rooms(fleet)
    profiles = {name: room.claims for name, room in found.items() if name.startswith("MIG ")}
    assert profiles == {"MIG 1g.10gb": 56}
    assert found["MIG 1g.10gb"].largest == 32


def test_profiles_made_on_demand_share_their_gpu():
    found = rooms(load_fleet("a100-80gb dynamic-mig"))
    assert found["MIG 7g.80gb"].claims == 8
    assert found["MIG 3g.40gb"].claims == 16
    assert found["MIG 1g.10gb"].claims == 56


@pytest.mark.parametrize("count", [1, 3])
def test_room_is_what_a_workload_finds(build, count):
    fleet = build.a_fleet(build.gpus("a", 5), build.gpus("b", 3), build.gpus("c", 0))
    fleet = type(fleet)(
        name="f",
        nodes=fleet.nodes,
        slices=fleet.slices,
        classes=(),
    )
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request(count=count)),
        build.a_deployment("d", "template:t"),
    ]
    (answer,) = place(manifests, fleet).workloads
    assert 1 + answer.more_pods == {1: 8, 3: 2}[count]


def test_devices_of_all_nodes_are_counted_once(build):
    fleet = build.a_fleet(
        build.a_slice("pool", [build.a_device(f"d{index}") for index in range(3)], allNodes=True),
        nodes=[build.a_node("a"), build.a_node("b")],
    )
    from dra_infra.kubernetes.api import DeviceClass

    fleet = type(fleet)(
        name="f",
        nodes=fleet.nodes,
        slices=fleet.slices,
        classes=(DeviceClass.from_manifest(build.a_class("gpu", "true")),),
    )
    room = rooms(fleet)["gpu"]
    assert (room.claims, room.largest) == (3, 3)


def test_no_claim_is_searched_for_that_is_larger_than_all_free_devices():
    release = ClusterTarget(kubernetes="1.34", gates={"DRAConsumableCapacity": True}).releases[0]
    fleet = load_fleet("example")
    cluster = Cluster(fleet, release)
    asked = []

    def ask(count):
        asked.append(count)
        return probe.ask(count)

    (probe,) = probes_of(Attempts(cluster), {class_.metadata.name: class_ for class_ in fleet.classes})
    in_use = InUse(cluster, SharedPools(cluster), Taken().state)
    room = find_room(Attempts(cluster), in_use, [0], replace(probe, ask=ask))
    # The allocator of this minor goes through all orders of eight devices before it gives up on nine.
    assert (room.largest, max(asked)) == (8, 8)
