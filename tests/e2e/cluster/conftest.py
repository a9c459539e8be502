"""A real cluster with GPUs, what runs on it, secrets where people put them, and users with fewer rights."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from tools.cluster import Api, Connection, ControlPlane, NodeStandIn, create_fleet

MAIN = "from dra_infra.cli.app import main; main()"
FLEET = "hgx-h100 x 2"
NAMESPACE = "ml"
PLANTED = "planted-4f1c9d2e7b"
"""A secret; it is in an environment variable, an annotation, an argument, a label-like config and a Secret."""

CLAIM = "resource.k8s.io/v1/ResourceClaim"
DEPLOYMENT = "apps/v1/Deployment"
GPUS = "gpu.nvidia.com"


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str


def template(name: str, count: int) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": GPUS, "count": count}}
    config = {"opaque": {"driver": GPUS, "parameters": {"apiVersion": "a/v1", "kind": "K", "token": PLANTED}}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"note": PLANTED}},
        "spec": {"spec": {"devices": {"requests": [request], "config": [config]}}},
    }


def deployment(name: str, *, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    container = {
        "name": "main",
        "image": f"registry.invalid/{PLANTED}:1",
        "args": [f"--password={PLANTED}"],
        "env": [{"name": "API_TOKEN", "value": PLANTED}, {"name": "PLAIN", "value": PLANTED}],
        "resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "2"}},
    }
    pod = {
        "containers": [container],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": {"note": PLANTED}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels, "annotations": {"note": PLANTED}}, "spec": pod},
        },
    }


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


@pytest.fixture(scope="session")
def plane(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A control plane with the fleet; two pods of two GPUs run, one of nine waits."""
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection), plane.api() as api:
        create_fleet(api, load_fleet(FLEET).to_manifests())
        api.create(namespace(NAMESPACE))
        api.wait_until("v1/ServiceAccount", "default", bool, namespace=NAMESPACE)
        for kind in ("Secret", "ConfigMap"):
            field = "stringData" if kind == "Secret" else "data"
            metadata = {"name": "planted", "namespace": NAMESPACE}
            api.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, field: {"k": PLANTED}})
        for name, count, replicas in (("serve", 2, 2), ("large", 9, 1)):
            api.create(template(name, count))
            api.create(deployment(name, replicas=replicas))
        api.wait_until(
            DEPLOYMENT, "serve", lambda each: each["status"].get("readyReplicas") == 2, namespace=NAMESPACE
        )
        api.wait_for(
            "v1/Pod",
            lambda pods: any(
                each["type"] == "PodScheduled"
                and each["status"] == "False"
                and "nodes are available" in each.get("message", "")
                for pod in pods
                for each in pod["status"].get("conditions", [])
            ),
            namespace=NAMESPACE,
        )
        yield plane


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Iterator[Api]:
    """The administrator."""
    with plane.api() as api:
        yield api


_NUMBERS = itertools.count(1)

Grant = Callable[..., Path]


@pytest.fixture(scope="session")
def kubeconfig_of(api: Api, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Grant:
    """Makes a user with the rules given, and its kubeconfig; `within` binds them to one namespace."""

    def make(*rules: dict[str, Any], within: str = "") -> Path:
        name = f"user-{next(_NUMBERS)}"
        api.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}}
        )
        group = "rbac.authorization.k8s.io"
        if rules:
            api.create(
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "ClusterRole",
                    "metadata": {"name": name},
                    "rules": rules,
                }
            )
            scope = {"name": name, **({"namespace": within} if within else {})}
            api.create(
                {
                    "apiVersion": f"{group}/v1",
                    "kind": "RoleBinding" if within else "ClusterRoleBinding",
                    "metadata": scope,
                    "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
                    "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
                }
            )
        token = api.request(
            "POST",
            f"/api/v1/namespaces/default/serviceaccounts/{name}/token",
            json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
        )["status"]["token"]
        file = tmp_path_factory.mktemp("kube") / "config"
        connection = plane.connection
        file.write_text(Connection(url=connection.url, token=token, ca=connection.ca).kubeconfig())
        return file

    return make


def rule(groups: list[str], resources: list[str], *verbs: str) -> dict[str, Any]:
    return {"apiGroups": groups, "resources": resources, "verbs": list(verbs or ("list",))}


@pytest.fixture(scope="session")
def lister(kubeconfig_of: Grant) -> Path:
    """May list what a snapshot holds, and do nothing else."""
    return kubeconfig_of(
        rule([""], ["nodes", "pods", "namespaces", "resourcequotas", "limitranges", "events"]),
        rule(
            ["resource.k8s.io"],
            [
                "resourceslices",
                "deviceclasses",
                "resourceclaims",
                "resourceclaimtemplates",
                "devicetaintrules",
            ],
        ),
        rule(["apps"], ["deployments", "replicasets", "statefulsets", "daemonsets"]),
        rule(["batch"], ["jobs", "cronjobs"]),
        rule(["scheduling.k8s.io"], ["priorityclasses"]),
        rule(["policy"], ["poddisruptionbudgets"]),
        rule(["apiextensions.k8s.io"], ["customresourcedefinitions"]),
        rule(
            ["admissionregistration.k8s.io"],
            ["validatingadmissionpolicies", "validatingadmissionpolicybindings"],
        ),
    )


Run = Callable[..., Said]


@pytest.fixture
def dra_infra(tmp_path: Path) -> Run:
    """Runs the program in an empty folder, with no kubeconfig but the one that is given."""

    def run(*arguments: str | Path, timeout: float = 60) -> Said:
        environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": ""}
        done = subprocess.run(
            [sys.executable, "-c", MAIN, *map(str, arguments)],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)

    return run
