"""Nodes with the plugin and nodes with the driver: what each has, and nodes of which that is not known."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.cutover.sides import GPU_DRIVER, LABEL, Sides, all_on_plugin, as_it_is
from dra_infra.errors import FleetError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import Node
from dra_infra.kubernetes.scheduler import NodeFilter
from dra_infra.migration.device_plugin import DevicePlugin, Replicas
from tests.support.migration.plans import PLUGIN, commands, daemon_set, deployment, moves, plan


def on_plugin(fleet: Fleet, names: frozenset[str], gpus: str = "8") -> Fleet:
    """The fleet as a cluster that was read, with the plugin on some nodes."""
    nodes = [
        replace(each, allocatable={**each.allocatable, "nvidia.com/gpu": gpus})
        if each.name in names
        else each
        for each in fleet.nodes
    ]
    slices = [each for each in fleet.slices if each.spec.node_name not in names]
    return replace(fleet, nodes=tuple(nodes), slices=tuple(slices))


def allocatable(fleet: Fleet, node: str) -> dict[str, str]:
    (found,) = (each for each in fleet.nodes if each.name == node)
    return {name: amount for name, amount in found.allocatable.items() if name.startswith("nvidia.com/")}


@pytest.mark.parametrize(
    ("fleet", "plugin", "wanted"),
    [
        ("hgx-h100 x 1", PLUGIN, {"nvidia.com/gpu": "8"}),
        ("a100-80gb x 1 mig=1g.10gb*7", DevicePlugin(strategy="mixed"), {"nvidia.com/mig-1g.10gb": "56"}),
        ("a100-80gb x 1 mig=1g.10gb*7", DevicePlugin(strategy="single"), {"nvidia.com/gpu": "56"}),
        (
            "t4 x 1",
            DevicePlugin(replicas={"nvidia.com/gpu": Replicas("time-slicing", 4, False, False)}),
            {"nvidia.com/gpu": "16"},
        ),
        (
            "t4 x 1",
            DevicePlugin(replicas={"nvidia.com/gpu": Replicas("time-slicing", 4, True, False)}),
            {"nvidia.com/gpu.shared": "16"},
        ),
    ],
)
def test_the_plugin_gives_out_what_the_driver_would_publish(
    fleet: str, plugin: DevicePlugin, wanted: dict[str, str]
):
    (found,) = all_on_plugin(load_fleet(fleet), plugin).offered.values()
    assert found == wanted


def test_a_node_is_on_one_side_at_a_time():
    sides = all_on_plugin(load_fleet("hgx-h100 x 2"), PLUGIN)
    found = sides.at(frozenset({"hgx-h100-0"}))
    assert allocatable(found, "hgx-h100-0") == {"nvidia.com/gpu": "0"}
    assert allocatable(found, "hgx-h100-1") == {"nvidia.com/gpu": "8"}
    assert {each.spec.node_name for each in found.slices} == {"hgx-h100-0"}


def test_pods_that_select_by_labels_of_the_plan_find_nodes_on_one_side():
    plugin = {"nvidia.com/gpu.deploy.device-plugin": "true"}
    driver = {"nvidia.com/dra-kubelet-plugin": "true"}
    fleet = load_fleet("hgx-h100 x 2", kubernetes="1.34")
    nodes = tuple(replace(each, labels={**each.labels, **plugin}) for each in fleet.nodes)
    sides = all_on_plugin(replace(fleet, nodes=nodes), PLUGIN)
    for selector, wanted in ((plugin, ["always", "never"]), (driver, ["never", *["always"] * 3])):
        found = plan([deployment("a", 1, 8, nodeSelector=selector)], sides)
        assert [each.joint.verdict for each in found.phases] == wanted
        assert not found.works


def test_a_node_that_is_away_takes_no_pod_of_a_daemon_set():
    found = all_on_plugin(load_fleet("hgx-h100 x 2"), PLUGIN).at(
        frozenset(), without=frozenset({"hgx-h100-0"})
    )
    spec = daemon_set("d", 1)["spec"]["template"]["spec"]
    lets_in = [not NodeFilter(spec, daemon=True).refusal(each) for each in found.nodes]
    assert lets_in == [False, True]


def test_nodes_without_gpus_are_on_no_side():
    fleet = load_fleet("t4 x 1")
    fleet = replace(fleet, nodes=(*fleet.nodes, Node(name="cpu-0", allocatable={"cpu": "8"})))
    assert set(all_on_plugin(fleet, PLUGIN).offered) == {"t4-0"}


def test_a_cluster_that_was_read_has_the_slices_of_a_machine_with_the_same_labels():
    whole = load_fleet("hgx-h100 x 3")
    sides = as_it_is(on_plugin(whole, frozenset({"hgx-h100-0", "hgx-h100-1"})))
    assert set(sides.offered) == {"hgx-h100-0", "hgx-h100-1"}
    assert {each.spec.node_name for each in sides.fleet.slices} == {each.name for each in whole.nodes}
    assert len({each.metadata.name for each in sides.fleet.slices}) == len(sides.fleet.slices)
    assert "hgx-h100" in sides.notes[0]
    assert sides.problems == ()
    found = plan([deployment("a", 2, 8)], sides)
    assert found.works
    assert [each.nodes for each in found.phases if each.kind == "move"] == [("hgx-h100-0",), ("hgx-h100-1",)]


def with_labels(fleet: Fleet, **versions: str) -> Fleet:
    """The fleet with labels of GPU feature discovery on versions, on all nodes; the version in place of the catalogue's."""
    full = "nvidia.com/cuda.driver-version.full"
    more = {
        f"nvidia.com/cuda.{name.replace('__', '.').replace('_', '-')}": at for name, at in versions.items()
    }
    nodes = [
        replace(each, labels={key: at for key, at in each.labels.items() if key != full} | more)
        for each in fleet.nodes
    ]
    return replace(fleet, nodes=tuple(nodes))


@pytest.mark.parametrize(
    ("labels", "driver", "cuda"),
    [
        ({"driver_version__full": "570.86.05", "runtime_version__full": "12.8"}, "570.86.5", "12.8.0"),
        ({"driver__major": "570", "driver__minor": "124", "driver__rev": "06"}, "570.124.6", "13.0.0"),
        ({"driver__major": "570", "driver__minor": "124"}, "570.124.0", "13.0.0"),
        ({"driver_version__full": "nonsense"}, "580.126.20", "13.0.0"),
    ],
)
def test_a_node_will_publish_the_versions_that_its_labels_say(labels: dict[str, str], driver: str, cuda: str):
    fleet = with_labels(on_plugin(load_fleet("hgx-h100 x 1"), frozenset({"hgx-h100-0"})), **labels)
    sides = as_it_is(fleet, kernel_driver="565")
    found = [device.attributes or {} for each in sides.fleet.slices for device in each.spec.devices or ()]
    gpus = [each for each in found if "driverVersion" in each]
    assert len(gpus) >= 8
    assert {(each["driverVersion"].version, each["cudaDriverVersion"].version) for each in gpus} == {
        (driver, cuda)
    }
    assert sides.doubts == ()


def test_nodes_whose_kernel_driver_is_older_than_the_driver_names_leave_the_plan_open():
    fleet = with_labels(
        on_plugin(load_fleet("hgx-h100 x 1"), frozenset({"hgx-h100-0"})), driver_version__full="550.90.07"
    )
    sides = as_it_is(fleet, kernel_driver="565")
    (doubt,) = sides.doubts
    assert doubt.startswith("the DRA driver names 565 as NVIDIA's oldest kernel driver")
    assert "hgx-h100-0 (550.90.7)" in doubt
    found = plan([deployment("a", 1, 8)], sides)
    assert found.verdict == "not-decided"
    assert found.reasons == sides.doubts
    # Releases that name none say nothing about it.
    assert as_it_is(fleet).doubts == ()


def test_a_node_with_fewer_gpus_than_its_machine_and_one_that_is_cordoned_are_told():
    whole = on_plugin(load_fleet("t4 x 2"), frozenset({"t4-0", "t4-1"}), "4")
    first, second = whole.nodes
    less = replace(first, allocatable={**first.allocatable, "nvidia.com/gpu": "3"})
    sides = as_it_is(replace(whole, nodes=(less, replace(second, unschedulable=True))))
    assert [each.partition(":")[0] for each in sides.notes[1:]] == ["t4-0 (3 of 4)", "t4-1"]
    assert "is broken" in sides.notes[1]
    assert "cordon again" in sides.notes[2]
    assert len(as_it_is(whole).notes) == 1
    many = replace(first, allocatable={**first.allocatable, "nvidia.com/gpu": "1k"})
    assert len(as_it_is(replace(whole, nodes=(many, second))).notes) == 1


def half(fleet: str, *plugin: int) -> Sides:
    """A cluster with the plugin on these of its nodes, and the driver on the others."""
    whole = load_fleet(fleet)
    return as_it_is(on_plugin(whole, frozenset(whole.nodes[each].name for each in plugin)))


@pytest.mark.parametrize("kubernetes", ["1.34", "1.37"])
@pytest.mark.parametrize("plugin", [(0, 1), (0,)])
def test_workloads_move_to_nodes_that_have_the_driver_before_a_node_leaves(
    plugin: tuple[int, ...], kubernetes: str
):
    found = plan([deployment("a", 2, 4)], half("hgx-h100 x 4", *plugin), kubernetes=kubernetes)
    assert moves(found)[0] == ((), ("Deployment ml/a",))
    assert [nodes for nodes, _ in moves(found)[1:]] == [(f"hgx-h100-{each}",) for each in plugin]
    first, second = found.phases[1:3]
    assert first.meanwhile is None
    assert not any("drain" in each or "label" in each for each in commands((*first.steps, *first.back)))
    assert second.meanwhile is not None
    assert second.meanwhile.verdict == "always"
    assert found.works


def test_a_cluster_of_the_driver_alone_moves_its_workloads():
    found = plan([deployment("a", 2, 4)], half("hgx-h100 x 1"))
    assert moves(found) == [((), ("Deployment ml/a",))]
    assert [each.joint.verdict for each in found.phases] == ["never", "always", "always"]


def test_the_driver_stays_on_nodes_that_have_it():
    first = plan([deployment("a", 2, 4)], half("hgx-h100 x 4", 0, 1)).phases[0]
    (label,) = (each for each in commands(first.steps) if each.startswith("kubectl label "))
    assert label.startswith("kubectl label node hgx-h100-2 hgx-h100-3 ")
    assert "nvidia.com/dra-kubelet-plugin=true" in label
    at = [number for number, each in enumerate(first.steps) if "nodeSelector" in each.what or each.commands]
    assert "nodeSelector" in first.steps[at[-1]].what
    told = " ".join(each.what for each in (*first.steps, *first.back))
    assert "nowhere" not in told
    assert "uninstall" not in told


def test_nodes_that_have_the_driver_alone_have_its_label_in_every_phase():
    sides = half("hgx-h100 x 3", 0, 1)
    for on_dra, wanted in ((set(), {"hgx-h100-2"}), ({"hgx-h100-0"}, {"hgx-h100-0", "hgx-h100-2"})):
        nodes = sides.at(frozenset(on_dra)).nodes
        assert {each.name for each in nodes if each.labels.get(LABEL) == "true"} == wanted


def test_nodes_with_other_versions_are_alike_and_not_the_same_for_certain():
    fleet = on_plugin(load_fleet("hgx-h100 x 2"), frozenset({"hgx-h100-0", "hgx-h100-1"}))
    older = with_labels(fleet, driver_version__full="570.86.05", runtime_version__full="12.8").nodes[0]
    both = ("hgx-h100-0", "hgx-h100-1")
    assert as_it_is(fleet).alike([]) == ([both], True)
    assert as_it_is(replace(fleet, nodes=(older, fleet.nodes[1]))).alike([]) == ([both], False)


def in_a_domain(name: str) -> list[dict[str, Any]]:
    """A ComputeDomain, and a workload of two pods with its channel and all GPUs of a node."""
    channel = [{"name": "channel", "resourceClaimTemplateName": f"{name}-channel"}]
    made = deployment(name, 2, 4, resourceClaims=channel)
    (container,) = made["spec"]["template"]["spec"]["containers"]
    container["resources"]["claims"] = [{"name": "channel"}]
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": f"{name}-channel"}}},
    }
    return [domain, made]


def part_of_a_rack() -> Fleet:
    fleet = load_fleet("gb200-nvl72", kubernetes="1.34")
    nodes = fleet.nodes[:4]
    names = {each.name for each in nodes}
    slices = (each for each in fleet.slices if each.spec.node_name in names)
    return replace(fleet, nodes=nodes, slices=tuple(slices))


def beside_domains(fleet: Fleet) -> Sides:
    """A cluster that was read, with the plugin and the driver for ComputeDomains on its nodes."""
    slices = [each for each in fleet.slices if each.spec.driver != GPU_DRIVER]
    everywhere = on_plugin(fleet, frozenset(each.name for each in fleet.nodes), "4")
    return as_it_is(replace(everywhere, slices=tuple(slices)))


@pytest.mark.parametrize("is_read", [True, False])
def test_compute_domains_are_served_on_nodes_of_the_plugin(is_read: bool):
    fleet = part_of_a_rack()
    sides = beside_domains(fleet) if is_read else all_on_plugin(fleet, PLUGIN)
    at_first = {each.spec.driver for each in sides.at(frozenset()).slices}
    assert at_first == {"compute-domain.nvidia.com"}
    assert len(sides.fleet.slices) == len(fleet.slices)
    found = plan(in_a_domain("train"), sides)
    assert [each.joint.verdict for each in found.phases] == ["always"] * len(found.phases)
    assert found.works
    install = next(each.what for each in found.phases[0].steps if each.what.startswith("install "))
    assert "resources.computeDomains.enabled: false" in install


def test_compute_domains_come_with_the_driver_where_nothing_serves_them():
    fleet = part_of_a_rack()
    sides = as_it_is(on_plugin(fleet, frozenset(each.name for each in fleet.nodes), "4"))
    assert sides.at(frozenset()).slices == ()
    assert not sides.has_domains
    drivers = {each.spec.driver for each in sides.at(frozenset({fleet.nodes[0].name})).slices}
    assert drivers == {GPU_DRIVER, "compute-domain.nvidia.com"}


def test_machines_of_the_catalogue_publish_as_the_release_of_the_driver_does():
    fleet = on_plugin(load_fleet("hgx-h100 x 1"), frozenset({"hgx-h100-0"}))
    bare = replace(fleet, classes=())
    found = as_it_is(bare, load=partial(load_fleet, driver="25.8"))
    assert "gpu.nvidia.com" in {each.metadata.name for each in found.fleet.classes}
    assert {each.spec.extended_resource_name for each in found.fleet.classes} == {None}
    newest = {each.spec.extended_resource_name for each in as_it_is(bare).fleet.classes}
    assert "nvidia.com/gpu" in newest


GKE = "cloud.google.com/gke-"


def of_gke(machine: str, gpus: str, **labels: str) -> Fleet:
    """One machine of GKE as a cluster that was read: the plugin is there, and GPU feature discovery is not."""
    fleet = load_fleet(machine)
    (node,) = fleet.nodes
    own = {key: value for key, value in node.labels.items() if not key.startswith("nvidia.com/")}
    more = {f"{GKE}{key.replace('_', '-')}": value for key, value in labels.items()}
    allocatable = {**node.allocatable, "nvidia.com/gpu": gpus}
    return replace(fleet, nodes=(replace(node, labels={**own, **more}, allocatable=allocatable),), slices=())


SHARED = {"gpu_sharing_strategy": "time-sharing", "max_shared_clients_per_gpu": "4"}


@pytest.mark.parametrize(
    ("machine", "gpus", "labels", "like"),
    [
        ("a3-highgpu-8g", "8", {}, "a3-highgpu-8g"),
        ("g2-standard-24", "2", {"accelerator_count": "2"}, "g2-standard-24"),
        ("g2-standard-24", "8", SHARED, "g2-standard-24 shares=4"),
        ("g2-standard-24", "8", {**SHARED, "gpu_sharing_strategy": "mps"}, "g2-standard-24"),
        ("a2-highgpu-2g", "14", {"gpu_partition_size": "1g.5gb"}, "a2-highgpu-2g mig=1g.5gb*7"),
        (
            "a2-highgpu-1g",
            "8",
            {**SHARED, "gpu_partition_size": "3g.20gb"},
            "a2-highgpu-1g mig=3g.20gb*2 shares=4",
        ),
    ],
)
def test_a_node_of_gke_has_the_slices_of_its_machine(
    machine: str, gpus: str, labels: dict[str, str], like: str
):
    load = partial(load_fleet, driver="0.5")
    found = as_it_is(of_gke(machine, gpus, **labels), load=load)
    wanted = load(like)
    assert f" what {like} does" in found.notes[0]
    assert [len(each.spec.devices or ()) for each in found.fleet.slices] == [
        len(each.spec.devices or ()) for each in wanted.slices
    ]
    shared = {bool(device.allow_multiple_allocations) for device in found.fleet.slices[0].spec.devices or ()}
    assert shared == {"shares=" in like}


def test_the_driver_shares_no_gpus_where_it_cannot():
    found = as_it_is(of_gke("g2-standard-24", "8", **SHARED), has_shares=False)
    assert " what g2-standard-24 does" in found.notes[0]


@pytest.mark.parametrize(
    ("machine", "labels"),
    [
        ("a2-highgpu-2g", {"gpu_partition_size": "1g.5gb"}),
        ("g2-standard-24", {"accelerator": "nvidia-tesla-p100"}),
        ("g2-standard-24", {"accelerator_count": "7"}),
    ],
)
def test_a_node_of_gke_that_is_like_no_machine_is_a_problem(machine: str, labels: dict[str, str]):
    with pytest.raises(FleetError) as raised:
        as_it_is(of_gke(machine, "13", **labels))
    assert [each.code for each in raised.value.problems] == ["hardware-not-known"]


def test_a_node_with_more_mig_devices_than_its_machine_has_room_for_is_a_problem_of_the_node():
    fleet = of_gke("a2-highgpu-1g", "8", gpu_partition_size="1g.5gb")
    with pytest.raises(FleetError) as raised:
        as_it_is(fleet)
    assert [(each.code, each.path) for each in raised.value.problems] == [
        ("hardware-not-known", f"Node {fleet.nodes[0].name}")
    ]


def test_a_node_that_no_machine_is_like_is_a_problem():
    fleet = on_plugin(load_fleet("hgx-h100 x 1"), frozenset({"hgx-h100-0"}))
    labels = {**fleet.nodes[0].labels, "nvidia.com/gpu.product": "NVIDIA-Z900"}
    strange = replace(fleet, nodes=(replace(fleet.nodes[0], labels=labels),))
    with pytest.raises(FleetError) as raised:
        as_it_is(strange)
    assert [(each.code, each.path) for each in raised.value.problems] == [
        ("hardware-not-known", "Node hgx-h100-0")
    ]


def test_hardware_that_is_named_says_what_a_node_will_publish():
    fleet = on_plugin(load_fleet("hgx-h100 x 1"), frozenset({"hgx-h100-0"}))
    labels = {**fleet.nodes[0].labels, "nvidia.com/gpu.product": "NVIDIA-Z900"}
    strange = replace(fleet, nodes=(replace(fleet.nodes[0], name="z-7", labels=labels),))
    named = load_fleet("hgx-h100 x 1")
    named = replace(named, nodes=(replace(named.nodes[0], labels=labels),))
    sides = as_it_is(strange, named)
    assert [each.spec.node_name for each in sides.fleet.slices] == ["z-7"]
    assert len(sides.fleet.slices[0].spec.devices or ()) == 8


def mig_node(**amounts: str) -> Fleet:
    """A node of H100s with these resources of the plugin, by the last part of their names."""
    fleet = load_fleet("hgx-h100 x 1")
    given = {f"nvidia.com/{name.replace('_', '-')}": amount for name, amount in amounts.items()}
    given = {re.sub(r"(\dg)-", r"\1.", name): amount for name, amount in given.items()}
    node = replace(fleet.nodes[0], allocatable={**fleet.nodes[0].allocatable, **given})
    return replace(fleet, nodes=(node,), slices=())


def test_hardware_with_the_same_mig_devices_says_what_a_node_will_publish():
    named = load_fleet("hgx-h100 x 1 mig=1g.10gb*7, hgx-h100 x 1")
    parted = as_it_is(mig_node(mig_1g_10gb="56"), named)
    assert sum(len(each.spec.devices or ()) for each in parted.fleet.slices) == 56
    whole = as_it_is(mig_node(gpu="8"), named)
    assert sum(len(each.spec.devices or ()) for each in whole.fleet.slices) == 8
    with pytest.raises(FleetError) as raised:
        as_it_is(mig_node(mig_1g_10gb="55"), named)
    assert [each.code for each in raised.value.problems] == ["hardware-not-known"]


def test_a_node_of_strategy_mixed_has_the_slices_of_its_machine_with_the_same_mig_devices_on_each_gpu():
    sides = as_it_is(mig_node(gpu="0", mig_1g_10gb="32", mig_3g_40gb="8"))
    profiles = Counter(
        str((device.attributes or {})["profile"].string)
        for each in sides.fleet.slices
        for device in each.spec.devices or ()
    )
    assert profiles == {"1g.10gb": 32, "3g.40gb": 8}
    assert "what hgx-h100 mig=1g.10gb*4+3g.40gb*1 does" in sides.notes[0]


@pytest.mark.parametrize(
    "amounts",
    [
        {"mig_1g_10gb": "55"},
        # Seven of a GPU are the most.
        {"mig_1g_10gb": "64"},
        {"gpu": "4", "mig_1g_10gb": "24"},
    ],
)
def test_a_node_whose_gpus_have_different_mig_devices_is_not_guessed(amounts: dict[str, str]):
    with pytest.raises(FleetError) as raised:
        as_it_is(mig_node(**amounts))
    (problem,) = raised.value.problems
    assert problem.code == "hardware-not-known"
    assert f"nvidia.com/mig-1g.10gb: {amounts['mig_1g_10gb']}" in problem.message
    assert "the same devices on each of 8 GPUs" in problem.message


@pytest.mark.parametrize("resource", ["mig_1g_10gb", "mig_1g_10gb.shared"])
def test_a_node_with_replicas_of_mig_devices_is_not_guessed(resource: str):
    (node,) = (fleet := mig_node(**{resource: "32"})).nodes
    product = "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb" + ("" if resource.endswith("shared") else "-SHARED")
    shared = {"product": product, "replicas": "2", "sharing-strategy": "time-slicing"}
    labels = {f"nvidia.com/mig-1g.10gb.{name}": value for name, value in shared.items()}
    labels = {**node.labels, "nvidia.com/mig.strategy": "mixed", **labels}
    with pytest.raises(FleetError) as raised:
        as_it_is(replace(fleet, nodes=(replace(node, labels=labels),)))
    assert [each.code for each in raised.value.problems] == ["hardware-not-known"]


def test_a_resource_that_the_plugin_no_longer_gives_out_counts_for_nothing():
    sides = as_it_is(mig_node(gpu="8", mig_1g_10gb="0"))
    assert sides.offered == {"hgx-h100-0": {"nvidia.com/gpu": "8"}}
    assert sum(len(each.spec.devices or ()) for each in sides.fleet.slices) == 8


def single(gpus: str) -> Fleet:
    """A node of H100s that are parted into MIG devices 1g.10gb under the plugin's strategy single, without the name of a machine."""
    fleet = mig_node(gpu=gpus)
    labels = {
        **fleet.nodes[0].labels,
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
        "nvidia.com/gpu.count": gpus,
        "nvidia.com/mig.strategy": "single",
    }
    return replace(fleet, nodes=(replace(fleet.nodes[0], labels=labels),))


def test_a_node_of_strategy_single_has_the_slices_of_the_only_machine_that_has_so_many():
    sides = as_it_is(single("56"))
    assert sum(len(each.spec.devices or ()) for each in sides.fleet.slices) == 56
    assert "what hgx-h100 mig=1g.10gb*7 does" in sides.notes[0]
    with pytest.raises(FleetError) as raised:
        as_it_is(single("57"))
    assert [each.code for each in raised.value.problems] == ["hardware-not-known"]
    named = load_fleet("hgx-h100 x 1 mig=1g.10gb*7")
    labels = {**named.nodes[0].labels, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    named = replace(named, nodes=(replace(named.nodes[0], labels=labels),))
    assert len(as_it_is(single("56"), named).fleet.slices) == len(named.slices)


def test_machines_with_other_numbers_of_gpus_leave_a_node_of_strategy_single_open(
    monkeypatch: pytest.MonkeyPatch,
):
    known = {"hgx-h100": ("NVIDIA-H100-80GB-HBM3", "8"), "dgx-h100": ("NVIDIA-H100-80GB-HBM3", "4")}
    monkeypatch.setattr("dra_infra.cutover.sides._known", lambda: known)
    with pytest.raises(FleetError) as raised:
        as_it_is(single("16"))
    assert [each.code for each in raised.value.problems] == ["hardware-not-known"]


def test_a_node_on_which_gpus_of_another_vendor_are_given_out_twice_is_told():
    fleet = load_fleet("mi300x x 1, hgx-h100 x 1")
    (node,) = (each for each in fleet.nodes if each.name.startswith("mi300x"))
    twice = replace(node, allocatable={**node.allocatable, "amd.com/gpu": "8"})
    sides = as_it_is(replace(fleet, nodes=(twice,)))
    assert [(each.code, each.path) for each in sides.problems] == [
        ("device-plugin-beside-dra", f"Node {twice.name}")
    ]
    # The plan is for NVIDIA's plugin alone.
    assert sides.on_both == ()


def test_a_node_of_both_sides_is_told_and_the_plan_does_not_work():
    fleet = load_fleet("hgx-h100 x 2")
    twice = replace(fleet.nodes[0], allocatable={**fleet.nodes[0].allocatable, "nvidia.com/gpu": "8"})
    sides = as_it_is(replace(fleet, nodes=(twice, fleet.nodes[1])))
    assert [(each.code, each.path) for each in sides.problems] == [
        ("device-plugin-beside-dra", "Node hgx-h100-0")
    ]
    found = plan([deployment("a", 1, 8)], sides)
    assert found.problems == sides.problems
    assert not found.works
    first = commands(found.phases[0].steps)
    assert [each.split()[1] for each in first if each.startswith("kubectl ")] == [
        "label", "cordon", "drain", "get", "uncordon"
    ]  # fmt: skip
    assert [each.split()[-1] for each in first if "cordon" in each] == ["hgx-h100-0"] * 2
    assert "uninstall" not in found.phases[0].back[0].what
