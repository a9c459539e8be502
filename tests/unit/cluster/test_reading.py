from __future__ import annotations

from typing import Any

import pytest

from dra_infra.client.kinds import CLAIMS, DEFINITIONS, PODS, SLICES, SNAPSHOT, TAINT_RULES
from dra_infra.cluster import reading
from dra_infra.cluster.capture import capture
from dra_infra.documents.yaml import read_manifests
from dra_infra.errors import ClusterError
from dra_infra.output.secrets import SecretMask
from tests.unit.cluster.conftest import Query, Reply, Server


def item(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, **more}


def page(*items: dict[str, Any], version: str = "7", more: str = "") -> dict[str, Any]:
    return {
        "metadata": {"resourceVersion": version, **({"continue": more} if more else {})},
        "items": list(items),
    }


def test_pages_are_put_together(server: Server) -> None:
    pages = {"": page(item("b"), more="x"), "x": page(item("c"), more="y"), "y": page(item("a"))}
    server.answers["/api/v1/pods"] = lambda query: (200, pages[query.get("continue", "")])
    found = server.reader().list(PODS)
    assert [each["metadata"]["name"] for each in found.items] == ["a", "b", "c"]
    assert found.resource_versions == {"": "7"}
    assert {query["limit"] for _, query, _ in server.asked} == {"500"}


def test_a_list_that_ran_out_begins_again_and_then_asks_for_everything(server: Server) -> None:
    def answer(query: Query) -> Reply:
        if "limit" not in query:
            return 200, page(item("a"), item("b"))
        return (410, {"message": "expired"}) if "continue" in query else (200, page(item("a"), more="x"))

    server.answers["/api/v1/pods"] = answer
    assert [each["metadata"]["name"] for each in server.reader().list(PODS).items] == ["a", "b"]
    assert ["limit" in query for _, query, _ in server.asked] == [True, True, True, True, False]


def test_the_best_version_that_is_served_is_read_as_v1(server: Server) -> None:
    device = {"name": "gpu-0", "basic": {"attributes": {"a": {"int": 1}}}}
    spec = {"driver": "d", "pool": {"name": "p"}, "nodeName": "n", "devices": [device]}
    server.says("/apis/resource.k8s.io/v1beta1/resourceslices", (200, page(item("s", spec=spec))))
    found = server.reader().list(SLICES)
    assert found.version == "v1beta1"
    assert found.items[0]["apiVersion"] == "resource.k8s.io/v1"
    assert found.items[0]["spec"]["devices"] == [{"name": "gpu-0", "attributes": {"a": {"int": 1}}}]
    tried = [path.split("/")[3] for path, _, _ in server.asked]
    assert tried == ["v1", "v1beta2", "v1beta1"]


def test_a_kind_that_is_not_served_is_told(server: Server) -> None:
    (problem,) = server.reader().list(CLAIMS).problems
    assert (problem.path, problem.code) == ("resourceclaims", "kind-not-served")


def test_a_kind_that_may_not_be_listed_is_told_with_the_rule(server: Server) -> None:
    server.says("/api/v1/namespaces/a/pods", (200, page(item("p", "a"))))
    server.says("/api/v1/namespaces/b/pods", (403, {"message": "no"}))
    found = server.reader("a", "b").list(PODS)
    assert found.is_seen
    (problem,) = found.problems
    assert (problem.path, problem.code, problem.severity) == ("pods", "cluster-forbidden", "warning")
    assert 'resources: ["pods"]' in problem.hint
    assert "namespace b" in problem.message


def test_a_server_that_fails_ends_it(server: Server) -> None:
    server.says("/api/v1/pods", (500, {"message": "etcd is away"}))
    with pytest.raises(ClusterError) as caught:
        server.reader().list(PODS)
    assert caught.value.problems[0].code == "cluster-answer"
    server.says("/api/v1/pods", (200, []))
    with pytest.raises(ClusterError, match="no list"):
        server.reader().list(PODS)


def test_of_definitions_only_the_names_are_asked_for(server: Server) -> None:
    whole = item("computedomains.resource.nvidia.com", spec={"large": True})
    server.says("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", (200, page(whole)))
    (found,) = server.reader().list(DEFINITIONS, names_only=True).items
    assert set(found) == {"apiVersion", "kind", "metadata"}
    assert "PartialObjectMetadataList" in server.asked[-1][2]["Accept"]


def test_secrets_and_config_maps_are_never_asked_for(server: Server) -> None:
    server.says("/api/v1/pods", (200, page(item("p", "a"))))
    capture(server.reader(), mask=SecretMask(), made_by="test")
    asked = {path for path, _, _ in server.asked}
    assert asked >= {"/api/v1/pods", "/apis/batch/v1/jobs"}
    assert not [path for path in asked if "secrets" in path or "configmaps" in path]
    assert not {"Secret", "ConfigMap"} & {kind.name for kind in SNAPSHOT}


def test_what_is_not_there_on_most_clusters_is_not_told(server: Server) -> None:
    server.says("/api/v1/pods", (200, page(item("p", "a"))))
    problems = capture(server.reader(), mask=SecretMask(), made_by="test").problems
    assert SLICES.plural in {each.path for each in problems}
    assert TAINT_RULES.plural not in {each.path for each in problems}


def test_a_snapshot_of_nothing_is_an_error(server: Server) -> None:
    with pytest.raises(ClusterError) as caught:
        capture(server.reader(), mask=SecretMask(), made_by="test")
    assert {each.severity for each in caught.value.problems} == {"error"}


def test_a_snapshot_says_how_new_each_kind_is_and_is_read_back(server: Server) -> None:
    server.says("/api/v1/pods", (200, page(item("p", "a"), version="41")))
    text = capture(server.reader(), mask=SecretMask(), made_by="dra-infra 1").text
    assert "#   pods: 41" in text
    assert "by dra-infra 1" in text
    assert [each["metadata"]["name"] for each in read_manifests(text)] == ["p"]


def test_a_snapshot_that_is_not_read_back_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dra_infra.cluster.capture.MAX_BYTES", 100)
    server.says("/api/v1/pods", (200, page(item("p", "a"))))
    problems = capture(server.reader(), mask=SecretMask(), made_by="test").problems
    assert "snapshot-too-large" in {each.code for each in problems}


def test_a_page_is_as_large_as_that_of_kubectl() -> None:
    assert reading.PAGE == 500
