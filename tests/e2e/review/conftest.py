"""A project in a repository, its stack on a cluster of one node with eight GPUs, and the review of its changes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dra_infra.catalog import load_fleet
from tools.cluster import Api, ControlPlane, NodeStandIn, create_fleet
from tools.engine_cli import Stack, write_project
from tools.pulumi_home import PulumiHome

FLEET = "hgx-h100"
MAIN = "from dra_infra.cli.app import main; main()"

PRELUDE = """
import pulumi
import pulumi_kubernetes as k8s
import dra_infra as dra

NAMESPACE = "{namespace}"
h100 = dra.GpuDeviceClass("{namespace}", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "{memory}"))
# What happens after the change is accepted is looked at, not waited for.
UNAWAITED = {{"pulumi.com/skipAwait": "true"}}

def pod(image="registry.invalid/main:1", **spec):
    return {{"containers": [{{"name": "main", "image": image}}], **spec}}

def deployment(name, template, replicas, image="registry.invalid/main:1"):
    labels = {{"app": name}}
    return k8s.apps.v1.Deployment(
        name, metadata={{"name": name, "namespace": NAMESPACE, "annotations": UNAWAITED}},
        spec={{"replicas": replicas, "selector": {{"matchLabels": labels}},
              "template": {{"metadata": {{"labels": labels}}, "spec": template.attach(pod(image))}}}})
"""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a review said: its exit code, its JSON, and what a terminal showed."""

    code: int
    data: dict[str, Any]
    text: str

    def change(self, kind: str, name: str) -> dict[str, Any]:
        """The change of the object whose name starts with *name*."""
        (found,) = [
            each
            for each in self.data["changes"]
            if each["object"]["kind"] == kind and each["object"]["name"].startswith(name)
        ]
        return found

    def danger(self, code: str) -> dict[str, Any]:
        """The one danger with *code*."""
        (found,) = [each for each in self.data["dangers"] if each["code"] == code]
        return found

    def rollout(self) -> dict[str, Any]:
        """The one rollout that comes to its end."""
        assert not [each for each in self.data["dangers"] if each["code"] == "workload-rolls"]
        (found,) = self.data["rollouts"]
        return found


@dataclass(frozen=True, kw_only=True)
class Reviewed:
    """A project under review; what it makes stays in its namespace."""

    stack: Stack
    home: PulumiHome
    namespace: str

    def write(self, program: str, *, memory: str = "79Gi") -> None:
        """Make *program*, which may use the names of the prelude, the head."""
        prelude = PRELUDE.format(namespace=self.namespace, memory=memory)
        write_project(self.stack.directory, prelude + program, home=self.home)

    def commit(self) -> None:
        """Make the head the base."""
        folder = self.stack.directory
        for arguments in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-qm", "base"],
        ):
            subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)

    def deploy(self, program: str) -> None:
        """Make *program* the base, and what is deployed."""
        self.write(program)
        self.commit()
        self.stack.up().check()

    def review(self, *arguments: str, **environment: str) -> Answer:
        """Run the command, with the engine."""
        report = self.stack.directory.parent / "review.json"
        report.unlink(missing_ok=True)
        command = [
            "review",
            "--engine",
            "--stack",
            self.stack.name,
            "--fleet",
            FLEET,
            "--output",
            str(report),
        ]
        done = subprocess.run(
            [sys.executable, "-P", "-c", MAIN, *command, *arguments],
            cwd=self.stack.directory,
            env={**os.environ, **self.stack.environment, "COLUMNS": "240", **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert report.exists(), done.stdout + done.stderr
        return Answer(
            code=done.returncode, data=json.loads(report.read_text()), text=done.stdout + done.stderr
        )


@pytest.fixture(scope="session")
def gpu_cluster(binaries: Callable[[str], Path]) -> Iterator[ControlPlane]:
    """A control plane with the fleet; Jobs run until they are deleted."""
    with ControlPlane(binaries=binaries) as plane, NodeStandIn(plane.connection, finish_jobs=False):
        with plane.api() as api:
            create_fleet(api, load_fleet(FLEET).to_manifests())
        yield plane


@pytest.fixture(scope="session")
def gpus(gpu_cluster: ControlPlane) -> Iterator[Api]:
    """The administrator of that cluster."""
    with gpu_cluster.api() as api:
        yield api


_NUMBERS = itertools.count(1)


@pytest.fixture
def project(home: PulumiHome, gpu_cluster: ControlPlane, gpus: Api, tmp_path: Path) -> Iterator[Reviewed]:
    """A project of this test; its devices are given back at the end."""
    namespace = f"review-{next(_NUMBERS)}"
    gpus.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    gpus.wait_until("v1/ServiceAccount", "default", bool, namespace=namespace)
    state = tmp_path / "state"
    state.mkdir()
    stack = Stack(
        tmp_path / "project",
        home=home,
        environment={"KUBECONFIG": str(gpu_cluster.kubeconfig), "PULUMI_BACKEND_URL": state.as_uri()},
    )
    reviewed = Reviewed(stack=stack, home=home, namespace=namespace)
    reviewed.write("")
    stack.init()
    yield reviewed
    stack.destroy().check()
    gpus.wait_for("resource.k8s.io/v1/ResourceClaim", lambda claims: not claims, namespace=namespace)


@pytest.fixture
def offline_project(home: PulumiHome, tmp_path: Path) -> Reviewed:
    """A project with a change and no cluster."""
    return _offline_project(home, tmp_path)


@pytest.fixture
def cold_offline_project(cold_home: PulumiHome, tmp_path: Path) -> Reviewed:
    """The same where the program is a child of its language host, as users have it."""
    return _offline_project(cold_home, tmp_path)


def _offline_project(home: PulumiHome, folder: Path) -> Reviewed:
    state = folder / "state"
    state.mkdir()
    environment = {"KUBECONFIG": str(folder / "none"), "PULUMI_BACKEND_URL": state.as_uri()}
    stack = Stack(folder / "project", home=home, environment=environment)
    reviewed = Reviewed(stack=stack, home=home, namespace="offline")
    program = (
        'k8s.core.v1.ConfigMap("a", metadata={{"name": "a", "namespace": NAMESPACE}}, data={{"k": "{}"}})\n'
    )
    reviewed.write(program.format(1))
    reviewed.commit()
    stack.init()
    reviewed.write(program.format(2))
    return reviewed
