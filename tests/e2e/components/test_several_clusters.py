"""One program that makes the same on several clusters, by a provider and a target each, on the real engine and API servers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.components.objects import define, definitions
from tests.support.lab import Lab
from tools.cluster.api_server import api_server
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e

MINORS = {"eu": "1.36", "us": "1.37"}
PROGRAM = """
import dra_infra as dra

for cluster, minor in {minors}.items():
    there = {{
        "target": dra.ClusterTarget(kubernetes=minor),
        "opts": ResourceOptions(provider=k8s.Provider(cluster, context=cluster)),
    }}
    gpus = dra.GpuDeviceClass(f"{{cluster}}-h100", object_name="h100", select=dra.gpu.memory >= "79Gi", **there)
    dra.GpuTenant(f"{{cluster}}-vision", namespace="vision", quota={{gpus: 16}}, **there)
    dra.GpuMonitoring(f"{{cluster}}-gpus", namespace="vision", **there)
"""


def joined(kubeconfigs: dict[str, str]) -> str:
    """One kubeconfig with a context for each cluster, none of which is the current one."""
    whole: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [],
        "users": [],
        "contexts": [],
    }
    for cluster, text in kubeconfigs.items():
        one = yaml.safe_load(text)
        whole["clusters"].append({**one["clusters"][0], "name": cluster})
        whole["users"].append({**one["users"][0], "name": cluster})
        whole["contexts"].append({"name": cluster, "context": {"cluster": cluster, "user": cluster}})
    return yaml.safe_dump(whole)


def test_each_cluster_has_the_objects_in_the_form_of_its_minor(
    home: PulumiHome, binaries: Callable[[str], Path], folder_of_crds: Path, tmp_path: Path
) -> None:
    [folder] = folder_of_crds.glob("prometheus-operator-*")
    with ExitStack() as running:
        planes = {
            cluster: running.enter_context(api_server(minor, binaries=binaries))
            for cluster, minor in MINORS.items()
        }
        apis = {cluster: running.enter_context(plane.api()) for cluster, plane in planes.items()}
        for api in apis.values():
            define(api, definitions(folder))
        file = tmp_path / "clusters.yaml"
        file.write_text(joined({cluster: plane.kubeconfig.read_text() for cluster, plane in planes.items()}))
        lab = Lab.create(tmp_path, home=home, namespace="none", environment={"KUBECONFIG": str(file)})
        lab.up(PROGRAM.format(minors=MINORS))

        rules = {}
        for cluster, api in apis.items():
            assert api.get("resource.k8s.io/v1/DeviceClass", "h100")["metadata"]["name"] == "h100"
            (quota,) = api.list("v1/ResourceQuota", namespace="vision")
            assert quota["metadata"]["name"] == f"{cluster}-vision"
            (rule,) = api.list("monitoring.coreos.com/v1/PrometheusRule")
            assert rule["metadata"]["name"].startswith(cluster)
            rules[cluster] = str(rule["spec"]).replace(f"{cluster}-gpus", "gpus")
        # Names of metrics changed with 1.37.
        assert rules["eu"] != rules["us"]
        # Nobody takes namespaces away on servers by themselves, so the stack goes with them.
        lab.stack.preview("--expect-no-changes").check()
