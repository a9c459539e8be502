from __future__ import annotations

import json

import pytest

from dra_infra.catalog.snapshots import load_snapshot
from dra_infra.documents.yaml import write_manifests
from dra_infra.errors import FleetError
from dra_infra.kubernetes.api import holds_placeholder, is_placeholder

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "4", "pods": "110"}},
}
CLASS = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "ml"},
    "spec": {"hard": {"pods": "4"}},
}
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "s",
        "namespace": "ml",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data": "aHVudGVyMg=="}'},
        "managedFields": [{"manager": "hunter2"}],
    },
    "data": {"token": "aHVudGVyMg=="},
    "stringData": {"token": "hunter2"},
}


def test_nodes_and_classes_become_the_fleet_and_the_rest_stays():
    snapshot = load_snapshot([write_manifests([NODE, CLASS]), json.dumps(QUOTA)])
    assert [node.name for node in snapshot.fleet.nodes] == ["n"]
    assert [class_.metadata.name for class_ in snapshot.fleet.classes] == ["c"]
    assert [each["kind"] for each in snapshot.objects] == ["ResourceQuota"]


@pytest.mark.parametrize("kind", ["List", "NodeList"])
def test_lists_are_opened(kind):
    items = [{"metadata": NODE["metadata"], "status": NODE["status"]} if kind == "NodeList" else NODE]
    text = json.dumps({"apiVersion": "v1", "kind": kind, "items": items})
    assert [node.name for node in load_snapshot([text]).fleet.nodes] == ["n"]


def test_an_object_that_is_in_two_texts_counts_once_as_the_last_has_it():
    newer = {**QUOTA, "spec": {"hard": {"pods": "5"}}}
    snapshot = load_snapshot([write_manifests([NODE, NODE, QUOTA]), write_manifests([NODE, newer])])
    assert len(snapshot.fleet.nodes) == 1
    assert [each["spec"]["hard"] for each in snapshot.objects] == [{"pods": "5"}]


def test_values_of_secrets_do_not_get_in():
    snapshot = load_snapshot([write_manifests([NODE, SECRET])])
    assert "unter2" not in repr(snapshot.objects)
    assert "aHVudGVyMg" not in repr(snapshot.objects)
    (found,) = snapshot.objects
    assert found["metadata"]["name"] == "s"
    assert [is_placeholder(found["data"]), is_placeholder(found["stringData"])] == [True, True]


def test_texts_like_markers_are_ordinary_texts_outside_of_secrets():
    quota = {**QUOTA, "metadata": {"name": "[secret]", "namespace": "[unknown]"}}
    (found,) = load_snapshot([write_manifests([NODE, quota])]).objects
    assert found == quota
    assert not holds_placeholder(found)


def test_a_snapshot_without_nodes_is_one_all_the_same():
    assert load_snapshot([write_manifests([QUOTA])]).fleet.nodes == ()


def test_what_no_server_gave_is_noted():
    devices = [{"name": f"d{number}"} for number in range(129)]
    spec = {
        "driver": "gpu.example.com",
        "nodeName": "n0",
        "pool": {"name": "n0", "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    large = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": spec,
    }
    typo = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlices",
        "metadata": {"name": "t"},
        "spec": spec,
    }
    assert load_snapshot([write_manifests([NODE, large, typo])]).fleet.notes == (
        "ResourceSlice s has 129 devices, and API servers take at most 128: it was not read from one",
        "1 of kind ResourceSlices left out, which resource.k8s.io does not have: write ResourceSlice",
    )


def test_rules_that_taint_devices_are_among_the_objects():
    rule = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "r"}}
    assert rule in load_snapshot([write_manifests([NODE, rule])]).objects


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([], "fleet-unreadable"),
        (["# nothing"], "fleet-unreadable"),
        (["a: [1"], "yaml-syntax"),
        (["- 1"], "yaml-not-an-object"),
        (['{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'], "fleet-object"),
        (['{"apiVersion": "v1", "kind": "Node"}'], "fleet-object"),
    ],
)
def test_what_is_no_snapshot_is_refused(texts, code):
    with pytest.raises(FleetError) as caught:
        load_snapshot(texts)
    assert code in {problem.code for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("lists", "read"),
    [
        ([{"apiVersion": "v1", "kind": "PodList", "items": []}], {"pods"}),
        ([{"apiVersion": "v1", "kind": "PodList", "items": None}], {"pods"}),
        (
            [
                {"apiVersion": "resource.k8s.io/v1", "kind": f"{kind}List", "items": []}
                for kind in ("ResourceSlice", "DeviceClass")
            ],
            {"resourceslices", "deviceclasses"},
        ),
        ([{"apiVersion": "v1", "kind": "List", "items": []}], set()),
        ([{"apiVersion": "v1", "kind": "PodList", "metadata": {"continue": "more"}, "items": []}], set()),
        (
            [{"apiVersion": "v1", "kind": "List", "items": [{"kind": "PodList", "items": []}]}],
            {"pods"},
        ),
    ],
)
def test_an_empty_list_of_a_kind_was_looked_at(lists, read):
    snapshot = load_snapshot([json.dumps(each) for each in (NODE, *lists)])
    assert snapshot.read == read
    assert not snapshot.whole
