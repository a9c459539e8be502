"""What lives in a cluster, migrated from there and from what the real kubectl prints of it: the same comes of both."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.cutover.sides import all_on_plugin
from dra_infra.documents.yaml import read_manifests, write_manifests
from tests.support.migration.plans import PLUGIN, deployment, quota
from tools.cluster import Api, Connection, ControlPlane, create_fleet

pytestmark = pytest.mark.e2e

KINDS = "deployments,replicasets,pods,resourcequotas,limitranges,jobs,horizontalpodautoscalers,deviceclasses"
LISTED = {
    "": ["nodes", "pods", "namespaces", "resourcequotas", "limitranges", "replicationcontrollers"],
    "apps": ["deployments", "replicasets", "statefulsets", "daemonsets"],
    "batch": ["jobs", "cronjobs"],
    "autoscaling": ["horizontalpodautoscalers"],
    "scheduling.k8s.io": ["priorityclasses"],
    "policy": ["poddisruptionbudgets"],
    "resource.k8s.io": ["resourceslices", "deviceclasses", "resourceclaims", "resourceclaimtemplates"],
}
"""All that an account may list, and it may do nothing else."""

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "shell", "namespace": "ml"},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/shell:1",
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
            }
        ]
    },
}


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[Api]:
    with plane.api() as api:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml"}})
        api.wait_until("v1/ServiceAccount", "default", bool, namespace="ml")
        create_fleet(api, all_on_plugin(load_fleet("t4 x 4"), PLUGIN).at(frozenset()).to_manifests())
        yield api


def lister(plane: ControlPlane, api: Api, folder: Path) -> Path:
    """The kubeconfig of an account that may list, and nothing else."""
    rules = [{"apiGroups": [group], "resources": names, "verbs": ["list"]} for group, names in LISTED.items()]
    group = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": "lister"}}
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "l", "namespace": "ml"}})
    api.create({**role, "rules": rules})
    api.create(
        {
            **role,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "lister"},
            "subjects": [{"kind": "ServiceAccount", "name": "l", "namespace": "ml"}],
        }
    )
    token = api.request(
        "POST",
        "/api/v1/namespaces/ml/serviceaccounts/l/token",
        json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )["status"]["token"]
    file = folder / "lister"
    file.write_text(Connection(url=plane.connection.url, token=token, ca=plane.connection.ca).kubeconfig())
    return file


def run(command: list[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=300)
    assert "Traceback" not in done.stderr
    return done


def migrate(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "dra_infra", "migrate", *arguments], stdin)


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a report says of each object, but for where it stands."""
    found = json.loads(done.stdout)["objects"]
    return {each["name"]: {key: each[key] for key in each.keys() - {"place"}} for each in found}


def by_name(text: str) -> dict[tuple[str, str], Any]:
    return {(each["kind"], each["metadata"]["name"]): each for each in read_manifests(text)}


def test_a_cluster_is_migrated_as_what_kubectl_prints_of_it(
    plane: ControlPlane, api: Api, binaries: Callable[[str], Path], tmp_path: Path
) -> None:
    kubectl = [str(binaries("kubectl")), "--kubeconfig", str(plane.kubeconfig)]
    objects = [quota(64), deployment("chat", 2, 4), deployment("train", 2, 4), POD]
    assert run([*kubectl, "apply", "-f", "-"], write_manifests(objects)).returncode == 0
    api.wait_for(
        "v1/Pod", lambda pods: sum(bool(each["spec"].get("nodeName")) for each in pods) >= 4, namespace="ml"
    )
    printed = run([*kubectl, "get", KINDS, "-A", "-o", "yaml", "--show-managed-fields"]).stdout
    where = ("--kubeconfig", str(lister(plane, api, tmp_path)), "--whole-gpus")

    there, piped = migrate(*where, "--json"), migrate("-", "--whole-gpus", "--json", stdin=printed)
    assert "cluster-forbidden" not in there.stderr
    assert {"Deployment ml/chat", "Deployment ml/train", "Pod ml/shell", "ResourceQuota ml/gpus"} == told(
        there
    ).keys()
    assert told(there).items() <= told(piped).items()
    assert all(each.startswith(("Pod ", "ReplicaSet ")) for each in told(piped).keys() - told(there).keys())

    assert migrate(*where, "--output", str(tmp_path)).returncode == 0
    written = by_name((tmp_path / "objects.yaml").read_text())
    assert written.items() <= by_name(migrate("-", "--whole-gpus", stdin=printed).stdout).items()
    assert ("ResourceClaimTemplate", "chat-gpu") in written
    validated = run([*kubectl, "apply", "--dry-run=server", "-f", "-"], write_manifests(
        [each for each in written.values() if each["kind"] != "Pod"]
    ))  # fmt: skip
    assert validated.returncode == 0, validated.stderr

    assert migrate(*where, "--check").returncode == 1
    program = migrate(*where, "--to", "components").stdout
    # A pod cannot get a claim in place.
    assert set(re.findall('import_="(ml/[^"]+)"', program)) == {"ml/chat", "ml/train", "ml/gpus"}
    planned = migrate(*where, "--kubernetes", "1.37", "--plan").stderr
    assert "Deployment ml/chat" in planned.partition("Plan of the cut-over")[2]
