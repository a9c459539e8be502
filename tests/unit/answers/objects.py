"""Objects of the tests of answers: a claim template, a pod that uses it, a class, and programs and scenes of them."""

from __future__ import annotations

from typing import Any

from dra_infra.answers.scene import Scene
from dra_infra.catalog import load_fleet
from dra_infra.program_objects import Program, ProgramObject

API = "resource.k8s.io/v1"
FLEET = "example"


def a_template(name: str = "gpu", *, count: int = 1, device_class: str = "gpu.example.com") -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count}}]
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }


def a_pod(name: str = "train", template: str = "gpu") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
            "containers": [{"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }


def a_class(name: str, expression: str, resource: str | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"selectors": [{"cel": {"expression": expression}}]}
    if resource:
        spec["extendedResourceName"] = resource
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def a_program(*manifests: dict[str, Any], **settings: Any) -> Program:
    objects = tuple(
        ProgramObject(urn=f"urn:pulumi:dev::app::t::{number}", manifest=manifest)
        for number, manifest in enumerate(manifests)
    )
    return Program(project="app", stack="dev", objects=objects, **settings)


def a_scene(*manifests: dict[str, Any], **settings: Any) -> Scene:
    return Scene.of(a_program(*manifests, **settings), fleet=load_fleet(FLEET))
