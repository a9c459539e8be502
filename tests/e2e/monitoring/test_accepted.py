"""The API server takes the objects of GpuMonitoring, with the definitions of the Prometheus operator."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.monitoring.conftest import objects_of
from tests.support.charts import find_testdata
from tools.cluster import Api, ApiError, ControlPlane

pytestmark = pytest.mark.e2e

NAMESPACES = ("watching", "plugins")
CRD = "apiextensions.k8s.io/v1/CustomResourceDefinition"


@pytest.fixture(scope="module")
def taking(control_plane: ControlPlane) -> Iterator[Api]:
    """A server that knows rules and monitors for the time of these tests."""
    found = find_testdata(os.environ)
    if found is None:
        pytest.skip(
            "definitions of other projects are not here: set DRA_INFRA_TESTDATA to the folder with crds/"
        )
    [folder] = (found / "crds").glob("prometheus-operator-*")
    definitions = [yaml.load(file.read_text(), yaml.CSafeLoader) for file in sorted(folder.glob("*.yaml"))]
    with control_plane.api() as api:
        for each in definitions:
            api.create(each)
            api.wait_until(CRD, each["metadata"]["name"], is_established)
        for name in NAMESPACES:
            api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield api
        for each in definitions:
            api.delete(CRD, each["metadata"]["name"])
        for name in NAMESPACES:
            api.delete("v1/Namespace", name)


def is_established(definition: dict[str, object]) -> bool:
    status = definition.get("status")
    conditions = (status.get("conditions") if isinstance(status, dict) else None) or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def test_every_object_is_taken_and_nothing_of_it_is_dropped(taking: Api) -> None:
    objects = objects_of("1.37", namespace="watching", selected_by={"release": "prometheus"})
    assert sorted(objects) == ["ConfigMap", "PrometheusRule", "Service", "ServiceMonitor"]
    for kind, manifest in objects.items():
        made = taking.create(manifest)
        part = "data" if kind == "ConfigMap" else "spec"
        assert made["metadata"]["labels"] == manifest["metadata"]["labels"]
        for key, value in manifest[part].items():
            if kind != "Service":
                assert made[part][key] == value


def test_a_rule_that_is_none_is_refused(taking: Api) -> None:
    rule = objects_of("1.37", namespace="watching")["PrometheusRule"]
    rule["spec"]["groups"][0]["rules"][0]["for"] = "a while"
    with pytest.raises(ApiError, match=r"rules\[0\]\.for"):
        taking.create({**rule, "metadata": {"name": "broken", "namespace": "watching"}})
