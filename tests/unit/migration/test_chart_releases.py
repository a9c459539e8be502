"""Values of charts in every form in which objects and files install charts, and the releases of the charts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from dra_infra.catalog.vocabulary import read_data
from dra_infra.documents.yaml_events import read_documents
from dra_infra.migration.chart_releases import find_installations
from dra_infra.migration.chart_values import is_values, migrate_values
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings

WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))
Values = dict[str, Any]

VALUES: dict[str, Values] = {
    "ollama": {"ollama": {"gpu": {"enabled": True, "type": "nvidia", "number": 2}}},
    "ollama-mig": {"ollama": {"gpu": {"enabled": True, "nvidiaResource": "nvidia.com/mig-1g.10gb"}}},
    "ollama-knative": {"ollama": {"gpu": {"enabled": True}}, "knative": {"enabled": True}},
    "llm-d-modelservice": {"modelArtifacts": {"name": "m"}, "decode": {"parallelism": {"tensor": 2}}},
    "vllm-stack": {"servingEngineSpec": {"modelSpec": [{"name": "a", "requestGPU": 4}]}},
    "ray-cluster": {"head": {"resources": {"limits": {"nvidia.com/gpu": 1}}}},
    "app-template": {
        "controllers": {"a": {"containers": {"b": {"resources": {"limits": {"nvidia.com/gpu": 1}}}}}}
    },
    "jupyterhub": {"singleuser": {"extraResource": {"limits": {"nvidia.com/gpu": "1"}}}},
    "another": {"resources": {"limits": {"nvidia.com/gpu": 1}}},
    "another-old": {"resources": {"limits": {"alpha.kubernetes.io/nvidia-gpu": 1}}},
}


def an_object(version: str, kind: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": "ml"}, "spec": spec}


def text_of(values: Values) -> str:
    return yaml.safe_dump(values, sort_keys=False)


def parameters_of(value: Any, above: str = "") -> Iterator[tuple[str, str]]:
    """Names and values as `helm --set` takes them."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value)
    for key, below in items:
        name = f"{above}[{key}]" if isinstance(value, list) else f"{above}.{key.replace('.', chr(92) + '.')}"
        if isinstance(below, (dict, list)):
            yield from parameters_of(below, name)
        else:
            yield name.removeprefix("."), json.dumps(below).strip('"')


def an_application(version: str = "argoproj.io/v1alpha1", **helm: Any) -> dict[str, Any]:
    return an_object(version, "Application", {"source": {"repoURL": "r", "helm": helm}})


WRAPPINGS: dict[str, Callable[[Values], dict[str, Any]]] = {
    "HelmRelease": lambda values: an_object("helm.toolkit.fluxcd.io/v2", "HelmRelease", {"values": values}),
    "Application, object": lambda values: an_application(valuesObject=values),
    "Application, text": lambda values: an_application(values=text_of(values)),
    "Application, parameters": lambda values: an_application(
        parameters=[{"name": name, "value": value} for name, value in parameters_of(values)]
    ),
    "Application, several sources": lambda values: an_object(
        "argoproj.io/v1alpha1",
        "Application",
        {"sources": [{"ref": "v"}, {"helm": {"values": text_of(values)}}]},
    ),
    "ApplicationSet": lambda values: an_object(
        "argoproj.io/v1alpha1",
        "ApplicationSet",
        {"template": {"spec": {"source": {"helm": {"values": text_of(values)}}}}},
    ),
    "HelmChart, text": lambda values: an_object(
        "helm.cattle.io/v1", "HelmChart", {"valuesContent": text_of(values)}
    ),
    "HelmChart, object": lambda values: an_object("helm.cattle.io/v1", "HelmChart", {"values": values}),
    "HelmChart, set": lambda values: an_object(
        "helm.cattle.io/v1", "HelmChart", {"set": dict(parameters_of(values))}
    ),
    "HelmChartConfig": lambda values: an_object(
        "helm.cattle.io/v1", "HelmChartConfig", {"valuesContent": text_of(values)}
    ),
    "Kustomization": lambda values: {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "helmCharts": [{"name": "a", "valuesInline": values}],
    },
    "kustomization without a kind": lambda values: {"helmCharts": [{"name": "a", "valuesInline": values}]},
    "fleet.yaml": lambda values: {"helm": {"chart": "a", "values": values}},
    "helmfile": lambda values: {"releases": [{"name": "a", "chart": "x/a", "values": ["v.yaml", values]}]},
    "ConfigMap": lambda values: {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
        "data": {"values.yaml": text_of(values)},
    },
    "a text of another kind": lambda values: an_object(
        "config.projectsveltos.io/v1beta1", "ClusterProfile", {"helmCharts": [{"values": text_of(values)}]}
    ),
    "an object of another kind": lambda values: an_object(
        "helm.crossplane.io/v1beta1", "Release", {"forProvider": {"values": values}}
    ),
}
ALL_VALUES = pytest.mark.parametrize("name", VALUES)


def show(path: str, code: str) -> tuple[str, str]:
    """The last part of a path, which is the same in all wrappings, and the code."""
    return path.rpartition(".")[2], "values" if code == "resource-in-text" else code


@ALL_VALUES
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_is_said_of_values_is_said_of_them_in_every_wrapping(name: str, wrapping: str):
    bare = migrate_values(VALUES[name], WHOLE)
    assert bare is not None
    wrapped = WRAPPINGS[wrapping](VALUES[name])
    (done,) = migrate_objects([wrapped], WHOLE)
    assert done.remarks, "values that ask for devices are never passed over in silence"
    is_changed = done.manifest is not wrapped
    assert is_changed or any(each.outcome == "decide" for each in done.remarks)
    if is_changed:
        assert {each.code for each in done.remarks} == {each.code for each in bare.remarks}
        (again,) = migrate_objects([done.manifest or {}], WHOLE)
        assert again.manifest is done.manifest
        assert all(each.outcome != "changed" for each in again.remarks)


@ALL_VALUES
@pytest.mark.parametrize("above", ["sub", "sub/ollama", "chart"])
def test_values_of_a_subchart_are_those_of_the_chart(name: str, above: str):
    values = VALUES[name]
    for key in reversed(above.split("/")):
        values = {key: values}
    assert is_values(values)
    done = migrate_values(values, WHOLE)
    assert done is not None
    assert done.remarks


@pytest.mark.parametrize(
    "wrapping",
    [each for each in WRAPPINGS if "text" in each and "another" not in each]
    + ["ApplicationSet", "HelmChartConfig", "HelmRelease", "fleet.yaml", "helmfile", "Kustomization"],
)
def test_values_of_ollama_are_written_where_they_stand(wrapping: str):
    (done,) = migrate_objects([WRAPPINGS[wrapping](VALUES["ollama"])], WHOLE)
    written = json.dumps(done.manifest)
    assert "draEnabled" in written
    assert [each.code for each in done.remarks] == ["values-to-claims"]


def test_a_text_keeps_its_comments_and_blank_lines():
    text = "# ours\nollama:\n\n  gpu:\n    enabled: true  # yes\n    number: 2\nport: 1\n"
    (done,) = migrate_objects([an_application(values=text)], WHOLE)
    assert done.manifest is not None
    changed = done.manifest["spec"]["source"]["helm"]["values"]
    assert changed == text.replace("    number: 2\n", "    number: 2\n    draEnabled: true\n")


def test_a_text_that_something_fills_in_first_is_to_decide_where_it_may_ask():
    for text, number in (("{{ if .gpu }}\nollama: {}\n", 1), ("{{ if .x }}\nreplicas: 2\n", 0)):
        (done,) = migrate_objects([an_application(values=text)], WHOLE)
        codes = [(each.path, each.code) for each in done.remarks]
        assert codes == [("spec.source.helm.values", "values-without-claims")] * number


def test_values_in_two_places_are_read_together_and_written_in_one_that_says_all():
    whole, number = {"gpu": {"enabled": True, "number": 1}}, {"ollama": {"gpu": {"number": 4}}}
    apart = an_application(valuesObject={"ollama": {"gpu": {"enabled": True}}}, values=text_of(number))
    apart["spec"]["source"]["helm"]["parameters"] = [{"name": "ollama.gpu.number", "value": "8"}]
    (done,) = migrate_objects([apart], WHOLE)
    assert done.manifest is apart
    (remark,) = done.remarks
    assert remark[1:3] == ("decide", "values-to-claims")
    assert "8 of gpu.nvidia.com" in remark.message
    beside = an_application(valuesObject={"ollama": whole}, parameters=[{"name": "image.tag", "value": "1"}])
    (done,) = migrate_objects([beside], WHOLE)
    assert done.manifest is not None
    assert done.manifest["spec"]["source"]["helm"]["valuesObject"]["ollama"]["gpu"]["draEnabled"] is True


def test_values_beside_values_object_are_ignored_as_argo_cd_ignores_them():
    whole = {"ollama": {"gpu": {"enabled": True, "number": 1}}}
    ignored = an_application(valuesObject=whole, values=text_of({"ollama": {"gpu": {"number": 4}}}))
    (done,) = migrate_objects([ignored], WHOLE)
    assert "4 of gpu.nvidia.com" not in "".join(each.message for each in done.remarks)
    assert done.manifest is not None
    helm = done.manifest["spec"]["source"]["helm"]
    assert helm["valuesObject"]["ollama"]["gpu"]["draEnabled"] is True
    assert helm["values"] == ignored["spec"]["source"]["helm"]["values"]


def pinned(chart: str, version: str, values: Values) -> list[dict[str, Any]]:
    """Values of a release of a chart, as each kind of object pins it."""
    inner = {"spec": {"chart": chart, "version": version}}
    source = {"chart": chart, "targetRevision": version, "helm": {"values": text_of(values)}}
    return [
        an_object("helm.toolkit.fluxcd.io/v2", "HelmRelease", {"chart": inner, "values": values}),
        an_object("argoproj.io/v1alpha1", "Application", {"source": source}),
        an_object("argoproj.io/v1alpha1", "ApplicationSet", {"template": {"spec": {"sources": [source]}}}),
        an_object(
            "helm.cattle.io/v1",
            "HelmChart",
            {"chart": f"oci://r.example/{chart}", "version": version, "valuesContent": text_of(values)},
        ),
        {"helmCharts": [{"name": chart, "version": version, "valuesInline": values}]},
        {"helm": {"chart": chart, "version": version, "values": values}},
        {"releases": [{"chart": f"repo/{chart}", "version": version, "values": [values]}]},
    ]


OLDER = {"ollama": "1.55.0", "llm-d-modelservice": "v0.3.18", "ray-cluster": "1.5.1"}
NEWER = {"ollama": "1.56.0", "llm-d-modelservice": "v0.4.0", "ray-cluster": "1.6.0"}


@pytest.mark.parametrize("chart", OLDER)
def test_nothing_is_written_for_a_release_that_does_not_take_it(chart: str):
    for was in pinned(chart, OLDER[chart], VALUES[chart]):
        (done,) = migrate_objects([was], WHOLE)
        assert done.manifest is was
        old = [each for each in done.remarks if each.code == "chart-too-old"]
        assert [each.outcome for each in old] == ["decide"]
        assert old[0].path.endswith(("version", "targetRevision"))


@pytest.mark.parametrize("chart", NEWER)
def test_a_release_that_takes_it_is_not_named_again(chart: str):
    for was in pinned(chart, NEWER[chart], VALUES[chart]):
        (done,) = migrate_objects([was], WHOLE)
        assert "chart-too-old" not in {each.code for each in done.remarks}
        assert not any(f"from {chart}" in each.message for each in done.remarks)


@pytest.mark.parametrize("version", ["", "1.x", ">=1.20.0", "*", "${OLLAMA}", "~1.24"])
def test_where_no_release_is_known_the_first_one_is_named(version: str):
    for was in pinned("ollama", version, VALUES["ollama"]):
        (done,) = migrate_objects([was], WHOLE)
        (remark,) = done.remarks
        assert remark.code == "values-to-claims"
        assert remark.message.endswith("from ollama 1.56.0 on")


@pytest.mark.parametrize("version", ["1.24.0", "1.25.0", "1.26.0", "1.55.0", "1.15.0"])
def test_what_an_older_release_makes_of_the_value_is_reported_too(version: str):
    values = {"ollama": {"gpu": {"enabled": True, "draEnabled": True}}}
    for was in pinned("ollama", version, values):
        (done,) = migrate_objects([was], WHOLE)
        assert [(each.outcome, each.code) for each in done.remarks] == [("decide", "chart-too-old")]
    for was in pinned("ollama", "1.56.0", values):
        (done,) = migrate_objects([was], WHOLE)
        assert done.remarks == ()


def test_the_release_of_another_chart_says_nothing_of_its_subchart():
    (was, *_) = pinned("umbrella", "0.1.0", {"ollama": VALUES["ollama"]})
    (done,) = migrate_objects([was], WHOLE)
    assert [each.code for each in done.remarks] == ["values-to-claims"]


def test_every_row_of_the_table_has_a_source_and_a_chart_its_first_release():
    data = read_data("migrated_charts.yaml")
    for each in (*data["charts"], *data["installers"]):
        assert each["source"]
    for each in data["charts"]:
        assert each["value"]
        assert each["older"]
        assert len(str(each["since"]).split(".")) == 3


def test_names_of_parameters_are_read_as_helm_reads_them():
    parameters = [
        {"name": r"resources.limits.nvidia\.com/gpu", "value": "2"},
        {"name": "a.b[1].c", "value": "true"},
        {"name": "a.b[900].c", "value": "x"},
        {"name": "", "value": "x"},
    ]
    (found,) = find_installations(an_application(parameters=parameters))
    (values,) = found.values
    assert values.data == {
        "resources": {"limits": {"nvidia.com/gpu": 2}},
        "a": {"b": [None, {"c": True}]},
    }


@pytest.mark.parametrize("text", ["", "- a\n", "a: 1\n---\nb: 2\n", "x", "a: [\n"])
def test_texts_without_values_ask_for_nothing(text: str):
    (done,) = migrate_objects([an_application(values=text)], WHOLE)
    assert done.remarks == ()
    assert len(list(read_documents("a: 1\n"))) == 1
