from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from dra_infra.advice.objects import validate
from dra_infra.catalog import load_fleet
from dra_infra.catalog.fleets import load_node
from dra_infra.catalog.machines import (
    INSTANCE_TYPE,
    amounts_of_karpenter,
    clouds,
    machines,
    node_kinds,
    node_names,
    refusal_of,
)
from dra_infra.catalog.records import fleet_kinds, gpu_products
from dra_infra.errors import FleetError
from dra_infra.kubernetes.api import Quantity
from dra_infra.kubernetes.api.names import is_dns_subdomain, is_label_key, is_label_value
from dra_infra.target import ClusterTarget
from tests.support.placing import place

MEBIBYTE = 1024 * 1024
BY_CLOUD = [(cloud, name) for cloud, each in clouds().items() for name in each.machines]


def mebibytes(amount):
    return Quantity.parse(amount).value / MEBIBYTE


def refused(text):
    with pytest.raises(FleetError) as caught:
        load_fleet(text)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize("name", machines())
def test_a_machine_is_a_node_with_its_gpus_and_the_label_of_its_type(name):
    cloud, machine = machines()[name]
    fleet = load_fleet(f"{name} x 2")
    assert fleet.name == f"{name} x 2"
    assert len(fleet.nodes) == len(fleet.slices) == 2
    like = fleet_kinds()[machine.like]
    for node, slice_ in zip(fleet.nodes, fleet.slices, strict=True):
        assert is_dns_subdomain(node.name)
        assert all(is_label_key(key) and is_label_value(value) for key, value in node.labels.items())
        assert node.labels[INSTANCE_TYPE] == name
        assert dict(cloud.labels).items() <= node.labels.items()
        assert len(slice_.spec.devices) == machine.gpus
        for device in slice_.spec.devices:
            assert device.attributes["productName"].string == like.gpu
            assert mebibytes(device.capacity["memory"].value) == gpu_products()[like.gpu].memory_mib
        buses = [
            device.attributes["resource.kubernetes.io/pciBusID"].string for device in slice_.spec.devices
        ]
        assert len(set(buses)) == machine.gpus


def test_every_gpu_of_ec2_has_the_labels_of_karpenter():
    aws = clouds()["aws"]
    assert set(aws.autoscaler) == {machine.like for machine in aws.machines.values()}
    for labels in aws.autoscaler.values():
        assert {key.rpartition("-")[2] for key in labels} == {"name", "memory"}
        assert all(is_label_key(key) and is_label_value(value) for key, value in labels.items())


@pytest.mark.parametrize("name", clouds()["aws"].machines)
def test_amounts_of_the_catalogue_are_those_of_karpenter_without_an_ec2nodeclass(name):
    machine = clouds()["aws"].machines[name]
    whole, left = amounts_of_karpenter(name, {})
    assert left == {**machine.allocatable, "ephemeral-storage": "17Gi"}
    assert whole["cpu"] == machine.cpu
    # Karpenter takes 7.5 percent of memory for the machine's own, and 64 MiB of a machine with an Arm processor.
    seen = math.ceil(mebibytes(machine.memory) * Fraction("0.925"))
    assert 0 <= seen - mebibytes(whole["memory"]) <= 64


@pytest.mark.parametrize(("cloud", "name"), BY_CLOUD)
def test_slices_of_a_machine_break_no_rule_of_the_api(cloud, name):
    published = [slice_.to_manifest() for slice_ in load_fleet(f"{name} driver=0.5").slices]
    for minor in ("1.34", "1.37"):
        assert validate(published, ClusterTarget(kubernetes=minor)) == (), cloud


@pytest.mark.parametrize("name", machines())
def test_what_is_left_for_pods_is_less_than_the_machine_has(name):
    _, machine = machines()[name]
    (node,) = load_fleet(name).nodes
    assert 0.9 < Quantity.parse(node.allocatable["cpu"]).value / int(machine.cpu) < 1
    assert 0.75 < mebibytes(node.allocatable["memory"]) / mebibytes(machine.memory) < 0.93
    assert {"pods", "ephemeral-storage"} <= set(node.allocatable)


def reserved(amount, steps):
    """The part of an amount that is held back: a share of each step, the last without an end."""
    total = Fraction(0)
    for size, share in steps:
        total += min(amount, size) * Fraction(share)
        amount = max(0, amount - size)
    return total


CPU_STEPS = [(1, "0.06"), (1, "0.01"), (2, "0.005"), (math.inf, "0.0025")]
GKE_MEMORY_STEPS = [(4, "0.25"), (4, "0.2"), (8, "0.1"), (112, "0.06"), (10**9, "0.02")]


@pytest.mark.parametrize("name", [name for cloud, name in BY_CLOUD if cloud in ("aws", "gcp")])
def test_cpu_for_pods_on_eks_and_gke_is_what_their_formula_leaves(name):
    _, machine = machines()[name]
    cpus = int(machine.cpu)
    steps = [(min(size, cpus), share) for size, share in CPU_STEPS]
    left = math.floor((cpus - reserved(cpus, steps)) * 1000)
    assert machine.allocatable["cpu"] == f"{left}m"


@pytest.mark.parametrize("name", clouds()["gcp"].machines)
def test_memory_for_pods_on_gke_is_what_its_formula_leaves(name):
    _, machine = machines()[name]
    seen = Fraction("0.925") * Fraction(Quantity.parse(machine.memory).value, 1024**3)
    left = (seen - reserved(seen, GKE_MEMORY_STEPS)) * 1024 - 100
    assert mebibytes(machine.allocatable["memory"]) == pytest.approx(float(left), abs=1)


@pytest.mark.parametrize("name", clouds()["azure"].machines)
def test_what_is_left_for_pods_on_aks_is_what_its_tables_leave(name):
    _, machine = machines()[name]
    seen = Fraction("0.925") * Quantity.parse(machine.memory).value
    held = min(20_000_000 * 110 + 50_000_000, Quantity.parse(machine.memory).value / 4)
    left = seen / MEBIBYTE - Fraction(held) / MEBIBYTE - 100
    assert mebibytes(machine.allocatable["memory"]) == pytest.approx(float(left), abs=1)
    table = {4: 140, 8: 180, 16: 260, 24: 340, 40: 500, 48: 580, 64: 740, 80: 900, 96: 1060}
    assert machine.allocatable["cpu"] == f"{int(machine.cpu) * 1000 - table[int(machine.cpu)]}m"


def a_program(machine, gpus):
    """A pod on a machine, and the template of its claim."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": gpus}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    container = {"name": "a", "image": "registry.example/a:1", "resources": {"claims": [{"name": "gpus"}]}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {
            "nodeSelector": {INSTANCE_TYPE: machine},
            "containers": [container],
            "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "gpus"}],
        },
    }
    return [template, pod]


@pytest.mark.parametrize(
    ("name", "gpus"), [("p5.48xlarge", 8), ("a3-highgpu-4g", 4), ("Standard_NC96ads_A100_v4", 4)]
)
def test_a_pod_is_placed_on_the_machine_that_it_names(name, gpus):
    def verdict(gpus, fleet):
        return place(a_program(name, gpus), load_fleet(fleet)).workloads[0].verdict

    assert verdict(gpus, f"{name} x 2") == "fits"
    assert verdict(gpus + 1, f"{name} x 2") == "does-not-fit"
    assert verdict(gpus, "hgx-h100 x 2") == "does-not-fit"


def test_no_name_is_a_fleet_and_a_machine_and_a_node_is_found_by_its_label():
    names = list(
        itertools.chain(node_kinds(), (other for kind in fleet_kinds().values() for other in kind.also))
    )
    short = [name.removeprefix("Standard_") for name in names if name.startswith("Standard_")]
    assert len(names) == len(set(names)) == len(node_names()) - len(short)
    (node,) = load_fleet("a4-highgpu-8g").nodes
    assert node_kinds()[node.labels[INSTANCE_TYPE]].gpu == "NVIDIA B200"


def test_a_machine_of_azure_is_found_without_the_beginning_of_its_name_too():
    assert load_fleet("ND96isr_H200_v5 x 2") == load_fleet("Standard_ND96isr_H200_v5 x 2")


def test_pci_of_p4d_is_what_its_driver_published():
    (slice_,) = load_node("p4d.24xlarge", "node").slices
    roots = [device.attributes["resource.kubernetes.io/pcieRoot"].string for device in slice_.spec.devices]
    assert roots == [f"pci0000:{root}" for root in ("10", "10", "20", "20", "90", "90", "a0", "a0")]


def test_gpus_and_network_interfaces_of_p4d_are_paired_by_their_pcie_root():
    nics = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "rdma"},
        "spec": {
            "selectors": [
                {"cel": {"expression": "device.driver == 'dra.net' && device.attributes['dra.net'].rdma"}}
            ]
        },
    }

    def verdict(gpus, fleet):
        template, pod = a_program("p4d.24xlarge", gpus)
        template["spec"]["spec"]["devices"]["requests"].append(
            {"name": "nic", "exactly": {"deviceClassName": "rdma"}}
        )
        template["spec"]["spec"]["devices"]["constraints"] = [
            {"matchAttribute": "resource.kubernetes.io/pcieRoot"}
        ]
        program = [nics, template, pod]
        assert validate(program) == ()
        return place(program, load_fleet(fleet)).workloads[0].verdict

    assert verdict(2, "p4d.24xlarge dranet") == "fits"
    assert verdict(3, "p4d.24xlarge dranet") == "does-not-fit"
    assert verdict(2, "p4d.24xlarge") == "does-not-fit"
    (interfaces,) = [
        each for each in load_fleet("p4d.24xlarge dranet").slices if each.spec.driver == "dra.net"
    ]
    assert validate([interfaces.to_manifest()]) == ()
    assert len(interfaces.spec.devices) == 7


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("g6f.xlarge", "a part of an L4", "g6.xlarge"),
        ("Standard_NV36ads_A10_v5 x 2", "vGPUs of an A10", "whole GPUs"),
        ("ND96isr_MI300X_v5", "has AMD GPUs", "mi300x"),
        ("dl1.24xlarge", "has Gaudi accelerators of the first generation", "gaudi2"),
        ("a4x-highgpu-4g", "a node of a rack", "gb200-nvl72"),
        ("standard_nd96isr_h100_v5", "there is no fleet", "did you mean Standard_ND96isr_H100_v5?"),
        ("p5.48xlargex2", "there is no fleet", "write p5.48xlarge x 2"),
        ("m5.large", "there is no fleet", "dra-infra catalog machines"),
    ],
)
def test_a_machine_that_cannot_be_is_refused_with_what_to_write(text, message, hint):
    problem = refused(text)
    assert problem.code == "fleet-unknown"
    assert message in problem.message
    assert hint in problem.hint


def test_no_machine_is_both_known_and_refused():
    every = [name for cloud in clouds().values() for each in cloud.refused for name in each.machines]
    assert len(every) == len(set(every)) > 10
    for name in every:
        assert name not in node_names()
        assert refusal_of(name)


def test_options_of_fleets_hold_for_machines():
    (slice_,) = load_fleet("a2-highgpu-1g mig=1g.5gb*7").slices
    assert len(slice_.spec.devices) == 7
    assert "has no MIG" in refused("g5.12xlarge mig=1g.10gb*7").message
    assert "from 1 to 4" in refused("g5.12xlarge devices=8").message
    assert "not known that Fabric Manager" in refused("p5.48xlarge driver=0.5 fabric-partitions").message


def test_nodes_of_a_file_are_called_after_the_machine(tmp_path):
    file = tmp_path / "fleet.yaml"
    file.write_text("nodeGroups: [{kind: Standard_ND96isr_H100_v5, allocatable: {cpu: 90}}]")
    (node,) = load_fleet(str(file)).nodes
    assert (node.name, node.allocatable["cpu"]) == ("standard-nd96isr-h100-v5-0", "90")
