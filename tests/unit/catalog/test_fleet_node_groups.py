from __future__ import annotations

import pytest
import yaml

from dra_infra.catalog import load_fleet
from dra_infra.catalog.driver_gates import gate_states
from dra_infra.catalog.driver_settings import DECIDING_GATES
from dra_infra.catalog.drivers import drivers
from dra_infra.errors import FleetError
from dra_infra.kubernetes.api import NodeTaint

GROUP = """
nodeGroups:
  - kind: hgx-h100
    count: 2
    name: training
    driver: "0.5"
    featureGates: {ConsumableShares: true, FabricManagerPartitioning: true}
    consumableShares: 4
    computeDomains: true
    labels: {pool: training, shared: true}
    taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
    allocatable: {cpu: 96, memory: 1Ti}
  - kind: a100-80gb
    mig: {3g.40gb: 1, 1g.10gb: 4}
"""


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "fleet.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return str(path)

    return write


@pytest.fixture
def refused(write):
    def refused(*groups, **others):
        path = write({"nodeGroups": list(groups), **others})
        with pytest.raises(FleetError) as caught:
            load_fleet(path)
        return [(problem.path.removeprefix(f"{path}."), problem.code) for problem in caught.value.problems]

    return refused


def test_groups_of_nodes_are_read(write):
    path = write(GROUP)
    fleet = load_fleet(path)
    assert fleet.name == path
    assert [node.name for node in fleet.nodes] == ["a100-80gb-0", "training-0", "training-1"]
    node = fleet.nodes[1]
    assert (node.labels["pool"], node.labels["shared"]) == ("training", "true")
    assert node.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert node.labels["kubernetes.io/hostname"] == "training-0"
    assert node.taints == (NodeTaint(key="nvidia.com/gpu", value="present", effect="NoSchedule"),)
    assert (node.allocatable["cpu"], node.allocatable["memory"], node.allocatable["pods"]) == (
        "96",
        "1Ti",
        "110",
    )
    assert fleet.nodes[0].taints == ()
    by_node = {(each.spec.node_name, each.spec.driver): each.spec.devices for each in fleet.slices}
    shared = by_node["training-0", "gpu.nvidia.com"][0]
    assert shared.capacity["shares"].value == "4"
    assert shared.attributes["partition8"].int_ == 0
    assert len(by_node["training-0", "compute-domain.nvidia.com"]) == 2
    assert len(by_node["a100-80gb-0", "gpu.nvidia.com"]) == 8 * 5


def test_a_file_says_what_a_text_says(write):
    text = load_fleet("hgx-h100 x 3 driver=0.5 dynamic-mig")
    file = load_fleet(
        write(
            {
                "nodeGroups": [
                    {"kind": "hgx-h100", "count": 3, "driver": 0.5, "featureGates": {"DynamicMIG": True}}
                ]
            }
        )
    )
    assert (file.nodes, file.slices, file.classes) == (text.nodes, text.slices, text.classes)


def test_each_gpu_can_have_a_layout_of_its_own(write):
    fleet = load_fleet(
        write({"nodeGroups": [{"kind": "hgx-h100", "mig": [{"7g.80gb": 1}, {}, "1g.10gb*7"]}]})
    )
    names = [device.name for device in fleet.slices[0].spec.devices]
    assert names == sorted(
        [
            "gpu-0-mig-7g80gb-0-0",
            "gpu-1",
            *(f"gpu-2-mig-1g10gb-19-{start}" for start in range(7)),
            *(f"gpu-{minor}" for minor in range(3, 8)),
        ]
    )


def test_gates_that_decide_nothing_here_are_taken(write):
    gates = {"MPSSupport": True, "TimeSlicingSettings": True}
    fleet = load_fleet(write({"nodeGroups": [{"kind": "hgx-h100", "featureGates": gates}]}))
    assert fleet.slices == load_fleet("hgx-h100").slices


def test_numa_nodes_are_lists_under_the_gate_for_it(write):
    groups = [{"kind": "t4", "driver": "0.5", "featureGates": {"DRAListTypeAttributes": True}}]
    device = load_fleet(write({"nodeGroups": groups})).slices[0].spec.devices[3]
    assert device.attributes["resource.kubernetes.io/numaNode"].to_manifest() == {"ints": [1]}


def test_a_gate_for_all_alpha_features_counts(write):
    groups = [
        {
            "kind": "hgx-h100",
            "featureGates": {
                "AllAlpha": True,
                "DynamicMIG": False,
                "MPSSupport": False,
                "NVMLDeviceHealthCheck": False,
            },
        }
    ]
    names = {device.name for device in load_fleet(write({"nodeGroups": groups})).slices[0].spec.devices}
    assert {"gpu-0", "gpu-vfio-0"} <= names


def test_compute_domains_of_a_rack_can_be_off(write):
    fleet = load_fleet(write({"nodeGroups": [{"kind": "gb200-nvl72", "computeDomains": False}]}))
    assert {each.spec.driver for each in fleet.slices} == {"gpu.nvidia.com"}


def test_groups_of_one_name_are_numbered_on(write):
    groups = [{"kind": "l4", "name": "cheap"}, {"kind": "t4", "name": "cheap", "count": 2}]
    fleet = load_fleet(write({"nodeGroups": groups}))
    assert [(node.name, node.labels["nvidia.com/gpu.product"]) for node in fleet.nodes] == [
        ("cheap-0", "NVIDIA-L4"),
        ("cheap-1", "Tesla-T4"),
        ("cheap-2", "Tesla-T4"),
    ]


@pytest.mark.parametrize(
    ("group", "problems"),
    [
        ("hgx-h100", [("nodeGroups[0]", "fleet-object")]),
        ({"count": 1}, [("nodeGroups[0]", "fleet-object")]),
        ({"kind": "hgx-h10"}, [("nodeGroups[0].kind", "fleet-unknown")]),
        ({"kind": "l4", "count": 0}, [("nodeGroups[0].count", "fleet-count")]),
        ({"kind": "l4", "count": True}, [("nodeGroups[0].count", "fleet-count")]),
        ({"kind": "l4", "driver": "1.0"}, [("nodeGroups[0].driver", "unknown-driver-release")]),
        ({"kind": "l4", "feature_gates": {}}, [("nodeGroups[0].feature_gates", "fleet-object")]),
        ({"kind": "l4", "featureGates": ["DynamicMIG"]}, [("nodeGroups[0].featureGates", "fleet-option")]),
        (
            {"kind": "hgx-h100", "featureGates": {"DynamicMig": True}},
            [("nodeGroups[0].featureGates.DynamicMig", "unknown-driver-gate")],
        ),
        (
            {"kind": "hgx-h100", "featureGates": {"DynamicMIG": "yes"}},
            [("nodeGroups[0].featureGates.DynamicMIG", "wrong-type")],
        ),
        (
            {"kind": "hgx-h100", "driver": "0.5", "consumableShares": "memory"},
            [("nodeGroups[0].consumableShares", "fleet-option")],
        ),
        ({"kind": "hgx-h100", "mig": 7}, [("nodeGroups[0].mig", "fleet-option")]),
        ({"kind": "hgx-h100", "mig": {"1g.10gb": "7"}}, [("nodeGroups[0].mig", "fleet-option")]),
        ({"kind": "hgx-h100", "mig": {"1g.10gb": -1}}, [("nodeGroups[0].mig", "fleet-option")]),
        ({"kind": "hgx-h100", "mig": [{}] * 9}, [("nodeGroups[0].mig", "fleet-option")]),
        ({"kind": "l4", "computeDomains": "yes"}, [("nodeGroups[0].computeDomains", "fleet-option")]),
        (
            {"kind": "example", "gpuAllowMultipleAllocations": 1},
            [("nodeGroups[0].gpuAllowMultipleAllocations", "fleet-option")],
        ),
        ({"kind": "l4", "name": "Training"}, [("nodeGroups[0].name", "fleet-object")]),
        ({"kind": "l4", "name": "n" * 51}, [("nodeGroups[0].name", "fleet-object")]),
        ({"kind": "l4", "name": 7}, [("nodeGroups[0].name", "fleet-object")]),
        ({"kind": "l4", "labels": ["a"]}, [("nodeGroups[0].labels", "fleet-object")]),
        ({"kind": "l4", "labels": {"a b": "c"}}, [("nodeGroups[0].labels.a b", "fleet-object")]),
        ({"kind": "l4", "labels": {"a": "no blanks"}}, [("nodeGroups[0].labels.a", "fleet-object")]),
        ({"kind": "l4", "labels": {"a.b/": "c"}}, [("nodeGroups[0].labels.a.b/", "fleet-object")]),
        ({"kind": "l4", "taints": {"key": "a"}}, [("nodeGroups[0].taints[0]", "fleet-object")]),
        ({"kind": "l4", "taints": [{"effect": "NoSchedule"}]}, [("nodeGroups[0].taints[0]", "fleet-object")]),
        (
            {"kind": "l4", "taints": [{"key": "a", "effect": "Never"}]},
            [("nodeGroups[0].taints[0]", "fleet-object")],
        ),
        (
            {"kind": "l4", "taints": [{"key": "a", "operator": "Exists"}]},
            [("nodeGroups[0].taints[0]", "fleet-object")],
        ),
        ({"kind": "l4", "allocatable": {"cpu": "many"}}, [("nodeGroups[0].allocatable.cpu", "fleet-object")]),
        ({"kind": "l4", "allocatable": 4}, [("nodeGroups[0].allocatable", "fleet-object")]),
    ],
)
def test_group_that_cannot_be_is_refused_where_it_is_written(refused, group, problems):
    assert refused(group) == problems


def test_all_problems_of_a_file_are_told_at_once(refused):
    problems = refused(
        {"kind": "l5", "count": "x", "labels": 1}, {"kind": "l4", "mig": {}, "nmae": "a"}, spare=1
    )
    assert problems == [
        ("nodeGroups[0].count", "fleet-count"),
        ("nodeGroups[0].kind", "fleet-unknown"),
        ("nodeGroups[0].labels", "fleet-object"),
        ("nodeGroups[1].mig", "fleet-option"),
        ("nodeGroups[1].nmae", "fleet-object"),
        ("spare", "fleet-object"),
    ]


@pytest.mark.parametrize("content", ["nodeGroups: []", "nodeGroups: {}", "nodeGroups:"])
def test_file_without_groups_is_refused(write, content):
    with pytest.raises(FleetError) as caught:
        load_fleet(write(content))
    assert [problem.code for problem in caught.value.problems] == ["fleet-object"]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("pool: []", "did you mean pools?"),
        ("nodegroups: []", "did you mean nodeGroups?"),
        ("kind: Pool", "write it with: kubectl get"),
    ],
)
def test_a_file_without_nodes_is_refused_with_what_to_write(write, content, hint):
    with pytest.raises(FleetError) as caught:
        load_fleet(write(content))
    assert [(each.code, hint in each.hint) for each in caught.value.problems] == [("fleet-unreadable", True)]


def test_misspelt_keys_get_the_nearest_name(write):
    with pytest.raises(FleetError) as caught:
        load_fleet(write({"nodeGroups": [{"kind": "l4", "lables": {}}]}))
    assert [problem.hint for problem in caught.value.problems] == ["did you mean labels?"]


def test_too_many_nodes_of_all_groups_are_refused(write):
    groups = [{"kind": "example", "count": 60_000}, {"kind": "example", "name": "other", "count": 60_000}]
    with pytest.raises(FleetError) as caught:
        load_fleet(write({"nodeGroups": groups}))
    assert [problem.code for problem in caught.value.problems] == ["fleet-too-large"]


def test_gates_that_decide_what_is_published_are_off_by_default():
    for release in drivers()["gpu.nvidia.com"].releases:
        states = gate_states(release.line, {})
        assert not any(states.get(gate) for gate in DECIDING_GATES)
