"""Texts and files that name resources and ask for none, which no gate stops at."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Outcome
from tests.support.migration.device_plugin_cases import Case, cases

WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))
QUERY = 'sum(kube_pod_container_resource_requests{resource="nvidia_com_gpu"})'
RULES = [{"name": "gpu", "rules": [{"alert": "Full", "expr": QUERY}]}]

DOCUMENTS: dict[str, dict[str, Any]] = {
    "dashboard": {
        "title": "GPU",
        "panels": [{"description": "Shows nvidia.com/gpu", "targets": [{"expr": QUERY}]}],
    },
    "dashboard of an API": {"dashboard": {"title": "GPU", "panels": [{"targets": [{"expr": QUERY}]}]}},
    "schema": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"resource": {"default": "nvidia.com/gpu"}},
    },
    "schema without its name": {
        "type": "object",
        "properties": {"limits": {"properties": {"nvidia.com/gpu": {"type": "integer"}}}},
    },
    "test of a chart": {
        "suite": "deployment",
        "tests": [
            {
                "set": {"resources": {"limits": {"nvidia.com/gpu": 1}}},
                "asserts": [{"equal": {"value": "nvidia.com/gpu"}}],
            }
        ],
    },
    "rules": {"groups": RULES},
}
OBJECTS: dict[str, dict[str, Any]] = {
    "PrometheusRule": {"apiVersion": "monitoring.coreos.com/v1", "spec": {"groups": RULES}},
    "VMRule": {"apiVersion": "operator.victoriametrics.com/v1beta1", "spec": {"groups": RULES}},
    "GrafanaDashboard": {
        "apiVersion": "grafana.integreatly.org/v1beta1",
        "spec": {"json": json.dumps(DOCUMENTS["dashboard"])},
    },
}
WRITERS: dict[str, Callable[[Any], str]] = {"json": json.dumps, "yaml": yaml.safe_dump}


def outcomes(*objects: dict[str, Any]) -> set[Outcome]:
    return {each.outcome for done in migrate_objects(objects, WHOLE) for each in done.remarks}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_file_that_asks_for_nothing_is_kept(name: str):
    assert outcomes(DOCUMENTS[name]) == {"kept"}


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_of_monitoring_is_kept(kind: str):
    assert outcomes({**OBJECTS[kind], "kind": kind, "metadata": {"name": "gpu"}}) == {"kept"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", ["dashboard", "schema"])
def test_a_text_that_asks_for_nothing_is_kept(name: str, writer: str):
    text = WRITERS[writer](DOCUMENTS[name])
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"gpu.json": text}}
    assert outcomes(data) == {"kept"}
    assert outcomes({"dashboards": {"default": {"gpu": {"json": text}}}}) == {"kept"}


@pytest.mark.parametrize("field", ["description", "display_name", "displayName", "title", "help"])
def test_words_for_people_ask_for_nothing(field: str):
    profile = {field: "One nvidia.com/gpu of the pool"}
    assert outcomes({"singleuser": {"profileList": [profile]}}) == {"kept"}
    own = {"apiVersion": "x.example.com/v1", "kind": "Offer", "metadata": {"name": "a"}, "spec": profile}
    assert outcomes(own) == {"kept"}
    asking = {"limits": {"nvidia.com/gpu": 1}}
    assert outcomes({"singleuser": {"profileList": [{**profile, **asking}]}}) == {"kept", "decide"}


@pytest.mark.parametrize(
    "field",
    ["tolerations", "extra_tolerations", "extraTolerations", "node_selector", "nodeSelector", "taints"],
)
def test_keys_of_taints_ask_for_nothing(field: str):
    taint = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    override = {field: {"nvidia.com/gpu": "true"} if "elector" in field else taint}
    assert outcomes({"singleuser": {"profileList": [{"kubespawner_override": override}]}}) == set()


@pytest.mark.parametrize(
    "document",
    [
        {"title": "a", "panels": "none", "resources": {"limits": {"nvidia.com/gpu": 1}}},
        {"type": "object", "resources": {"limits": {"nvidia.com/gpu": 1}}},
        {"tests": [{"name": "a"}], "resources": {"limits": {"nvidia.com/gpu": 1}}},
        {"groups": [{"name": "a", "limits": {"nvidia.com/gpu": 1}}]},
        {"extraObjects": ["kind: Pod\nlimits: {nvidia.com/gpu: 1}\n"]},
    ],
)
def test_what_only_looks_like_it_is_to_decide(document: dict[str, Any]):
    assert outcomes(document) == {"decide"}


def test_an_autoscaler_by_such_a_query_is_to_decide():
    trigger = {"type": "prometheus", "metadata": {"query": QUERY}}
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "a"}}
    assert outcomes({**scaled, "spec": {"triggers": [trigger]}}) == {"decide"}


def test_names_that_llm_d_reads_without_claims_alone_ask_for_nothing():
    values = {
        "accelerator": {"type": "nvidia", "dra": True, "resources": {"nvidia": "nvidia.com/gpu"}},
        "modelArtifacts": {"name": "m"},
        "decode": {"parallelism": {"tensor": 2}, "containers": [{"name": "vllm", "image": "x:1"}]},
    }
    assert outcomes(values) == set()
    without = {**values, "accelerator": {"resources": {"nvidia": "nvidia.com/gpu"}}}
    (done,) = migrate_objects([without], WHOLE)
    assert done.manifest is not None
    assert outcomes(dict(done.manifest)) == set()


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_what_the_migration_wrote_asks_for_no_new_decision(case: Case):
    once = case.migrate()
    written = [each for done in once for each in (done.manifest, *done.added) if each is not None]
    again = migrate_objects(written, case.settings)
    was, now = (
        {(each.path, each.code) for done in all_ for each in done.remarks if each.outcome == "decide"}
        for all_ in (once, again)
    )
    assert now <= was
