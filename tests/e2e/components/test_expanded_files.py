"""Manifests, kustomizations and charts of a project: the objects of `synth` are those that the engine registers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dra_infra.program.synth import synth
from tests.support.lab import Lab

pytestmark = pytest.mark.e2e

MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: NAMESPACE}
data: {a: "1", "yes": "no"}
---
apiVersion: v1
kind: List
items:
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {name: gpus, namespace: NAMESPACE}
  spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: 64}}]}}}
"""
CHART = {
    "chart/Chart.yaml": "apiVersion: v2\nname: gpus\nversion: 1.0.0\n",
    "chart/values.yaml": "gpus: 1\n",
    "chart/templates/claims.yaml": """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: "{{ .Release.Name }}-gpus"}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, count: {{ .Values.gpus }}}}]}}}
""",
}
FILES = {
    "manifests/all.yaml": MANIFEST,
    "base/kustomization.yaml": "resources: [all.yaml]\nnamePrefix: team-\n",
    "base/all.yaml": MANIFEST.partition("---")[0],
    **CHART,
}
TRANSFORMED = """
def label(manifest, opts):
    manifest["metadata"]["labels"] = {"team": "ml"}

k8s.yaml.ConfigFile("all", file="manifests/all.yaml", transformations=[label], resource_prefix="team")
"""
PROGRAMS = {
    "ConfigFile": 'k8s.yaml.ConfigFile("all", file="manifests/all.yaml")',
    "ConfigFile with a transformation": TRANSFORMED,
    "ConfigGroup of files": 'k8s.yaml.ConfigGroup("all", files=["manifests/*.yaml"])',
    "ConfigGroup of texts": "from pathlib import Path\n"
    'k8s.yaml.ConfigGroup("all", yaml=[Path("manifests/all.yaml").read_text()])',
    "kustomize.Directory": 'k8s.kustomize.Directory("all", directory="base")',
    "helm.v3.Chart": (
        'k8s.helm.v3.Chart("gpus", k8s.helm.v3.LocalChartOpts(path="chart", namespace=NAMESPACE, values={"gpus": 8}))'
    ),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_the_objects_are_those_that_the_engine_registers(
    lab: Lab, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tools of the provider render here too.
    monkeypatch.setenv("PATH", lab.home.environment["PATH"])
    lab.write(program)
    for name, text in FILES.items():
        file = lab.stack.directory / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text.replace("NAMESPACE", lab.namespace))

    offline = synth(lab.stack.directory, stack=lab.stack.name)
    lab.stack.up().check()

    assert [str(each) for each in (*offline.problems, *offline.not_seen)] == []
    registered = {each["urn"]: as_written(each["inputs"]) for each in lab.resources() if is_object(each)}
    assert {each.urn: each.manifest for each in offline.objects} == registered


def is_object(resource: Mapping[str, Any]) -> bool:
    return bool(resource["custom"])


def as_written(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs without what the provider notes of itself."""
    return {key: value for key, value in inputs.items() if not key.startswith("__")}
