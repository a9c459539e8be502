from __future__ import annotations

import json

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.documents.yaml import write_manifests
from dra_infra.errors import FleetError
from dra_infra.kubernetes.api import NodeTaint

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "n",
        "uid": "7b0c",
        "labels": {"zone": "a"},
        "managedFields": [{"manager": "kubelet"}],
    },
    "spec": {
        "podCIDR": "10.0.0.0/24",
        "unschedulable": True,
        "taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}, {"key": "l", "effect": "NoExecute"}],
    },
    "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3", "memory": "1Gi", "pods": 110}},
}
SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "s", "generation": 2, "ownerReferences": [{"kind": "Node", "name": "n"}]},
    "spec": {
        "driver": "gpu.example.com",
        "nodeName": "n",
        "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "d", "attributes": {"a": {"int": 1}}, "consumesCounters": []}],
    },
}
CLASS = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"selectors": [{"cel": {"expression": "true"}}]},
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="fleet.yaml"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else write_manifests(content))
        return str(path)

    return write


def refused(path):
    with pytest.raises(FleetError) as caught:
        load_fleet(path)
    return caught.value.problems


def changed(manifest, **fields):
    return {**manifest, **fields}


def test_objects_are_read_as_kubectl_prints_them(write):
    fleet = load_fleet(write([NODE, SLICE, CLASS]))
    (node,) = fleet.nodes
    assert (node.name, dict(node.labels), node.unschedulable) == ("n", {"zone": "a"}, True)
    assert dict(node.allocatable) == {"cpu": "3", "memory": "1Gi", "pods": "110"}
    assert node.taints == (
        NodeTaint(key="k", value="v", effect="NoSchedule"),
        NodeTaint(key="l", effect="NoExecute"),
    )
    assert fleet.slices[0].spec.devices[0].attributes["a"].int_ == 1
    assert [class_.metadata.name for class_ in fleet.classes] == ["c"]
    assert fleet.notes == ()


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, SLICE, CLASS]}),
        write_manifests([{"apiVersion": "v1", "kind": "List", "items": [NODE, SLICE, CLASS]}]),
        write_manifests(
            [
                {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": NODE["metadata"]} | NODE]},
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceSliceList",
                    "items": [{"metadata": SLICE["metadata"], "spec": SLICE["spec"]}],
                },
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "DeviceClassList",
                    "items": [{"metadata": CLASS["metadata"], "spec": CLASS["spec"]}],
                },
            ]
        ),
    ],
)
def test_lists_are_opened(write, content):
    fleet = load_fleet(write(content))
    assert (len(fleet.nodes), len(fleet.slices), len(fleet.classes)) == (1, 1, 1)


def test_named_fleet_written_and_read_again_is_the_same(write):
    named = load_fleet("hgx-h100 x 2")
    read = load_fleet(write(named.to_manifests()))
    assert (read.nodes, read.slices, read.classes) == (named.nodes, named.slices, named.classes)


def test_other_objects_are_counted_in_the_notes(write):
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}} for name in "ab"]
    path = write([NODE, *pods])
    assert load_fleet(path).notes == (
        f"2 Pod in {path} not taken into account: every node and device counts as free",
    )


def test_malformed_objects_are_told_all_at_once_with_their_paths(write):
    device = {"name": "d", "attributes": {"a": {"float": 1}}}
    broken = changed(SLICE, spec={**SLICE["spec"], "devices": [device], "pool": {}})
    path = write([NODE, broken, changed(CLASS, spec={"selektors": []})])
    problems = refused(path)
    assert {problem.code for problem in problems} == {"fleet-object"}
    assert [problem.path.removeprefix(path) for problem in problems] == [
        "[1].spec.devices[0].attributes.a.float",
        "[1].spec.pool.name",
        "[2].spec.selektors",
    ]


@pytest.mark.parametrize("manifest", [SLICE, CLASS])
def test_other_version_is_refused_with_the_command_to_use(write, manifest):
    (problem,) = refused(
        write([NODE, changed(manifest, apiVersion="resource.k8s.io/v1beta1", spec={"basic": 1})])
    )
    resource = "resourceslices" if manifest is SLICE else "deviceclasses"
    assert (problem.code, f"kubectl get {resource}.v1.resource.k8s.io" in problem.hint) == (
        "fleet-object",
        True,
    )


@pytest.mark.parametrize("manifest", [NODE, SLICE, CLASS])
def test_object_that_is_there_twice_is_refused(write, manifest):
    (problem,) = refused(write([NODE, manifest] if manifest is NODE else [NODE, manifest, manifest]))
    assert problem.code == "fleet-object"
    assert "twice" in problem.message


@pytest.mark.parametrize("manifest", [NODE, SLICE, CLASS])
def test_object_without_a_name_is_refused(write, manifest):
    problems = refused(write([NODE, changed(manifest, metadata={})]))
    assert ["has no name" in problem.message for problem in problems] == [True]


def test_node_without_resources_is_refused(write):
    (problem,) = refused(write([changed(NODE, status={})]))
    assert (problem.code, problem.path.endswith("[0].status.allocatable")) == ("fleet-object", True)


def test_node_with_a_malformed_quantity_is_refused(write):
    (problem,) = refused(write([changed(NODE, status={"allocatable": {"cpu": "many", "pods": "9"}})]))
    assert (problem.code, problem.path.endswith("[0].status.allocatable.cpu")) == ("fleet-object", True)
    assert "'many'" in problem.message


def test_capacity_stands_in_for_allocatable(write):
    (node,) = load_fleet(write([changed(NODE, status={"capacity": {"cpu": "4", "pods": "9"}})])).nodes
    assert node.allocatable["cpu"] == "4"


def test_taint_rules_are_refused_by_name(write):
    rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    (problem,) = refused(write([NODE, rule]))
    assert (problem.code, "DeviceTaintRule" in problem.message) == ("fleet-object", True)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "fleet-unreadable"),
        ("kind: [", "yaml-syntax"),
        ("- 1\n- 2\n", "yaml-not-an-object"),
        ("a: 1\na: 2\n", "yaml-duplicate-key"),
        ("a: " + "[" * 100, "yaml-too-large"),
        (write_manifests([CLASS]), "fleet-unreadable"),
    ],
)
def test_file_without_a_fleet_is_refused(write, content, code):
    assert {problem.code for problem in refused(write(content))} == {code}


def test_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "fleet.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert [problem.code for problem in refused(str(path))] == ["fleet-unreadable"]


@pytest.mark.parametrize("name", ["missing.yaml", "missing.json", "missing.yml", ".", "sub/fleet"])
def test_file_that_cannot_be_read_is_refused(tmp_path, name):
    (problem,) = refused(f"{tmp_path}/{name}")
    assert problem.code == "fleet-unreadable"
    assert "hgx-h100 x 4" in problem.hint


def test_taints_and_cordon_survive_writing_and_reading(write):
    (node,) = load_fleet(write([NODE])).nodes
    (again,) = load_fleet(write([node.to_manifest()])).nodes
    assert again == node
