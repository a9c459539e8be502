"""One Pulumi project for one test, and the programs that tests put into it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from tools.engine_cli import Stack, write_project
from tools.pulumi_home import PulumiHome

DRIVER = "gpu.example.com"

PRELUDE = """
import pulumi
import pulumi_kubernetes as k8s
from pulumi import ResourceOptions

NAMESPACE = "{namespace}"

def config_map(resource, data=None, /, opts=None, **metadata):
    return k8s.core.v1.ConfigMap(
        resource, data=data or {{}}, metadata={{"namespace": NAMESPACE, **metadata}}, opts=opts)

def claims(count):
    return {{"devices": {{"requests": [
        {{"name": "gpu", "exactly": {{"deviceClassName": "{driver}", "count": count}}}}]}}}}

def claim_template(resource, count, /, opts=None, **metadata):
    return k8s.resource.v1.ResourceClaimTemplate(
        resource, metadata={{"namespace": NAMESPACE, **metadata}}, spec={{"spec": claims(count)}}, opts=opts)

def pod_spec(template_name=None, **more):
    claimed = [{{"name": "gpu", "resourceClaimTemplateName": template_name}}] if template_name else None
    container = {{"name": "main", "image": "registry.invalid/main:1"}}
    if claimed:
        container["resources"] = {{"claims": [{{"name": "gpu"}}]}}
    return {{"containers": [container], "resourceClaims": claimed, **more}}

def deployment(name, template_name=None, app=None, opts=None):
    labels = {{"app": app or name}}
    return k8s.apps.v1.Deployment(
        name, opts=opts, metadata={{"name": name, "namespace": NAMESPACE}},
        spec={{"replicas": 1, "selector": {{"matchLabels": labels}},
              "template": {{"metadata": {{"labels": labels}}, "spec": pod_spec(template_name)}}}})
"""
"""Short names for what the programs are about; every object is a typed resource of the vendor's SDK."""


@dataclass(frozen=True, kw_only=True)
class Lab:
    """A project, its stack and a namespace of the cluster."""

    stack: Stack
    namespace: str
    home: PulumiHome

    @classmethod
    def create(
        cls, directory: Path, *, home: PulumiHome, namespace: str, environment: Mapping[str, str]
    ) -> Self:
        """Make an empty project with state of its own."""
        project = directory / "project"
        state = directory / "state"
        stack = Stack(project, home=home, environment={"PULUMI_BACKEND_URL": state.as_uri(), **environment})
        lab = cls(stack=stack, namespace=namespace, home=home)
        lab.write("")
        # A new stack is the same files each time: the CLI makes them for the first project, the others get copies.
        settings = f"Pulumi.{stack.name}.yaml"
        made = home.directory / "new-stack"
        if not made.exists():
            state.mkdir()
            stack.init()
            shutil.copytree(state, made / state.name)
            shutil.copy(project / settings, made)
        else:
            shutil.copytree(made / state.name, state)
            shutil.copy(made / settings, project)
        return lab

    def write(self, program: str) -> None:
        """Make *program*, which may use the names of the prelude, the project's program."""
        prelude = PRELUDE.format(namespace=self.namespace, driver=DRIVER)
        write_project(self.stack.directory, prelude + program, home=self.home)

    def up(self, program: str) -> None:
        """Deploy *program*, which must succeed."""
        self.write(program)
        self.stack.up().check()

    def resource(self, name: str) -> dict[str, Any]:
        """Return the resource *name* of the state.

        Raises:
            LookupError: The state has none of that name, or several.
        """
        found = [entry for entry in self.resources() if entry["urn"].endswith(f"::{name}")]
        if len(found) != 1:
            raise LookupError(f"{name}: {len(found)} in the state")
        return found[0]

    def resources(self) -> list[dict[str, Any]]:
        """Return the Kubernetes objects of the state."""
        everything = self.stack.export().get("resources") or []
        return [entry for entry in everything if entry["type"].startswith("kubernetes:")]

    def names(self) -> list[str]:
        """Return the Pulumi names of the Kubernetes objects of the state, sorted."""
        return sorted(entry["urn"].rpartition("::")[2] for entry in self.resources())
