"""Devices and resources that are taken: the same answers as on a fleet that never had them, where that can be said."""

from __future__ import annotations

import random

import pytest

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Node, ResourceSlice
from dra_infra.kubernetes.scheduler import Taken
from tests.support import draws
from tests.support.placing import place

DRIVER = "gpu.example.com"
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "c"},
    "spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]},
}


def a_slice(node, names, *, shared=False):
    where = {"allNodes": True} if shared else {"nodeName": node}
    return ResourceSlice.from_manifest(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": node},
            "spec": {
                "driver": DRIVER,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": name} for name in names],
                **where,
            },
        }
    )


def a_fleet(devices, *, cpu="64", shared=()):
    nodes = [Node(name=name, allocatable={"cpu": cpu, "pods": "110"}) for name in sorted(devices)]
    slices = [a_slice(name, names) for name, names in sorted(devices.items())]
    slices += [a_slice("network", shared, shared=True)] if shared else []
    return Fleet(name="test", nodes=tuple(nodes), slices=tuple(slices))


def a_program(*wishes, cpu="1"):
    manifests = [CLASS]
    for number, (count, replicas) in enumerate(wishes):
        exactly = {"deviceClassName": "c"} | (
            {"allocationMode": "All"} if count == "all" else {"count": count}
        )
        spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
        pods = {
            "containers": [{"name": "m", "resources": {"requests": {"cpu": cpu}}}],
            "resourceClaims": [{"name": "g", "resourceClaimTemplateName": f"t{number}"}],
        }
        manifests += [
            {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": f"t{number}"}, "spec": spec},
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": f"d{number}"},
                "spec": {"replicas": replicas, "template": {"spec": pods}},
            },
        ]  # fmt: skip
    return manifests


def answers(placement):
    return [
        (workload.verdict, workload.more_pods, list(workload.nodes), workload.pods)
        for workload in placement.workloads
    ]


@pytest.mark.draws
@pytest.mark.parametrize("part", range(2))
def test_taken_devices_are_as_if_they_were_not_there(part):
    for seed in draws.seeds(100)[part::2]:
        rng = random.Random(seed)  # noqa: S311  (not for secrets)
        devices = {f"n{node}": [f"d{index}" for index in range(rng.randint(1, 6))] for node in range(5)}
        taken = {(node, name) for node, names in devices.items() for name in names if rng.random() < 0.4}
        left = {
            node: [name for name in names if (node, name) not in taken] for node, names in devices.items()
        }
        program = a_program(*((rng.randint(1, 4), rng.randint(1, 6)) for _ in range(3)))
        found = place(
            program, a_fleet(devices), taken=Taken(devices=frozenset((DRIVER, *each) for each in taken))
        )
        assert answers(found) == answers(place(program, a_fleet(left))), seed


def test_a_request_for_all_devices_needs_all_of_them():
    taken = Taken(devices=frozenset({(DRIVER, "n0", "d0")}))
    (workload,) = place(a_program(("all", 1)), a_fleet({"n0": ["d0", "d1"]}), taken=taken).workloads
    assert workload.verdict == "does-not-fit"
    assert [reason.code for reason in workload.reasons] == ["devices-in-use"]


def test_a_device_of_the_network_is_taken_on_every_node():
    taken = Taken(devices=frozenset({(DRIVER, "network", "s0")}))
    fleet = a_fleet({"n0": [], "n1": []}, shared=("s0", "s1"))
    (workload,) = place(a_program((1, 1)), fleet, taken=taken).workloads
    assert (workload.verdict, workload.more_pods) == ("fits", 0)
    assert [choice.device for choice in workload.pods[0].devices] == ["s1"]


def test_cpu_that_is_taken_is_not_free_and_never_less_than_none():
    fleet = a_fleet({"n0": ["d0", "d1"]}, cpu="4")
    for amount, verdict in ((1000, "fits"), (3500, "does-not-fit"), (9000, "does-not-fit")):
        taken = Taken(amounts={"n0": {"cpu": amount, "pods": 1}})
        (workload,) = place(a_program((1, 1)), fleet, taken=taken).workloads
        assert workload.verdict == verdict


def test_devices_that_the_fleet_does_not_have_are_passed_over():
    taken = Taken(devices=frozenset({(DRIVER, "gone", "d0")}))
    (workload,) = place(a_program((1, 1)), a_fleet({"n0": ["d0"]}), taken=taken).workloads
    assert workload.verdict == "fits"
