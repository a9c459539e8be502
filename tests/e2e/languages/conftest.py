"""Programs in YAML that use the package as a user does who has installed it into a virtual environment."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

import dra_infra
from tests.support.lab import Lab
from tools.cluster import Api

CLASS = "resource.k8s.io/v1/DeviceClass"
TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"

OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
"""Metadata that each object has of its own."""

Json = dict[str, Any]


@dataclass(frozen=True)
class Yaml:
    """A project in YAML, of a lab."""

    lab: Lab
    package: Path

    def write(
        self, resources: Mapping[str, Any], outputs: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        """Make *resources* the program of the project."""
        project = {
            "name": "project",
            "runtime": "yaml",
            "plugins": self.lab.home.plugins,
            "packages": {"dra-infra": str(self.package)},
            "resources": dict(resources),
            "outputs": dict(outputs or {}),
            **more,
        }
        self.lab.stack.directory.joinpath("Pulumi.yaml").write_text(yaml.safe_dump(project, sort_keys=False))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """dra_infra in a virtual environment, whose Python is the one of the tests: the folders that Pulumi takes."""
    environment = tmp_path_factory.mktemp("venv")
    python = environment / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    folder = environment / "lib" / version / "site-packages" / "dra_infra"
    for name in ("provider", "policies"):
        shutil.copytree(Path(dra_infra.__file__).parent / name, folder / name)
    return folder


@pytest.fixture(scope="session")
def package(installed: Path) -> Path:
    """The folder of the package."""
    return installed / "provider"


@pytest.fixture(scope="session")
def pack(installed: Path) -> Path:
    """The folder of the policy pack."""
    return installed / "policies"


@pytest.fixture
def project(lab: Lab, package: Path) -> Yaml:
    """A project in YAML."""
    return Yaml(lab, package)


@pytest.fixture
def made(cluster_api: Api, lab: Lab) -> Callable[[], Json]:
    """Read what the stack of the lab has made, by type and name, as the API server has it."""

    def read() -> Json:
        objects: Json = {}
        for entry in lab.resources():
            written = entry["inputs"]
            metadata = entry["outputs"]["metadata"]
            kind = f"{written['apiVersion']}/{written['kind']}"
            stored = cluster_api.get(kind, metadata["name"], namespace=metadata.get("namespace"))
            kept = {key: value for key, value in stored["metadata"].items() if key not in OF_THE_SERVER}
            objects[f"{kind} {metadata['name']}"] = {**stored, "metadata": kept}
        return objects

    return read
