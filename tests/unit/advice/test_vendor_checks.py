"""The checks that follow from facts about NVIDIA's driver, chart and operator, by their number in our notes.

Each row is what makes the problem, and its code. Where a part of a row has no check, NOT_CHECKED says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.catalog.fleets import load_fleet
from dra_infra.errors import InvalidSpecError, Problem, ProgramError
from dra_infra.program.synth import synth_function

GPU, MIG = "gpu.nvidia.com", "mig.nvidia.com"
NEW = dra.ClusterTarget(kubernetes="1.36")


def program(body: Callable[[], Any], fleet: str = "") -> list[Problem]:
    try:
        found = synth_function(body)
    except ProgramError as error:
        return list(error.problems)
    return list(check_program(found, fleet=load_fleet(fleet) if fleet else None))


def claim(**arguments: Any) -> Callable[[], list[Problem]]:
    fleet = arguments.pop("fleet", "")
    return lambda: program(lambda: dra.GpuClaim("c", **arguments), fleet)


def driver(**arguments: Any) -> Callable[[], list[Problem]]:
    return lambda: program(lambda: dra.DraDriver("d", **{"version": "0.4.1", "gpus": False, **arguments}))


def mig(fleet: str = "", **arguments: Any) -> Callable[[], list[Problem]]:
    return lambda: program(lambda: dra.MigPartition("m", **arguments), fleet)


def manifests(*objects: dict[str, Any], release: str = "newest") -> Callable[[], list[Problem]]:
    return lambda: list(dra.validate(objects, driver=release))


def domain(name: str = "d", *, template: str = "channel", **spec: Any) -> dict[str, Any]:
    channel = {"resourceClaimTemplate": {"name": template}, **spec.pop("channel", {})}
    metadata = {"name": name, "namespace": "ml"}
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": metadata,
        "spec": {"channel": channel, **spec},
    }


def pod(*templates: str, namespace: str = "ml") -> dict[str, Any]:
    entries = [{"name": name, "resourceClaimTemplateName": name} for name in templates]
    containers = [
        {"name": "a", "image": "a:1", "resources": {"claims": [{"name": name} for name in templates]}}
    ]
    spec = {"containers": containers, "resourceClaims": entries}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": spec,
    }


def template(name: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": GPU}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def vfio_under_a_webhook() -> list[Problem]:
    def body() -> None:
        gates = {"PassthroughSupport": True}
        dra.DraDriver("d", version="0.5.0", gpu_resources_enabled_override=True, gates=gates, webhook=True)
        dra.GpuClaim("vm", device_class="vfio.gpu.nvidia.com", configs=[dra.VfioDeviceConfig()])

    return program(body)


def extended_resource_of_a_cluster() -> list[Problem]:
    def body() -> None:
        dra.GpuOperator("op", version="26.7.0", gpu_cluster=True, driver=False)
        container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        k8s.core.v1.Pod("p", metadata={"name": "p"}, spec={"containers": [container]})

    return program(body)


def opaque(**parameters: Any) -> dra.OpaqueConfig:
    whole = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", **parameters}
    return dra.OpaqueConfig(driver=GPU, parameters=whole)


def counters(folder: Path, sets: int) -> str:
    """A fleet file with a node whose slice has so many counter sets."""
    names = [{"name": f"gpu-{n}-counter-set", "counters": {"memory": {"value": "1Gi"}}} for n in range(sets)]
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}},
    }
    slice_ = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n-counters"},
        "spec": {"driver": GPU, "nodeName": "n", "pool": pool, "sharedCounters": names},
    }
    file = folder / "fleet.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node, slice_]}))
    return str(file)


partition = dra.MatchAttribute(dra.gpu.partition2)

ROWS: list[tuple[int, str, Callable[[], list[Problem]]]] = [
    (1, "gpu-resources-consent", driver(gpus=True)),
    (
        1,
        "device-plugin-beside-dra",
        lambda: program(
            lambda: dra.DraDriver("d", version="0.4.1", operator=dra.GpuOperator("o", version="26.3.3"))
        ),
    ),
    (2, "unknown-driver-gate", driver(gates={"DynamicMg": True})),
    (2, "driver-gate-conflict", driver(gates={"DynamicMIG": True, "MPSSupport": True})),
    (
        3,
        "config-needs-gate",
        claim(device_class=GPU, driver_gates={}, configs=[dra.GpuConfig(sharing=dra.TimeSlicing())]),
    ),
    (
        3,
        "needs-newer-kubernetes",
        driver(gates={"DynamicMIG": True}, target=dra.ClusterTarget(kubernetes="1.35")),
    ),
    (4, "unknown-chart-version", driver(chart="oci://registry.example.com/nvidia-dra-driver-gpu")),
    (
        5,
        "attribute-not-known",
        claim(device_class=GPU, count=2, constraints=[dra.MatchAttribute(f"{GPU}/nvlinkDomain")]),
    ),
    (
        5,
        "attribute-of-other-device",
        claim(device_class=GPU, count=2, constraints=[dra.MatchAttribute(dra.gpu.profile)]),
    ),
    (
        6,
        "cel-value-type",
        claim(
            device_class=GPU,
            select=dra.cel(f'device.driver == "{GPU}" && device.attributes["{GPU}"].driverVersion == "580"'),
        ),
    ),
    (6, "selector-type", lambda: program(lambda: dra.gpu.memory >= 40)),
    (
        7,
        "config-kind-not-known",
        claim(device_class=GPU, configs=[opaque(apiVersion="resource.nvidia.com/v1")]),
    ),
    (7, "config-field-not-known", claim(device_class=GPU, configs=[opaque(sharin={})])),
    (
        7,
        "config-value",
        claim(
            device_class=GPU, configs=[opaque(sharing={"strategy": "TimeSlicing", "timeSlicingConfig": {}})]
        ),
    ),
    (
        7,
        "config-value",
        claim(device_class=GPU, configs=[dra.GpuConfig(sharing=dra.Mps(active_thread_percentage=101))]),
    ),
    (
        7,
        "config-value",
        claim(device_class=GPU, configs=[dra.GpuConfig(sharing=dra.Mps(pinned_device_memory_limit="1Ki"))]),
    ),
    (
        7,
        "config-conflict",
        claim(
            device_class=GPU,
            configs=[opaque(sharing={"strategy": "MPS", "timeSlicingConfig": {"interval": "Long"}})],
        ),
    ),
    (8, "config-device-type", claim(device_class=MIG, configs=[dra.GpuConfig(requests=["gpu"])])),
    (
        9,
        "config-not-applied",
        claim(
            requests=[dra.DeviceRequest("gpu", first_available=[dra.Alternative("a", device_class=GPU)])],
            configs=[dra.GpuConfig(requests=["gpu"])],
        ),
    ),
    (10, "config-refused-by-webhook", vfio_under_a_webhook),
    (
        11,
        "driver-gate-conflict",
        claim(
            device_class=GPU,
            driver_gates={"MPSSupport": True, "DynamicMIG": True},
            configs=[dra.GpuConfig(sharing=dra.Mps())],
        ),
    ),
    (
        11,
        "sharing-conflict",
        lambda: program(lambda: dra.SharedGpu("s", memory="20Gi", sharing=dra.Mps(), target=NEW)),
    ),
    (12, "mig-profile-not-known", mig(profile="1g.5gb", gpu="H100-80GB")),
    (12, "mig-not-placeable", mig(profiles={"4g.40gb": 1, "3g.40gb": 1, "1g.10gb": 1}, same_gpu=True)),
    (13, "mig-not-in-fleet", mig("hgx-h100 x 4 mig=3g.40gb*2", profile="1g.10gb")),
    (13, "mig-not-in-fleet", mig("hgx-h100 dynamic-mig driver=0.5, a100-40gb", profile="1g.5gb")),
    (14, "partition-size", claim(device_class=GPU, count=3, constraints=[partition])),
    (
        14,
        "partition-size",
        claim(
            requests=[
                dra.DeviceRequest("a", device_class=GPU, count=2),
                dra.DeviceRequest("b", device_class=GPU),
            ],
            constraints=[dra.MatchAttribute(dra.gpu.partition2, requests=["a"])],
        ),
    ),
    (15, "claim-not-known", manifests(domain(), pod("channel", namespace="web"))),
    (15, "compute-domain-twice", manifests(domain(), domain("e", template="other"), pod("channel", "other"))),
    (15, "compute-domain-nodes", manifests(domain(numNodes=4), release="0.4")),
    (15, "compute-domain-nodes", manifests(domain(numNodes=19), release="25.8")),
    (15, "missing-field", manifests(domain(), release="25.12")),
    (
        15,
        "compute-domain-option",
        manifests(domain(numNodes=4, channel={"allocationMode": "All"}), release="25.3"),
    ),
    (
        15,
        "no-fabric",
        lambda: program(lambda: dra.NvlinkGroup("n", gpus=8, gpus_per_pod=4, on="gb200-nvl72"), "hgx-h100"),
    ),
    (
        15,
        "compute-domain-option",
        lambda: program(
            lambda: dra.NvlinkGroup(
                "n",
                gpus=72,
                on="gb200-nvl72",
                allocation_mode="All",
                imex_mode="hostManaged",
                driver_release="0.5",
            )
        ),
    ),
    (16, "channel-template-taken", manifests(domain(), template("channel"))),
    (
        17,
        "platform-conflict",
        lambda: program(
            lambda: dra.GpuPlatform(
                "p", operator={"version": "26.7.0", "gpu_cluster": True, "driver": False}, driver="0.5.0"
            )
        ),
    ),
    (18, "extended-resource-not-served", extended_resource_of_a_cluster),
    (
        19,
        "node-labels-missing",
        lambda: program(
            lambda: dra.GpuPlatform(
                "p",
                platform="aks",
                operator={"version": "26.3.3", "eviction_label": "gpu"},
                driver="0.4.1",
                gpu_pools={"a": {}},
            )
        ),
    ),
    (20, "chart-upgrade", driver(upgrade_from="25.12.0")),
    (20, "chart-upgrade", driver(version="25.12.0", upgrade_from="0.4.1")),
    (21, "version-matrix", driver(target=dra.ClusterTarget(kubernetes="1.34"))),
    (21, "unknown-kubernetes", claim(device_class=GPU, target=dra.ClusterTarget(kubernetes="1.31"))),
    (
        22,
        "memory-just-missed",
        claim(device_class=GPU, select=dra.gpu.memory >= "79.5Gi", fleet="hgx-h100 dynamic-mig driver=0.5"),
    ),
    (24, "namespace-refused", driver(namespace="default")),
    (24, "namespace-refused", driver(namespace_labels={"pod-security.kubernetes.io/enforce": "baseline"})),
]

ELSEWHERE = {
    23: "below: it needs a file",
}
NOT_CHECKED = {
    12: "a set that several requests of one hand-written claim bind by parentUUID: profiles are in expressions there",
    14: "that the gate FabricManagerPartitioning is off, of a hand-written claim: nothing in it tells the gates",
    15: "a claim that names a ComputeDomain by UID: the UID is only in the cluster; `All` beside host-managed daemons, of a "
    "hand-written ComputeDomain: the mode is a value of the chart",
}
"""Parts of rows without a check, and why."""


@pytest.mark.parametrize(("row", "code", "problems"), ROWS, ids=[f"{row}-{code}" for row, code, _ in ROWS])
def test_a_check_of_the_notes_gives_its_code(row: int, code: str, problems: Callable[[], list[Problem]]):
    try:
        found = problems()
    except InvalidSpecError as error:
        found = list(error.problems)
    assert code in {problem.code for problem in found}, [str(problem) for problem in found]
    assert all(problem.hint for problem in found if problem.code == code)


def test_every_row_of_the_notes_is_there():
    assert {row for row, _, _ in ROWS} | set(ELSEWHERE) == set(range(1, 25))


def test_more_counter_sets_than_a_slice_holds_are_told_of_the_fleet(tmp_path):
    found = program(lambda: None, counters(tmp_path, 9))
    assert [(each.code, each.severity) for each in found] == [("too-many-items", "warning")]
    assert found[0].path.endswith("ResourceSlice n-counters.spec.sharedCounters")
    assert program(lambda: None, counters(tmp_path, 8)) == []


def test_what_the_fleet_has_is_not_told():
    assert mig("hgx-h100 x 4 mig=3g.40gb*2", profile="3g.40gb")() == []
    assert mig("hgx-h100 dynamic-mig driver=0.5", profile="1g.10gb")() == []
    memory = {"device_class": GPU, "select": dra.gpu.memory >= "79Gi"}
    assert claim(**memory, fleet="hgx-h100 dynamic-mig driver=0.5")() == []
    wide = {"device_class": GPU, "select": dra.gpu.memory >= "79.5Gi"}
    assert claim(**wide, fleet="hgx-h100")() == []


def test_mig_mode_is_told_where_dynamic_mig_cannot_turn_it_on():
    (found,) = mig("hgx-h100 dynamic-mig driver=0.5, a100-40gb", profile="1g.5gb")()
    assert "turn MIG mode on" in found.hint


def test_a_group_of_our_own_is_not_told_of_its_number_of_nodes():
    gates = {"IMEXDaemonsWithDNSNames": False, "ComputeDomainCliques": False}
    body = lambda: dra.NvlinkGroup("n", gpus=72, on="gb200-nvl72", driver_release="0.4", driver_gates=gates)  # noqa: E731
    found = synth_function(body, config={"dra-infra:driver": "0.4"})
    (made,) = [each.manifest for each in found.objects if each.ref.kind == "ComputeDomain"]
    assert made["spec"]["numNodes"] == 18
    assert "compute-domain-nodes" not in {each.code for each in check_program(found)}
    assert "compute-domain-nodes" in {each.code for each in dra.validate([made], driver="0.4")}
