from __future__ import annotations

import json
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from dra_infra.specs.metrics import alerts


def made(minor: str = "1.37", **arguments: Any) -> dict[str, dict[str, Any]]:
    program = synth_function(
        lambda: dra.GpuMonitoring("gpus", **arguments), config={"dra-infra:kubernetes": minor}
    )
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return {
        f"{each.manifest['kind']} {each.manifest['metadata']['name']}": dict(each.manifest)
        for each in program.objects
    }


def rules(minor: str = "1.37", **arguments: Any) -> dict[str, dict[str, Any]]:
    groups = made(minor, **arguments)["PrometheusRule gpus"]["spec"]["groups"]
    assert [each["name"] for each in groups] == list(dict.fromkeys(each["name"] for each in groups))
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def dashboard(**arguments: Any) -> dict[str, Any]:
    data = made(**arguments)["ConfigMap gpus-dashboard"]["data"]
    found: dict[str, Any] = json.loads(data["gpus.json"])
    return found


@pytest.mark.parametrize(
    ("minor", "name"),
    [
        ("1.34", "resourceclaim_controller_resource_claims"),
        ("1.36", "resourceclaim_controller_resource_claims"),
        ("1.37", "dynamic_resource_allocation_resource_claims"),
    ],
)
def test_metrics_are_called_as_the_minor_calls_them(minor: str, name: str):
    rule = rules(minor)["KubeDRAMetricsMissing"]
    assert rule["expr"] == f'absent({name}{{job="kube-controller-manager"}})'


def test_a_gate_brings_the_alerts_that_need_it():
    target = dra.ClusterTarget(kubernetes="1.35", gates={"DRADeviceTaints": True})
    assert "KubeDRADevicesEvicting" in rules(target=target)
    assert "KubeDRADevicesEvicting" not in rules("1.35")


def test_without_a_plugin_nothing_asks_for_it():
    objects = made()
    assert sorted(objects) == ["ConfigMap gpus-dashboard", "PrometheusRule gpus"]
    assert "dra_infra_plugin" not in json.dumps(objects)


def test_each_namespace_of_plugins_has_a_service_and_a_monitor_that_selects_it_alone():
    objects = made(plugin_namespaces=["a", "b"], plugin_port=9090, namespace="monitoring")
    for name, namespace in (("gpus-plugin", "a"), ("gpus-plugin-1", "b")):
        service, monitor = objects[f"Service {name}"], objects[f"ServiceMonitor {name}"]
        assert service["metadata"]["namespace"] == namespace
        assert service["spec"]["ports"][0]["targetPort"] == 9090
        assert monitor["metadata"]["namespace"] == "monitoring"
        assert monitor["spec"]["namespaceSelector"] == {"matchNames": [namespace]}
        selected = monitor["spec"]["selector"]["matchLabels"].items()
        assert selected <= service["metadata"]["labels"].items()
        assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "dra-infra-plugin"


def test_prometheus_and_grafana_find_the_objects_by_the_labels_that_were_asked_for():
    objects = made(
        selected_by={"release": "prom"},
        dashboard={"board": "yes"},
        plugin_namespaces=["a"],
        labels={"t": "x"},
    )
    labels = {name: each["metadata"]["labels"] for name, each in objects.items()}
    assert (
        labels["PrometheusRule gpus"] == labels["ServiceMonitor gpus-plugin"] == {"t": "x", "release": "prom"}
    )
    assert labels["ConfigMap gpus-dashboard"] == {"t": "x", "board": "yes"}
    assert "ConfigMap gpus-dashboard" not in made(dashboard={})


def test_what_is_said_of_an_alert_counts():
    found = rules(
        thresholds={"KubeDRAPrepareSlow": 2.5},
        severities={"KubeDRAPrepareSlow": "critical"},
        without=["KubeDRAClaimQueueLong"],
        jobs={"kubelet": "nodes"},
        runbooks="https://wiki.example.com/gpus",
    )
    rule = found["KubeDRAPrepareSlow"]
    assert rule["expr"].endswith(" > 2.5")
    assert 'job="nodes"' in rule["expr"]
    assert rule["labels"] == {"severity": "critical"}
    assert rule["annotations"]["runbook_url"] == "https://wiki.example.com/gpus#kubedraprepareslow"
    assert "KubeDRAClaimQueueLong" not in found
    assert "runbook_url" not in rules()["KubeDRAPrepareSlow"]["annotations"]


def test_the_dashboard_asks_the_chosen_data_source_and_cluster_in_every_panel():
    board = dashboard(plugin_namespaces=["a"])
    assert [each["name"] for each in board["templating"]["list"]] == ["datasource", "cluster"]
    for panel in board["panels"]:
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all('cluster=~"$cluster"' in each["expr"] for each in panel["targets"])
    places = [(each["gridPos"]["x"], each["gridPos"]["y"]) for each in board["panels"]]
    assert len(set(places)) == len(places) > 8


@pytest.mark.parametrize(
    ("arguments", "code", "path"),
    [
        ({"thresholds": {"KubeDRAPrepareSlo": 1}}, "unsupported-value", "thresholds"),
        ({"thresholds": {"KubeDRAMetricsMissing": 1}}, "unsupported-value", "thresholds"),
        ({"thresholds": {"KubeDRAPrepareSlow": -1}}, "unsupported-value", "thresholds['KubeDRAPrepareSlow']"),
        (
            {"thresholds": {"KubeDRAPrepareSlow": float("nan")}},
            "unsupported-value",
            "thresholds['KubeDRAPrepareSlow']",
        ),
        ({"thresholds": {"KubeDRAPrepareSlow": True}}, "wrong-type", "thresholds['KubeDRAPrepareSlow']"),
        ({"thresholds": [1]}, "wrong-type", "thresholds"),
        (
            {"severities": {"KubeDRAPrepareSlow": "page"}},
            "unsupported-value",
            "severities['KubeDRAPrepareSlow']",
        ),
        ({"severities": {"KubeDRAPrepareSlow": 1}}, "wrong-type", "severities['KubeDRAPrepareSlow']"),
        ({"without": "KubeDRAPrepareSlow"}, "wrong-type", "without"),
        ({"without": ["Nothing"]}, "unsupported-value", "without[0]"),
        ({"jobs": {"etcd": "etcd"}}, "unsupported-value", "jobs"),
        ({"jobs": {"kubelet": 'a"} or vector(1) #'}}, "invalid-name", "jobs['kubelet']"),
        ({"runbooks": "wiki#gpus"}, "unsupported-value", "runbooks"),
        ({"plugin_namespaces": "plugins"}, "wrong-type", "plugin_namespaces"),
        ({"plugin_namespaces": ["Plugins"]}, "invalid-name", "plugin_namespaces[0]"),
        ({"plugin_port": 0}, "unsupported-value", "plugin_port"),
        ({"selected_by": {"release": "a b"}}, "invalid-label", "selected_by['release']"),
        ({"dashboard": {"a b": "1"}}, "invalid-label", "dashboard"),
        ({"namespace": "Monitoring"}, "invalid-name", "namespace"),
    ],
)
def test_what_is_wrong_is_told_at_its_argument(arguments: dict[str, Any], code: str, path: str):
    program = synth_function(
        lambda: dra.GpuMonitoring("gpus", **arguments), config={"dra-infra:kubernetes": "1.37"}
    )
    found = [(each.code, each.path) for each in program.problems if each.severity == "error"]
    assert found == [(code, f'GpuMonitoring("gpus").{path}')]


def test_a_name_that_no_service_can_begin_with_is_refused():
    program = synth_function(lambda: dra.GpuMonitoring("g" * 57), config={"dra-infra:kubernetes": "1.37"})
    assert [each.code for each in program.problems if each.severity == "error"] == ["invalid-name"]
    assert len(alerts()) > 10
