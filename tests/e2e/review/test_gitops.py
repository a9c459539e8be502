"""Objects of Argo CD and Flux with the real helm and kubectl: what a repository deploys is what is placed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.e2e

MAIN = "from dra_infra.cli.app import main; main()"
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: {name}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: {device_class}
          count: {count}
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  resourceClaims:
  - name: gpu
    resourceClaimTemplateName: {name}
  containers:
  - name: main
    image: registry.example/a:1
    resources:
      claims:
      - name: gpu
"""
CHART = CLAIM.format(
    name="{{ .Release.Name }}", device_class="gpu.nvidia.com", count="{{ required `count` .Values.count }}"
)
SOURCE = "sourceRef: {kind: GitRepository, name: repo}"
FILES = {
    "charts/gpu/Chart.yaml": "apiVersion: v2\nname: gpu\nversion: 1.0.0\n",
    "charts/gpu/values.yaml": "count: 0\n",
    "charts/gpu/prod.yaml": "count: 1\n",
    "charts/gpu/templates/pod.yaml": CHART,
    "base/pod.yaml": CLAIM.format(name="base", device_class="gpu.nvidia.com", count=1),
    "base/kustomization.yaml": "resources: [pod.yaml]\n",
    "overlays/prod/kustomization.yaml": "resources: [../../base]\n",
    "variables/pod.yaml": CLAIM.format(name="filled", device_class="${class}", count="${count:=1}"),
    "argocd/apps.yaml": """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: of-files, namespace: argocd}
spec:
  destination: {server: "https://kubernetes.default.svc", namespace: argo}
  source: {repoURL: "git@git.example:acme/gpu.git", path: charts/gpu, helm: {valueFiles: [prod.yaml]}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: inline, namespace: argocd}
spec:
  destination: {server: "https://kubernetes.default.svc", namespace: argo}
  source:
    repoURL: "https://git.example/acme/gpu"
    path: charts/gpu
    helm: {valuesObject: {count: 2}, values: "count: 7"}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: overlays, namespace: argocd}
spec:
  goTemplate: true
  generators:
  - git: {repoURL: "https://git.example/acme/gpu", directories: [{path: overlays/*}]}
  template:
    metadata: {name: 'set-{{.path.basename}}'}
    spec:
      destination: {server: "https://kubernetes.default.svc", namespace: '{{.path.basename}}'}
      source: {repoURL: "https://git.example/acme/gpu", path: '{{.path.path}}'}
""",
    "flux/apps.yaml": f"""\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: repo, namespace: flux-system}}
spec: {{url: "ssh://git@git.example/acme/gpu"}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: patched, namespace: flux-system}}
spec:
  path: ./overlays/prod
  {SOURCE}
  targetNamespace: flux
  patches:
  - target: {{kind: ResourceClaimTemplate}}
    patch: '[{{"op": "replace", "path": "/spec/spec/devices/requests/0/exactly/count", "value": 3}}]'
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: filled, namespace: flux-system}}
spec:
  path: ./variables
  {SOURCE}
  targetNamespace: flux
  postBuild: {{substitute: {{count: "4"}}, substituteFrom: [{{kind: ConfigMap, name: settings}}]}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: release, namespace: flux-system}}
spec:
  targetNamespace: flux
  chart: {{spec: {{chart: ./charts/gpu, {SOURCE}}}}}
  valuesFrom: [{{kind: ConfigMap, name: settings}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: flux-system}}
data: {{class: gpu.nvidia.com, values.yaml: "count: 5"}}
""",
}
PODS = {
    "argo/of-files": 1,
    "argo/inline": 2,
    "prod/base": 1,
    "flux/base": 3,
    "flux/filled": 4,
    "flux/flux-release": 5,
}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (("init", "-q"), ("remote", "add", "origin", "https://git.example/acme/gpu.git")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    return tmp_path


@pytest.fixture
def ask(binaries: Callable[[str], Path], repository: Path) -> Callable[..., dict[str, Any]]:
    path = os.pathsep.join([str(binaries("helm").parent), os.environ["PATH"]])

    def ask(*words: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-P", "-c", MAIN, *words, "--json"],
            cwd=repository,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return ask


@pytest.mark.parametrize(
    ("folder", "namespaces"), [("argocd", ("argo", "prod")), ("flux", ("flux",)), (".", ("",))]
)
def test_what_a_repository_deploys_is_what_is_placed(
    ask: Callable[..., dict[str, Any]], folder: str, namespaces: tuple[str, ...]
) -> None:
    answer = ask("simulate", folder, "--fleet", "hgx-h100 x 2")
    placed = {
        f"{each['object']['namespace']}/{each['object']['name']}": sum(
            len(pod["devices"]) for pod in each["nodes"][:1]
        )
        for each in answer["workloads"]
    }
    assert placed == {name: count for name, count in PODS.items() if name.startswith(namespaces)}
    assert (answer["problems"], answer["notKnown"]) == ([], [])


def test_all_of_it_is_checked(ask: Callable[..., dict[str, Any]]) -> None:
    answer = ask("validate", ".")
    # With the ConfigMap of the settings.
    assert (answer["checked"], answer["problems"]) == (2 * len(PODS) + 1, [])
