from __future__ import annotations

from typing import Any

import pytest

import dra_infra as dra
from dra_infra.advice.objects import check_objects
from dra_infra.advice.program import check_program
from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.program.synth import synth_function

ENFORCE = "pod-security.kubernetes.io/enforce"
CODE = "quota-without-pod-security"
OF_CLASS = "h100.deviceclass.resource.k8s.io/devices"


def namespace(name: str = "vision", **labels: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def at_level(level: str) -> dict[str, Any]:
    return namespace(**{ENFORCE: level})


def quota(key: str = OF_CLASS, space: str = "vision") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "limits", "namespace": space},
        "spec": {"hard": {key: "0"}},
    }


def found(*objects: dict[str, Any], beside: tuple[dict[str, Any], ...] = ()) -> list[tuple[int, str]]:
    told = check_objects(objects, dra.ClusterTarget(kubernetes="1.37"), beside=beside)
    return [(index, problem.path) for index, problem in told if problem.code == CODE]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    "key",
    [OF_CLASS, "requests.deviceclass.resource.kubernetes.io/h100", "requests.nvidia.com/gpu"],
)
@pytest.mark.parametrize("space", [namespace(), at_level("privileged")])
def test_a_namespace_that_limits_devices_and_refuses_no_pod_is_told(
    space: dict[str, Any], key: str, order: int
):
    objects = [quota(key), space][::order]
    assert found(*objects) == [(objects.index(space), "metadata.labels")]


@pytest.mark.parametrize("level", ["baseline", "restricted", UNKNOWN])
def test_a_level_that_refuses_pods_or_is_not_known_yet_is_enough(level: str):
    assert found(at_level(level), quota()) == []


@pytest.mark.parametrize("key", ["pods", "requests.cpu", "count/jobs.batch", "requests.hugepages-2Mi"])
def test_a_quota_of_something_else_limits_no_devices(key: str):
    assert found(namespace(), quota(key)) == []


def test_another_namespace_is_not_told():
    assert found(namespace("speech"), at_level("baseline"), quota()) == []


def test_a_namespace_that_is_in_neither_the_input_nor_the_cluster_is_not_told():
    assert found(quota()) == []


def test_namespaces_and_quotas_of_the_cluster_count():
    assert found(quota(), beside=(namespace(),)) == [(0, "metadata.namespace")]
    assert found(namespace(), beside=(quota(),)) == [(0, "metadata.labels")]
    assert found(beside=(namespace(), quota())) == []
    # What is in the input replaces what is in the cluster.
    assert found(at_level("baseline"), beside=(namespace(), quota())) == []
    assert found(quota(), quota(), beside=(namespace(),)) == [(0, "metadata.namespace")]


def test_a_tenant_is_told_where_its_argument_lets_privileged_pods_in():
    config = {"dra-infra:kubernetes": "1.37"}

    def warnings(**arguments: Any) -> list[Any]:
        program = synth_function(
            lambda: dra.GpuTenant("vision", quota={"h100": 8}, **arguments), config=config
        )
        return [each for each in check_program(program) if each.code == CODE]

    assert warnings() == []
    (problem,) = warnings(pod_security="privileged")
    assert problem.path == 'GpuTenant("vision").metadata.labels'
    assert problem.hint.startswith("leave pod_security out of the GpuTenant")
