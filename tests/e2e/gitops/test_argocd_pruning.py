"""When Argo CD prunes a claim template, by its own engine on a real API server: last with the annotation that `synth` writes, else at once."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.documents.yaml import write_manifests
from dra_infra.program.object_files import annotate
from tools import build
from tools.cluster import Api, ControlPlane
from tools.errors import ToolError

pytestmark = pytest.mark.e2e

TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
SERVICE = "v1/Service"


@pytest.fixture(scope="module")
def argo_sync() -> Path:
    try:
        return build.binary("argo-sync")
    except ToolError as error:
        failure = str(error)
    pytest.skip(f"NOT RUN: argo-sync is not built; python -m tools.build --only argocd builds it\n{failure}")


def a_template(name: str, namespace: str) -> dict[str, Any]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def a_workload(namespace: str, version: str) -> dict[str, Any]:
    """A Service that is healthy once it has an address, which this test gives it: a workload whose rollout ends when told."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "workload", "namespace": namespace, "annotations": {"version": version}},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    }


@pytest.fixture
def namespace(api: Api) -> Iterator[str]:
    name = f"prune-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete("v1/Namespace", name)


Sync = Callable[[list[Any]], "subprocess.Popen[str]"]


@pytest.fixture
def sync(argo_sync: Path, control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[Sync]:
    started: list[subprocess.Popen[str]] = []

    def sync(objects: list[Any]) -> subprocess.Popen[str]:
        file = tmp_path / f"{len(started)}.yaml"
        file.write_text(write_manifests(objects))
        command = [str(argo_sync), str(control_plane.kubeconfig), namespace, str(file)]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield sync
    for each in started:
        if each.poll() is None:
            each.kill()
        each.communicate()


@pytest.mark.parametrize("is_annotated", [True, False])
def test_an_old_template_stays_until_the_workload_is_healthy_if_it_is_annotated(
    api: Api, namespace: str, sync: Sync, *, is_annotated: bool
) -> None:
    def of(name: str) -> Any:
        return annotate(a_template(name, namespace), "argocd" if is_annotated else None)

    def set_address(*addresses: str) -> None:
        ingress = [{"ip": each} for each in addresses] or None
        status = {"status": {"loadBalancer": {"ingress": ingress}}}
        api.patch(SERVICE, "workload", status, namespace=namespace, subresource="status")

    first = sync([of("old"), a_workload(namespace, "1")])
    api.wait_until(SERVICE, "workload", lambda _: True, namespace=namespace)
    set_address("192.0.2.1")
    out, err = first.communicate(timeout=120)
    assert first.returncode == 0, out + err

    # The rollout begins: the workload is not healthy, and the old template is in no file any more.
    set_address()
    second = sync([of("new"), a_workload(namespace, "2")])
    api.wait_until(
        SERVICE,
        "workload",
        lambda found: found["metadata"]["annotations"].get("version") == "2",
        namespace=namespace,
    )
    if is_annotated:
        assert api.find(TEMPLATE, "old", namespace=namespace) is not None
        assert second.poll() is None
    else:
        api.wait_gone(TEMPLATE, "old", namespace=namespace)
        assert "ingress" not in api.get(SERVICE, "workload", namespace=namespace)["status"]["loadBalancer"]
    set_address("192.0.2.1")
    out, err = second.communicate(timeout=120)
    assert second.returncode == 0, out + err
    # Deletion in the foreground ends behind the answer.
    api.wait_gone(TEMPLATE, "old", namespace=namespace)
    assert api.find(TEMPLATE, "new", namespace=namespace) is not None
    order = {each["object"].rpartition("/")[2]: each["order"] for each in map(json.loads, out.splitlines())}
    assert (max(order, key=order.__getitem__) == "old") or not is_annotated
