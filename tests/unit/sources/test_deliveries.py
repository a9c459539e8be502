"""What objects of Argo CD and Flux deploy, in every form that they are written in."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.migration.chart_releases import merge_values
from dra_infra.sources.deliveries import Delivery, ValuesFile, ValuesObject, read_deliveries

OWN = "https://git.example/acme/gpu.git"


def application(source: Any, **spec: Any) -> dict[str, Any]:
    where = {"source": source} if isinstance(source, dict) else {"sources": source}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": "app", "namespace": "argocd"},
        "spec": {"destination": {"name": "in-cluster", "namespace": "ml"}, **where, **spec},
    }


def flux(kind: str, **spec: Any) -> dict[str, Any]:
    group = {"HelmRelease": "helm", "Kustomization": "kustomize"}[kind]
    return {
        "apiVersion": f"{group}.toolkit.fluxcd.io/v2",
        "kind": kind,
        "metadata": {"name": "app", "namespace": "apps"},
        "spec": spec,
    }


def only(manifest: dict[str, Any]) -> Delivery:
    (found,) = read_deliveries(manifest, {("GitRepository", "apps", "repo"): OWN})
    return found


@pytest.mark.parametrize(
    ("helm", "values"),
    [
        ({"values": "a: 1\n"}, {"a": 1}),
        ({"valuesObject": {"a": 1}}, {"a": 1}),
        # ValuesYAML of argo-cd returns one of both.
        ({"valuesObject": {"a": 1}, "values": "a: 2\nb: 3\n"}, {"a": 1}),
        ({"valuesObject": {}, "values": "b: 3\n"}, {}),
        (
            {"valuesObject": {"a": {"x": 1, "y": 2}}, "parameters": [{"name": "a.x", "value": "5"}]},
            {"a": {"x": 5, "y": 2}},
        ),
        (
            {"parameters": [{"name": "a", "value": "5", "forceString": True}, {"name": "b", "value": "6"}]},
            {"a": "5", "b": 6},
        ),
    ],
)
def test_inline_values_of_an_application_count_as_argo_cd_counts_them(
    helm: dict[str, Any], values: dict[str, Any]
):
    found = only(application({"repoURL": OWN, "path": "chart", "helm": helm}))
    assert (merge_values(found.values), found.problem) == (values, "")
    assert (found.release, found.namespace, found.cluster) == ("app", "ml", "default")


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"chart": "vllm", "targetRevision": "1.0"}, "the chart vllm 1.0 of REPO is not fetched"),
        ({"path": "x", "plugin": {}}, "a plugin of Argo CD"),
        ({"path": "x", "helm": {"fileParameters": [{"name": "a", "path": "b"}]}}, "fileParameters"),
        ({"path": "x", "helm": {"values": "{{ if }}"}}, "no YAML"),
        ({"path": "x", "helm": {"valueFiles": ["https://example.com/v.yaml"]}}, "is not fetched"),
        ({"path": "x", "helm": {"valueFiles": ["$other/v.yaml"]}}, "another repository"),
        ({"path": "x", "directory": {"include": "*.yaml"}}, "include and exclude"),
        ({"path": "x", "directory": {"jsonnet": {"tlas": []}}}, "Jsonnet"),
        ({"path": "x", "kustomize": {"components": ["../c"]}}, "components of its kustomization"),
        ({"path": "x", "kustomize": {"patches": [{"path": "p.yaml"}]}}, "patches in files"),
        ({"path": "x", "kustomize": {"replicas": [{"name": "a", "count": "x"}]}}, "no numbers"),
        ({"path": "x", "helm": {"a": 1}, "kustomize": {"namePrefix": "a"}}, "helm and kustomize"),
    ],
)
def test_what_cannot_be_rendered_here_has_a_reason(source: dict[str, Any], problem: str):
    found = only(application({"repoURL": "REPO", **source}))
    assert problem in found.problem


def test_values_files_come_from_the_chart_the_top_and_another_source():
    found = only(
        application(
            [
                {"repoURL": OWN, "ref": "values"},
                {
                    "repoURL": OWN,
                    "path": "charts/x",
                    "helm": {
                        "valueFiles": ["prod.yaml", "/top.yaml", "$values/env/prod.yaml"],
                        "ignoreMissingValueFiles": True,
                    },
                },
            ]
        )
    )
    assert found.at == "spec.sources[1]"
    assert found.files == [
        ValuesFile(path="prod.yaml", is_optional=True),
        ValuesFile(path="top.yaml", from_top=True, is_optional=True),
        ValuesFile(path="env/prod.yaml", from_top=True, is_optional=True),
    ]


def test_several_sources_hide_the_one():
    manifest = application([{"repoURL": OWN, "path": "a"}, {"repoURL": OWN, "path": "b"}])
    manifest["spec"]["source"] = {"repoURL": OWN, "path": "c"}
    assert [each.path for each in read_deliveries(manifest, {})] == ["a", "b"]


def test_another_cluster_is_named():
    for destination, cluster in (
        ({"server": "https://kubernetes.default.svc"}, "default"),
        ({"server": "https://10.0.0.1"}, "https://10.0.0.1"),
        ({"name": "east"}, "east"),
    ):
        manifest = application({"repoURL": OWN, "path": "x"})
        manifest["spec"]["destination"] = destination
        assert only(manifest).cluster == cluster
    reference = {"secretRef": {"name": "east"}}
    source = {"kind": "GitRepository", "name": "repo"}
    assert only(flux("Kustomization", kubeConfig=reference, sourceRef=source)).cluster == "east"


def test_a_helm_release_has_its_names_values_and_repository():
    chart = {
        "chart": "./charts/x",
        "sourceRef": {"kind": "GitRepository", "name": "repo"},
        "valuesFiles": ["charts/x/values.yaml"],
    }
    found = only(
        flux(
            "HelmRelease",
            chart={"spec": chart},
            targetNamespace="ml",
            values={"a": 1},
            valuesFrom=[
                {"kind": "ConfigMap", "name": "c"},
                {"kind": "Secret", "name": "s", "valuesKey": "k", "targetPath": "a.b", "optional": True},
            ],
        )
    )
    assert (found.release, found.namespace, found.repository, found.problem) == ("ml-app", "ml", OWN, "")
    assert found.files == [ValuesFile(path="charts/x/values.yaml", from_top=True)]
    assert found.objects == [
        ValuesObject(kind="ConfigMap", name="c", key="values.yaml"),
        ValuesObject(kind="Secret", name="s", key="k", target="a.b", is_optional=True),
    ]
    assert merge_values(found.values) == {"a": 1}


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (
            flux(
                "HelmRelease",
                chart={"spec": {"chart": "x", "sourceRef": {"kind": "HelmRepository", "name": "h"}}},
            ),
            "the chart x  of HelmRepository h is not fetched",
        ),
        (flux("HelmRelease", chartRef={"kind": "OCIRepository", "name": "o"}), "of OCIRepository o"),
        (
            flux(
                "HelmRelease",
                chart={"spec": {"chart": "x", "sourceRef": {"kind": "GitRepository", "name": "repo"}}},
                postRenderers=[{"kustomize": {}}],
            ),
            "postRenderers",
        ),
        (flux("Kustomization", sourceRef={"kind": "Bucket", "name": "b"}), "its source of Bucket b"),
        (
            flux("Kustomization", sourceRef={"kind": "GitRepository", "name": "repo"}, components=["../c"]),
            "components of its kustomization",
        ),
    ],
)
def test_what_flux_fetches_or_changes_elsewhere_has_a_reason(manifest: dict[str, Any], problem: str):
    assert problem in only(manifest).problem
