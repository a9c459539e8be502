"""Objects that Argo CD and Flux make: what is rendered, with what, and what is named instead. The real tools: `tests/e2e/review/test_gitops.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dra_infra.sources.delivered_objects import Checkout, Delivered, add_delivered, find_checkout
from dra_infra.sources.files import SourceObject

# The stand-ins print what they were given.
HELM = f"""#!{sys.executable}
import json, sys
data = {{"values": json.dumps(json.load(sys.stdin), sort_keys=True), "arguments": json.dumps(sys.argv[1:])}}
print("---\\n# Source: x/templates/c.yaml\\n" + json.dumps(
    {{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": sys.argv[-2]}}, "data": data}}))
"""
KUBECTL = f"""#!{sys.executable}
import json
written = open("kustomization.yaml").read()
print(json.dumps({{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "k"}}, "data": {{"written": written, "class": "${{class}}"}}}}))
"""
OWN = "https://git.example/acme/gpu.git"
Write = Callable[[str, str], None]


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("helm", HELM), ("kubectl", KUBECTL)):
        tool = tmp_path / "bin" / name
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(text)
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    top = tmp_path / "repository"
    for name, text in {
        "charts/x/Chart.yaml": "apiVersion: v2\nname: x\nversion: 1.0.0\n",
        "charts/x/prod.yaml": "a: file\nb: file\n",
        "kustom/kustomization.yaml": "resources: [../base]\n",
        "base/kustomization.yaml": "resources: [c.yaml]\n",
        "base/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base}\n",
        "plain/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        "plain/below/b.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def app(source: dict[str, Any], name: str = "app", **spec: Any) -> dict[str, Any]:
    destination = {"server": "https://kubernetes.default.svc", "namespace": "ml"}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"destination": destination, "source": {"repoURL": OWN, **source}, **spec},
    }


def flux(kind: str, **spec: Any) -> dict[str, Any]:
    group = {"HelmRelease": "helm", "Kustomization": "kustomize"}[kind]
    return {
        "apiVersion": f"{group}.toolkit.fluxcd.io/v1",
        "kind": kind,
        "metadata": {"name": "app", "namespace": "apps"},
        "spec": spec,
    }


def deliver(top: Path, *manifests: dict[str, Any], remotes: tuple[str, ...] = (OWN,)) -> Delivered:
    sources = [SourceObject.of(str(top / "apps.yaml"), each) for each in manifests]
    checkout = Checkout(top=top, remotes=remotes)
    return add_delivered(sources, lambda _: checkout)


def made_by(delivered: Delivered, *manifests: dict[str, Any]) -> list[Any]:
    given = {json.dumps(each) for each in manifests}
    return [each.manifest for each in delivered.sources if json.dumps(each.manifest) not in given]


def reasons(delivered: Delivered) -> list[str]:
    return [each.reason for each in delivered.not_rendered]


def test_a_chart_is_rendered_as_its_release_with_files_below_inline_values(top: Path):
    manifest = app({"path": "charts/x", "helm": {"valueFiles": ["prod.yaml"], "valuesObject": {"a": 1}}})
    delivered = deliver(top, manifest)
    (made,) = made_by(delivered, manifest)
    assert json.loads(made["data"]["values"]) == {"a": 1, "b": "file"}
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == ("app", "ml")
    assert {"--namespace=ml", "--skip-tests"} <= set(json.loads(made["data"]["arguments"]))
    assert delivered.covers(str(top / "charts/x/templates/c.yaml"))
    assert delivered.not_rendered == []


@pytest.mark.parametrize(
    ("address", "is_own"),
    [
        ("git@git.example:acme/gpu.git", True),
        ("ssh://git@git.example/acme/gpu", True),
        ("https://mirror.example/Acme/gpu/", True),
        ("https://git.example/other/gpu.git", False),
        ("https://git.example/acme/gpu-charts", False),
    ],
)
def test_a_path_of_another_repository_is_not_read_here(top: Path, address: str, *, is_own: bool):
    delivered = deliver(top, app({"path": "charts/x", "repoURL": address}))
    assert ("another repository" in "".join(reasons(delivered))) == (not is_own)
    assert reasons(deliver(top, app({"path": "charts/x", "repoURL": address}), remotes=())) == []


def test_a_kustomization_is_built_and_its_settings_are_put_over_it(top: Path):
    manifest = app({"path": "kustom", "kustomize": {"namePrefix": "p-", "images": ["a=b"]}})
    delivered = deliver(top, manifest)
    (made,) = made_by(delivered, manifest)
    written = json.loads(made["data"]["written"])
    assert (written["namePrefix"], "images" in written) == ("p-", False)
    assert os.path.normpath(written["resources"][0]).endswith("repository/kustom")
    assert made["metadata"]["namespace"] == "ml"
    # What it is made of is not read once more.
    assert delivered.covers(str(top / "base/c.yaml"))
    assert not delivered.covers(str(top / "plain/a.yaml"))


def test_a_kustomization_that_only_lists_its_files_is_read_with_their_places(
    top: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PATH", "/nonexistent")
    manifest = app({"path": "base"})
    delivered = deliver(top, manifest)
    assert [each["metadata"]["name"] for each in made_by(delivered, manifest)] == ["base"]
    assert delivered.sources[1].place("metadata.name").line == 3
    assert delivered.covers(str(top / "base/kustomization.yaml"))
    for text in (
        "resources: [c.yaml, c.yaml]\n",
        "resources: [c.yaml]\nnamePrefix: a\n",
        "resources: [../base/c.yaml]\n",
    ):
        (top / "base/kustomization.yaml").write_text(text)
        assert "neither a kubectl nor a kustomize" in "".join(reasons(deliver(top, manifest))), text


@pytest.mark.parametrize(("directory", "names"), [({}, ["a"]), ({"recurse": True}, ["a", "b"])])
def test_manifests_of_a_folder_are_read_with_their_places(
    top: Path, directory: dict[str, Any], names: list[str]
):
    manifest = app({"path": "plain", "directory": directory})
    delivered = deliver(top, manifest)
    made = made_by(delivered, manifest)
    assert [each["metadata"]["name"] for each in made] == names
    assert [each["metadata"].get("namespace") for each in made] == ["ml", None][: len(names)]
    assert delivered.sources[1].place("metadata.name").line == 3


def test_a_file_of_the_input_that_is_deployed_counts_once(top: Path):
    file = SourceObject.of(str(top / "plain/a.yaml"), {"apiVersion": "v1", "kind": "ConfigMap"})
    given = [SourceObject.of(str(top / "apps.yaml"), app({"path": "plain"})), file]
    delivered = add_delivered(given, lambda _: Checkout(top=top))
    assert file not in delivered.sources
    assert len(delivered.sources) == 2


def test_applications_of_applications_are_followed_and_circles_end(top: Path):
    (top / "apps").mkdir()
    (top / "apps/self.yaml").write_text(json.dumps(app({"path": "apps"}, name="self")))
    (top / "apps/leaf.yaml").write_text(json.dumps(app({"path": "plain"}, name="leaf")))
    delivered = deliver(top, app({"path": "apps"}, name="self"))
    kinds = sorted(each.manifest["kind"] for each in delivered.sources)
    assert kinds == ["Application"] * 3 + ["ConfigMap"]
    assert delivered.not_rendered == []


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ({"path": "missing"}, "no folder missing"),
        ({"path": "../outside"}, "../outside"),
        ({"path": "/etc"}, "no folder /etc"),
        ({"path": "out"}, "leads out of the repository"),
        ({"path": "plain/a.yaml"}, "no folder"),
        ({"path": "plain", "helm": {"values": "a: 1"}}, "no Chart.yaml"),
        ({"path": "plain", "kustomize": {"namePrefix": "a"}}, "no kustomization.yaml"),
        ({"path": "charts/x", "helm": {"valueFiles": ["no.yaml"]}}, "no values file no.yaml"),
        ({"path": "charts/x", "helm": {"valueFiles": ["../../../bin/helm"]}}, "leads out"),
        ({"path": "empty"}, "has no manifest"),
        ({"path": "bad"}, "not YAML"),
        ({"path": "jsonnet"}, "Jsonnet"),
        ({"path": ".", "directory": {"recurse": True}}, "a kustomization of its own"),
    ],
)
def test_what_is_not_there_or_leads_out_is_named(top: Path, source: dict[str, Any], reason: str):
    (top / "out").symlink_to("/etc")
    (top / "empty").mkdir()
    for name, text in (("bad/b.yaml", "a: [\n"), ("jsonnet/a.jsonnet", "{}"), ("jsonnet/a.yaml", "kind: A")):
        (top / name).parent.mkdir(exist_ok=True)
        (top / name).write_text(text)
    manifest = app(source)
    delivered = deliver(top, manifest)
    (found,) = delivered.not_rendered
    assert reason in found.reason
    assert made_by(delivered, manifest) == []
    assert found.to_problem().code == "source-not-rendered"
    assert found.to_not_seen().is_not_rendered


def test_values_of_config_maps_are_used_and_those_of_secrets_are_not(top: Path):
    chart = {"spec": {"chart": "charts/x", "sourceRef": {"kind": "GitRepository", "name": "r"}}}
    data = {"values.yaml": "a: map\nb: map\n", "number": "7", "bad": "{{"}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "apps"},
        "data": data,
    }
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "apps"}}

    def release(*sources: dict[str, Any]) -> Delivered:
        manifest = flux("HelmRelease", chart=chart, values={"b": 1}, valuesFrom=list(sources))
        return deliver(top, manifest, config, secret)

    whole, key = {"kind": "ConfigMap", "name": "c"}, {"kind": "ConfigMap", "name": "c", "valuesKey": "number"}
    made = release(whole, {**key, "targetPath": "x.y"}).sources[-1].manifest
    assert json.loads(made["data"]["values"]) == {"a": "map", "b": 1, "x": {"y": 7}}
    assert made["metadata"]["namespace"] == "apps"
    for row, reason in (
        ({"kind": "Secret", "name": "s"}, "Secret s is not read"),
        ({"kind": "ConfigMap", "name": "d"}, "ConfigMap d is not in the input"),
        ({**whole, "valuesKey": "e"}, "has no e"),
        ({**whole, "valuesKey": "bad"}, "is no YAML"),
    ):
        assert reason in "".join(reasons(release(row)))
    assert reasons(release({"kind": "ConfigMap", "name": "d", "optional": True})) == []


def test_variables_of_a_flux_kustomization_are_replaced_as_text(top: Path):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: ${one}\n  b: ${two:=2}\n  c: $${three}\n  d: x${four}\n"
    (top / "plain/a.yaml").write_text(text)
    source = {"kind": "GitRepository", "name": "r"}
    build = {"substitute": {"one": "true"}}
    delivered = deliver(top, flux("Kustomization", path="./plain", sourceRef=source, postBuild=build))
    assert delivered.sources[1].manifest["data"] == {"a": True, "b": 2, "c": "${three}", "d": "x"}
    build = {"substitute": {"one": "1"}, "substituteFrom": [{"kind": "Secret", "name": "s"}]}
    refused = deliver(top, flux("Kustomization", path="./plain", sourceRef=source, postBuild=build))
    assert "so four and two may be any text" in "".join(reasons(refused))


def test_another_cluster_stays_with_the_objects(top: Path):
    manifest = app({"path": "plain"}, destination={"name": "east", "namespace": "ml"})
    assert [each.cluster for each in deliver(top, manifest).sources] == ["", "east"]


def test_a_release_that_is_pinned_is_told_apart_from_the_files_here(top: Path):
    for revision, notes in (("main", 0), ("HEAD", 0), ("v1.2.3", 1), ("0" * 40, 1)):
        assert len(deliver(top, app({"path": "plain", "targetRevision": revision})).notes) == notes


def test_without_a_repository_nothing_of_a_path_is_read(top: Path):
    delivered = add_delivered([SourceObject.of("-", app({"path": "plain"}))], lambda _: None)
    assert reasons(delivered) == ["paths of the repository are not read here"]


WORDS = st.sampled_from(
    [
        "a",
        ".",
        "../..",
        "\0",
        "x" * 5000,
        "$values/a",
        "{{ .a }}",
        "{{",
        "-x",
        "GitRepository",
        "charts/x",
        "plain",
    ]
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "path",
                    "name",
                    "kind",
                    "values",
                    "valuesObject",
                    "helm",
                    "kustomize",
                    "directory",
                    "chart",
                    "spec",
                    "ref",
                    "patches",
                    "replicas",
                    "count",
                    "generators",
                    "list",
                    "elements",
                    "git",
                    "directories",
                    "template",
                    "metadata",
                    "destination",
                    "sourceRef",
                    "valuesFrom",
                    "postBuild",
                    "substitute",
                    "substituteFrom",
                    "namespace",
                    "releaseName",
                    "valueFiles",
                    "parameters",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
SPECS = st.dictionaries(
    st.sampled_from(
        [
            "source",
            "sources",
            "destination",
            "generators",
            "template",
            "chart",
            "path",
            "sourceRef",
            "postBuild",
            "values",
        ]
    ),
    DATA,
)


@given(
    kind=st.sampled_from(["Application", "ApplicationSet", "HelmRelease", "Kustomization"]),
    spec=SPECS | DATA,
)
@example(kind="Application", spec={"source": {"path": "\0"}})
@example(kind="Application", spec={"source": {"path": "x" * 5000}})
@example(
    kind="Application", spec={"source": {"path": "charts/x", "helm": {"valueFiles": ["\0", "x" * 5000]}}}
)
@example(kind="Application", spec={"source": {"path": "charts/x", "helm": {"releaseName": "\0"}}})
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=60,
)
def test_no_object_of_a_stranger_ends_the_reading(top: Path, kind: str, spec: Any):
    group = {"HelmRelease": "helm.toolkit.fluxcd.io", "Kustomization": "kustomize.toolkit.fluxcd.io"}
    manifest = {
        "apiVersion": f"{group.get(kind, 'argoproj.io')}/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": spec,
    }
    delivered = deliver(top, manifest)
    for each in delivered.not_rendered:
        assert each.to_problem().message
        assert each.to_not_seen().name == "a"


def test_the_repository_of_a_file_is_the_one_around_it(tmp_path: Path):
    for words in (("init", "-q"), ("remote", "add", "origin", OWN)):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "a.yaml").write_text("")
    found = find_checkout(tmp_path / "a.yaml")
    assert (found.top, found.remotes) == (tmp_path.resolve(), (OWN,))
