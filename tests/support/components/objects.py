"""Objects of components as a server can be asked about them: what is only known after `pulumi up` is made up."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from dra_infra.kubernetes.api import plain_text
from dra_infra.program_objects import SECRET, UNKNOWN
from tools.cluster import Api, ApiError

Manifest = dict[str, Any]

UID = "0f6b4d0c-9a9e-4a54-9e4e-6a7b7a3a2f10"
"""Stands for what is not known: a name, a value of a label and a UID alike."""

LABELS = {"resource.kubernetes.io/admin-access": "true"}
"""Of the namespaces of these tests, so that admin access is refused for other reasons only."""

CRDS = {
    "25.3": "nvidia-dra-driver-gpu-v25.3.2",
    "25.8": "nvidia-dra-driver-gpu-v25.8.1",
    "25.12": "nvidia-dra-driver-gpu-v25.12.0",
    "0.4": "dra-driver-nvidia-gpu-v0.4.1",
    "0.5": "dra-driver-nvidia-gpu-main-95932046",
}
"""Folder of the test data with the definitions of a driver line; the last one is what became 0.5."""

_MARKER = re.compile(
    "|".join(rf"{re.escape(plain_text(each))}(?: \([^)\"]*\))?" for each in (UNKNOWN, SECRET))
)
_SECONDS = 120.0

DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


def known(manifest: Mapping[str, Any]) -> Manifest:
    """*manifest* with something that fits for each value that is not known yet."""
    # The name of a claim says besides whose it is.
    text = _MARKER.sub(UID, json.dumps(manifest, ensure_ascii=False))
    found: Manifest = json.loads(text)
    return found


def refusal(api: Api, manifest: Mapping[str, Any]) -> str:
    """What the server says against *manifest* under strict field validation; empty when it takes it. Nothing is stored."""
    try:
        api.create(known(manifest), dry_run=True)
    except ApiError as error:
        if error.reason == "AlreadyExists":
            # Told last, of an object that is right.
            return ""
        return f"{error}\n{json.dumps(manifest)}"
    return ""


def make_namespaces(api: Api, manifests: Iterable[Mapping[str, Any]]) -> None:
    """The namespaces that *manifests* are in, with the label that admin access asks for."""
    for name in sorted({str(known(each)["metadata"].get("namespace") or "default") for each in manifests}):
        found = api.find("v1/Namespace", name)
        if found is None or not LABELS.items() <= found["metadata"].get("labels", {}).items():
            api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": LABELS}})


def definitions(folder: Path) -> list[Manifest]:
    """The CustomResourceDefinitions in *folder*."""
    files = sorted(folder.glob("*.yaml"))
    found = [each for file in files for each in yaml.load_all(file.read_text(), yaml.CSafeLoader) if each]
    return [each for each in found if each["kind"] == "CustomResourceDefinition"]


def define(api: Api, manifests: Iterable[Manifest]) -> None:
    """Store definitions and wait until their objects are served, and by nothing older."""
    for each in manifests:
        name = each["metadata"]["name"]
        if api.find(DEFINITION, name) is not None:
            api.delete(DEFINITION, name)
            api.wait_gone(DEFINITION, name)
        api.create(each)
        api.wait_until(DEFINITION, name, _is_served)
        for version in each["spec"]["versions"]:
            if version["served"]:
                group = each["spec"]["group"]
                plural = each["spec"]["names"]["plural"]
                _wait_for_storage(api, f"/apis/{group}/{version['name']}/{plural}")


def _wait_for_storage(api: Api, path: str) -> None:
    """A server says that a definition is established a moment before it answers for it, and watches cannot tell."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            api.request("GET", path)
        except ApiError as error:
            if error.status not in (404, 429, 503) or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def _is_served(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
