from __future__ import annotations

from typing import Any

import pytest

from dra_infra.client.kinds import PODS, SLICES
from dra_infra.cluster.doctor import diagnose
from dra_infra.cluster.evidence import Evidence, gather
from tests.support.cluster.samples import (
    GPU,
    claim,
    definitions,
    device_class,
    healthy,
    node,
    plugin,
    pod,
    slice_of,
)
from tests.unit.cluster.conftest import Server

TAINT = {"key": "gpus", "value": "only", "effect": "NoSchedule"}
OTHER = "other.example.com"


def found(evidence: Evidence, **options: Any) -> set[tuple[str, str, str]]:
    return {(each.code, each.path, each.severity) for each in diagnose(evidence, **options).findings}


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    diagnosis = diagnose(healthy())
    assert diagnosis.findings == ()
    assert diagnosis.is_healthy
    assert "gpu.nvidia.com publishes 2 devices" in diagnosis.facts


COUNTERS = {"counterSet": "a", "counters": {"memory": {"value": "1"}}}

CASES: dict[str, tuple[Evidence, tuple[str, str, str]]] = {
    "no API": (healthy(served=()), ("dra-not-served", "API server", "error")),
    "an old API": (healthy(served=("v1beta1",)), ("version-not-served", "API server", "warning")),
    "a broken patch": (healthy(kubernetes="v1.34.1"), ("version-matrix", "API server", "warning")),
    "no slices": (
        healthy(resourceslices=[], resourceclaims=[]),
        ("driver-missing", "driver gpu.nvidia.com", "error"),
    ),
    "no class": (healthy(deviceclasses=[]), ("class-missing", "driver gpu.nvidia.com", "warning")),
    "a class for nobody": (
        healthy(deviceclasses=[device_class(), device_class("o", OTHER)]),
        ("class-without-devices", "DeviceClass o", "warning"),
    ),
    "a slice too few": (
        healthy(resourceslices=[slice_of("n1", "gpu-0", pool={"resourceSliceCount": 2})]),
        ("pool-incomplete", "pool gpu.nvidia.com/n1", "error"),
    ),
    "a slice too many": (
        healthy(resourceslices=[slice_of("n1", "gpu-0"), slice_of("n1", "gpu-1", number=2)]),
        ("pool-incomplete", "pool gpu.nvidia.com/n1", "error"),
    ),
    "slices that disagree on their number": (
        healthy(
            resourceslices=[
                slice_of("n1", "gpu-0"),
                slice_of("n1", "gpu-1", number=2, pool={"resourceSliceCount": 2}),
            ]
        ),
        ("slice-counts-differ", "pool gpu.nvidia.com/n1", "error"),
    ),
    "a device twice": (
        healthy(resourceslices=[slice_of("n1", "gpu-0", "gpu-0")]),
        ("pool-invalid", "pool gpu.nvidia.com/n1", "error"),
    ),
    "a counter that no slice has": (
        healthy(resourceslices=[slice_of("n1", {"name": "gpu-0", "consumesCounters": [COUNTERS]})]),
        ("pool-invalid", "pool gpu.nvidia.com/n1", "error"),
    ),
    "a slice of a node that is gone": (
        healthy(resourceslices=[slice_of("n1", "gpu-0"), slice_of("n9", "gpu-0")]),
        ("slice-node-gone", "ResourceSlice n9-gpu.nvidia.com-1", "warning"),
    ),
    "a tainted device": (
        healthy(resourceslices=[slice_of("n1", {"name": "gpu-0", "taints": [TAINT]})]),
        ("device-taint", "pool gpu.nvidia.com/n1", "warning"),
    ),
    "a driver that publishes no device anywhere": (
        healthy(resourceslices=[slice_of("n1")], resourceclaims=[]),
        ("driver-missing", "driver gpu.nvidia.com", "error"),
    ),
    "a class for a driver without devices": (
        healthy(
            deviceclasses=[device_class(), device_class("o", OTHER)],
            resourceslices=[slice_of("n1", "gpu-0"), slice_of("n1", driver=OTHER)],
        ),
        ("class-without-devices", "DeviceClass o", "warning"),
    ),
    "a node that publishes nothing": (
        healthy(nodes=[node("n1"), node("n2")]),
        ("driver-not-on-node", "Node n2", "error"),
    ),
    "a node whose driver has nothing to publish": (
        healthy(nodes=[node("n1"), node("n2")], resourceslices=[slice_of("n1", "gpu-0"), slice_of("n2")]),
        ("driver-not-on-node", "Node n2", "error"),
    ),
    "a taint that the plugin does not tolerate": (
        healthy(nodes=[node("n1"), node("n2", taints=[TAINT])]),
        ("plugin-not-on-node", "Node n2", "error"),
    ),
    "a label that the plugin wants": (
        healthy(
            nodes=[node("n1", x="y"), node("n2")],
            daemonsets=[plugin(nodeSelector={"x": "y"})],
        ),
        ("plugin-not-on-node", "Node n2", "error"),
    ),
    "pods that are not ready": (
        healthy(daemonsets=[plugin(ready=0)]),
        ("plugin-not-ready", "DaemonSet gpus/dra-driver-nvidia-gpu-kubelet-plugin", "error"),
    ),
    "a plugin that wants to run nowhere": (
        healthy(daemonsets=[plugin(ready=0, wanted=0)]),
        ("plugin-not-ready", "DaemonSet gpus/dra-driver-nvidia-gpu-kubelet-plugin", "error"),
    ),
    "the namespace default": (
        healthy(daemonsets=[plugin(namespace="default")]),
        ("namespace-refused", "DaemonSet default/dra-driver-nvidia-gpu-kubelet-plugin", "warning"),
    ),
    "a device plugin too": (
        healthy(nodes=[node("n1", allocatable={"nvidia.com/gpu": "8"})]),
        ("device-plugin-beside-dra", "Node n1", "error"),
    ),
    "a MIG device plugin too": (
        healthy(nodes=[node("n1", allocatable={"nvidia.com/mig-1g.10gb": "7"})]),
        ("device-plugin-beside-dra", "Node n1", "error"),
    ),
    **{
        f"a device plugin of {resource} too": (
            healthy(
                nodes=[node("n1", allocatable={resource: "8"})],
                resourceslices=[slice_of("n1", "gpu-0", driver=driver), slice_of("n1", "gpu-0", "gpu-1")],
            ),
            ("device-plugin-beside-dra", "Node n1", "error"),
        )
        for resource, driver in (
            ("amd.com/gpu", "gpu.amd.com"),
            ("amd.com/cpx_nps4", "gpu.amd.com"),
            ("gpu.intel.com/i915", "gpu.intel.com"),
            ("gpu.intel.com/xe", "gpu.intel.com"),
        )
    },
    "a MIG layout that failed": (
        healthy(nodes=[node("n1", **{"nvidia.com/mig.config.state": "failed"})]),
        ("mig-state", "Node n1", "error"),
    ),
    "a MIG layout on its way": (
        healthy(nodes=[node("n1", **{"nvidia.com/mig.config.state": "pending"})]),
        ("mig-state", "Node n1", "warning"),
    ),
    "claims for MIG, and none": (
        healthy(resourceclaims=[claim("m", classes=["mig.nvidia.com"])]),
        ("mig-not-published", "DeviceClass mig.nvidia.com", "error"),
    ),
    "a claim for a pod that is gone": (
        healthy(pods=[]),
        ("claim-reserved", "ResourceClaim ml/a", "error"),
    ),
    "a claim for a pod that is done": (
        healthy(pods=[pod("p", "Succeeded")]),
        ("claim-reserved", "ResourceClaim ml/a", "error"),
    ),
    "a claim with a device that is gone": (
        healthy(resourceclaims=[claim("a", f"{GPU}/n1/gpu-7")]),
        ("claim-device-gone", "ResourceClaim ml/a", "error"),
    ),
    "definitions of a driver that is gone": (
        healthy(daemonsets=[]),
        ("stale-definition", "CustomResourceDefinition computedomains.resource.nvidia.com", "warning"),
    ),
    "definitions older than the driver": (
        healthy(customresourcedefinitions=definitions("computedomains")),
        ("stale-definition", "DaemonSet gpus/dra-driver-nvidia-gpu-kubelet-plugin", "error"),
    ),
    "a gate that a field needs": (
        healthy(
            resourceslices=[slice_of("n1", {"name": "gpu-0", "allowMultipleAllocations": True})],
            gates={"DRAConsumableCapacity": False},
        ),
        ("gate-off", "ResourceSlice n1-gpu.nvidia.com-1", "warning"),
    ),
    "a gate that a class needs, by default": (
        healthy(deviceclasses=[device_class(extendedResourceName="nvidia.com/gpu")], kubernetes="v1.35.2"),
        ("gate-off", "DeviceClass gpu.nvidia.com", "warning"),
    ),
    "a gate that the driver needs": (
        healthy(daemonsets=[plugin(gates="DynamicMIG=true,MPSSupport=false")], kubernetes="v1.35.2"),
        ("gate-off", "DaemonSet gpus/dra-driver-nvidia-gpu-kubelet-plugin", "warning"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_found_at_its_object(name: str) -> None:
    evidence, expected = CASES[name]
    assert expected in found(evidence)
    hints = {each.code: each.hint for each in diagnose(evidence).findings}
    assert all(hints.values()), hints


@pytest.mark.parametrize(
    "evidence",
    [
        # The old generation does not count, nor does a pod of another group.
        healthy(
            resourceslices=[
                slice_of("n1", "gpu-0", "gpu-1", pool={"generation": 2}),
                slice_of("n1", "gpu-0", pool={"resourceSliceCount": 3}),
            ]
        ),
        healthy(
            nodes=[node("n1", taints=[TAINT])], daemonsets=[plugin(tolerations=[{"operator": "Exists"}])]
        ),
        healthy(nodes=[node("n1", allocatable={"nvidia.com/gpu": "0"})]),
        healthy(nodes=[node("n1", allocatable={"amd.com/gpu": "8", "gpu.intel.com/xe": "1"})]),
        healthy(
            daemonsets=[plugin(release="25.8.1")], customresourcedefinitions=definitions("computedomains")
        ),
        healthy(deviceclasses=[device_class(extendedResourceName="nvidia.com/gpu")], kubernetes="v1.36.0"),
        healthy(nodes=[{"metadata": {"name": "n0"}}, node("n1")]),
    ],
)
def test_what_looks_wrong_and_is_not_is_not_found(evidence: Evidence) -> None:
    assert found(evidence) == set()


ON_PLUGIN = {"nvidia.com/gpu": "8"}
LABELLED = {"nvidia.com/dra-kubelet-plugin": "true"}
CHOSEN = {"nodeSelector": LABELLED}


def test_nodes_that_have_not_left_the_plugin_are_on_it_on_purpose():
    left = node("n1", allocatable={"nvidia.com/gpu": "0"}, **LABELLED)
    stays = node("n2", allocatable=ON_PLUGIN)
    assert found(healthy(nodes=[left, stays], daemonsets=[plugin(**CHOSEN)])) == set()
    # Once it is labelled, the driver has to come: by a taint it does not.
    tainted = node("n2", allocatable=ON_PLUGIN, taints=[TAINT], **LABELLED)
    assert ("plugin-not-on-node", "Node n2", "error") in found(
        healthy(nodes=[left, tainted], daemonsets=[plugin(**CHOSEN)])
    )
    none = node("n2", allocatable={"nvidia.com/gpu": "0"})
    assert ("plugin-not-on-node", "Node n2", "error") in found(
        healthy(nodes=[left, none], daemonsets=[plugin(**CHOSEN)])
    )


@pytest.mark.parametrize("installed", [(), (plugin(**CHOSEN, ready=0, wanted=0),)])
def test_before_a_cut_over_the_driver_is_told_to_be_nowhere_and_nothing_is_broken(installed: Any):
    nodes = [node(name, allocatable=ON_PLUGIN) for name in ("n1", "n2")]
    nothing: dict[str, Any] = {"resourceslices": [], "resourceclaims": [], "customresourcedefinitions": []}
    classes = [device_class(), device_class("channels", "compute-domain.nvidia.com")]
    before = healthy(nodes=nodes, daemonsets=installed, deviceclasses=classes, **nothing)
    told = {each for each in found(before) if each[0] != "stale-definition"}
    assert told == {("driver-missing", "driver gpu.nvidia.com", "warning")}
    assert ("driver-missing", "driver gpu.nvidia.com", "error") in found(before, driver=GPU)
    # A node with GPUs that are given out by nobody is on no side.
    lost = healthy(nodes=[*nodes, node("n3")], daemonsets=installed, deviceclasses=classes, **nothing)
    assert ("driver-missing", "driver gpu.nvidia.com", "error") in found(lost)


def test_what_was_not_seen_is_not_missing() -> None:
    whole = healthy()
    for kind in (PODS, SLICES):
        seen = {each: items for each, items in whole.objects.items() if each is not kind}
        assert found(healthy(objects=seen)) == set(), kind.plural
    assert "claim-reserved" not in {code for code, _, _ in found(healthy(pods=[], is_whole=False))}


def test_only_the_driver_that_is_asked_for_is_looked_at() -> None:
    evidence = healthy(nodes=[node("n1", allocatable={"nvidia.com/gpu": "8"})])
    assert found(evidence, driver=OTHER) == {("driver-missing", f"driver {OTHER}", "error")}


def test_another_driver_is_known_by_the_folder_of_its_socket() -> None:
    volume = {"hostPath": {"path": f"/var/lib/kubelet/plugins/{OTHER}"}}
    daemon_set = {
        "metadata": {"name": "dra-other", "namespace": "x"},
        "spec": {"template": {"spec": {"volumes": [volume]}}},
        "status": {"desiredNumberScheduled": 2, "numberReady": 1},
    }
    evidence = healthy(
        daemonsets=[plugin(), daemon_set],
        resourceslices=[slice_of("n1", "gpu-0", "gpu-1"), slice_of("n1", "d", driver=OTHER)],
        deviceclasses=[device_class(), device_class("o", OTHER)],
    )
    assert found(evidence) == {("plugin-not-ready", "DaemonSet x/dra-other", "error")}


def test_versions_and_gates_are_the_servers_own_words(server: Server) -> None:
    metrics = (
        b'# TYPE kubernetes_feature_enabled gauge\nkubernetes_feature_enabled{name="DRAAdminAccess",stage=""} 1\n'
        b'kubernetes_feature_enabled{name="DRADeviceTaints",stage="BETA"} 0\n'
    )
    server.says("/version", (200, {"gitVersion": "v1.36.4"}))
    server.says("/apis/resource.k8s.io", (200, {"versions": [{"version": "v1"}, {"version": "v1beta2"}]}))
    server.says("/metrics", (200, metrics))
    server.says("/api/v1/nodes", (403, {"message": "no"}))
    evidence = gather(server.reader())
    assert (evidence.kubernetes, evidence.minor, evidence.served) == ("v1.36.4", "1.36", ("v1", "v1beta2"))
    assert evidence.gates == {"DRAAdminAccess": True, "DRADeviceTaints": False}
    assert (evidence.gate("DRADeviceTaints"), evidence.gate("DRAExtendedResource"), evidence.gate("X")) == (
        False,
        True,
        None,
    )
    assert {each.code for each in evidence.problems} == {"cluster-forbidden", "kind-not-served"}


def test_a_device_that_is_gone_has_the_commands_that_clear_it_up():
    (found,) = [
        each
        for each in diagnose(healthy(resourceclaims=[claim("a", f"{GPU}/n1/gpu-7", pods=["p"])])).findings
        if each.code == "claim-device-gone"
    ]
    assert "kubectl delete pod -n ml p; and, if it stays, kubectl delete resourceclaim -n ml a" in found.hint


def test_a_name_with_a_command_in_it_is_quoted():
    odd = claim("a; reboot", f"{GPU}/n1/gpu-7")
    found = [
        each.hint
        for each in diagnose(healthy(resourceclaims=[odd])).findings
        if each.code == "claim-device-gone"
    ]
    assert "kubectl delete resourceclaim -n ml 'a; reboot'" in found[0]
