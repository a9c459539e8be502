"""A DaemonSet that no node lets in has no pods, which is no failure in any answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dra_infra.answers.explaining import explain
from dra_infra.answers.scene import Scene
from dra_infra.answers.simulating import simulate
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Node
from tests.unit.answers.objects import a_class, a_program, a_template

CORDONED = Fleet(name="empty", nodes=(Node(name="n0", allocatable={"cpu": "4"}, unschedulable=True),))


def a_daemon_set(pod: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agents", "namespace": "ml"},
        "spec": {
            "selector": {"matchLabels": {"app": "agents"}},
            "template": {"metadata": {"labels": {"app": "agents"}}, "spec": pod},
        },
    }


def test_a_daemon_set_without_pods_fits_where_its_driver_publishes_nothing() -> None:
    pod = {
        "nodeSelector": {"pool": "elsewhere"},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "containers": [{"name": "main", "image": "i"}],
    }
    device_class = a_class("gpu.example.com", 'device.driver == "gpu.example.com"')
    scene = Scene.of(a_program(device_class, a_template(), a_daemon_set(pod)), fleet=CORDONED)

    simulated = simulate(scene)
    explained = explain(scene, "daemonset/agents")

    assert simulated.placement is not None
    assert [each.verdict for each in simulated.placement.workloads] == ["fits"]
    assert (explained.verdict, explained.exit_code, simulated.exit_code) == ("fits", 0, 0)


def test_a_daemon_set_without_claims_that_no_node_lets_in_fits() -> None:
    resources = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {
        "nodeSelector": {"pool": "elsewhere"},
        "containers": [{"name": "main", "image": "i", "resources": resources}],
    }
    node = Node(name="n0", allocatable={"cpu": "4", "pods": "10", "nvidia.com/gpu": "1"})
    scene = Scene.of(a_program(a_daemon_set(pod)), fleet=Fleet(name="one", nodes=(node,)))

    explained = explain(scene, "daemonset/agents")

    assert (explained.verdict, explained.exit_code, simulate(scene).exit_code) == ("fits", 0, 0)
