from __future__ import annotations

import copy

import pytest

from dra_infra.markers import CHANGED_SECRET, SECRET
from dra_infra.review.changes import compare_programs
from dra_infra.review.diff import diff_manifests, without_noise


def a_pod(**container):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ml"},
        "spec": {"containers": [{"name": "main", "image": "a", **container}]},
    }


def shown(before, after):
    return [line for hunk in diff_manifests(before, after) for line in hunk.lines]


def test_what_the_server_sets_does_not_show():
    read = a_pod()
    read["metadata"] |= {
        "uid": "7b0c",
        "resourceVersion": "12",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"password": "x"}'},
    }
    read["status"] = {"phase": "Running"}
    assert diff_manifests(a_pod(), read) == ()


def test_annotations_that_people_write_stay():
    before, after = a_pod(), a_pod()
    after["metadata"]["annotations"] = {"team": "a", "deployment.kubernetes.io/revision": "4"}
    assert [line for line in shown(before, after) if line[0] == "+"] == ["+  annotations:", "+    team: a"]


@pytest.mark.parametrize(
    ("field", "items"),
    [
        ("env", [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
        ("ports", [{"containerPort": 80}, {"containerPort": 443, "protocol": "UDP"}]),
        ("volumeMounts", [{"mountPath": "/a", "name": "v"}, {"mountPath": "/b", "name": "v"}]),
        ("resources", {"claims": [{"name": "x"}, {"name": "y"}]}),
    ],
)
def test_lists_that_are_merged_by_a_key_have_no_order(field, items):
    turned = (
        {"claims": items["claims"][::-1]} if isinstance(items, dict) else list(reversed(copy.deepcopy(items)))
    )
    assert diff_manifests(a_pod(**{field: items}), a_pod(**{field: turned})) == ()


def test_an_item_that_moves_and_changes_shows_alone():
    before = a_pod(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])
    after = a_pod(env=[{"name": "B", "value": "3"}, {"name": "A", "value": "1"}])
    assert [line for line in shown(before, after) if line[0] in "+-"] == [
        "-      value: '2'",
        "+      value: '3'",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (a_pod(args=["a", "b"]), a_pod(args=["b", "a"])),
        # $(A) is only known to variables behind it.
        (
            a_pod(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]),
            a_pod(env=[{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]),
        ),
    ],
)
def test_order_that_means_something_shows(before, after):
    assert shown(before, after)


def test_finalizers_are_a_set_and_ports_of_a_service_have_a_key():
    def service(ports, finalizers):
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "s", "finalizers": finalizers},
            "spec": {"ports": ports},
        }

    first = {"port": 80}
    second = {"port": 53, "protocol": "UDP"}
    assert diff_manifests(service([first, second], ["a", "b"]), service([second, first], ["b", "a"])) == ()


def test_an_object_that_differs_in_noise_alone_is_unchanged(make):
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    sides = []
    for order in (env, env[::-1]):
        pods = make.pod_spec()
        pods["containers"][0]["env"] = order
        sides.append(make.program(make.workload("Job", "a", pods)))
    assert compare_programs(*sides) == ()


def test_nothing_of_the_input_is_changed():
    manifest = a_pod(env=[{"name": "B"}, {"name": "A"}])
    kept = copy.deepcopy(manifest)
    without_noise(manifest)
    assert manifest == kept


@pytest.mark.parametrize("field", ["data", "stringData"])
def test_a_secret_that_changes_shows_without_its_values(field):
    def secret(**values):
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, field: values}

    before, after = (
        secret(kept="hunter1", token="hunter2"),
        secret(kept="hunter1", token="hunter3", new="hunter4"),
    )
    lines = shown(before, after)
    assert not any("hunter" in line for line in lines)
    assert f"-  token: '{SECRET}'" in lines
    assert f"+  token: '{CHANGED_SECRET}'" in lines
    assert f"+  new: '{SECRET}'" in lines
    assert not any("hunter" in line for one in ((before, None), (None, after)) for line in shown(*one))


def test_a_secret_with_data_of_another_type_shows_none_of_it():
    odd = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": ["hunter2"]}
    assert not any("hunter" in line for line in shown(None, odd))
