"""What candidates read: the files to check, and JSON schemas from the OpenAPI document of the real API server."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.alternatives import FOLDER, ROOT, leave_out

_PROGRAM = Path(__file__).parent / "programs" / "validation.py"
_MIGRATED = Path(__file__).parent / "programs" / "migration.py"
_REVIEWED = Path(__file__).parent / "programs" / "review_project.py"
_RUNNING = Path(__file__).parent / "programs" / "making_room.py"
_ALLOCATION = Path(__file__).parent / "programs" / "allocation.py"
_MINOR = "1.37"


@functools.cache
def validation_files() -> Path:
    """The folder with what `validate` reads, written once per version of the program that writes it."""
    folder = FOLDER / f"validate-{hashlib.sha256(_PROGRAM.read_bytes()).hexdigest()[:16]}"
    if not (folder / "one.yaml").is_file():
        subprocess.run([sys.executable, _PROGRAM, "write", folder], check=True)
    return folder


@functools.cache
def migration_files() -> Path:
    """The folder with what `migrate` reads, written once per version of the program that writes it."""
    folder = FOLDER / f"migrate-{hashlib.sha256(_MIGRATED.read_bytes()).hexdigest()[:16]}"
    if not (folder / "99.yaml").is_file():
        subprocess.run([sys.executable, _MIGRATED, folder], check=True)
    return folder


@functools.cache
def running_cluster() -> Path:
    """The snapshot of a large cluster that `make-room` reads, written once per version of the program that writes it."""
    folder = FOLDER / f"room-{hashlib.sha256(_RUNNING.read_bytes()).hexdigest()[:16]}"
    file = folder / "cluster.json"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        module = f"benchmarks.programs.{_RUNNING.stem}"
        subprocess.run([sys.executable, "-m", module, file], check=True, cwd=ROOT)
    return file


def synth_project(number: int, kind: str) -> Path:
    """A Pulumi project with the components of `programs/ours.py`; written anew by each process."""
    folder = FOLDER / f"synth-{kind}-{number}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Pulumi.yaml").write_text("name: bench\nruntime: python\n")
    shutil.copy(_PROGRAM.with_name("templates.py"), folder)
    select = "dra.gpu.memory >= memory_of(index)" if kind == "selectors" else "None"
    (folder / "__main__.py").write_text(
        f"""from templates import CLASS, count_of, memory_of

import dra_infra as dra

h100 = dra.GpuDeviceClass(CLASS, select=dra.gpu.product.contains("H100"))
for index in range({number}):
    dra.GpuClaimTemplate(f"t{{index}}", device_class=h100, count=count_of(index), select={select})
"""
    )
    return folder


@functools.cache
def review_repository(number: int, kind: str) -> Path:
    """A repository whose working tree differs from its commit, of `program` or `manifests`; written anew by each process."""
    folder = FOLDER / f"review-{kind}-{number}"
    subprocess.run([sys.executable, _REVIEWED, folder, str(number), kind], check=True)
    return folder


@functools.cache
def allocation_file(question: str) -> Path:
    """The cluster and the claim of a question about allocation, written once per version of the program."""
    folder = FOLDER / f"allocation-{hashlib.sha256(_ALLOCATION.read_bytes()).hexdigest()[:16]}"
    file = folder / f"{question}.json"
    if not file.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, _ALLOCATION, "write", question, file], check=True)
    return file


@functools.cache
def server_schemas() -> Path | None:
    """JSON schemas of resource.k8s.io/v1, one file per kind, that refuse unknown fields; None where no server is built."""
    folder = FOLDER / f"schemas-{_MINOR}"
    if not (folder / "resourceclaimtemplate-resource.k8s.io-v1.json").is_file():
        from tools.cluster.api_server import api_server
        from tools.errors import ToolError

        try:
            with api_server(_MINOR) as plane, plane.connection.client() as client:
                document = client.get("/openapi/v2").raise_for_status().json()
        except ToolError as error:
            leave_out(f"kubeconform: no schemas without the API server ({error})")
            return None
        _write(document["definitions"], folder)
    return folder


def _write(definitions: Mapping[str, Any], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    closed = {name: _closed(definition) for name, definition in definitions.items()}
    for name, definition in definitions.items():
        for kind in definition.get("x-kubernetes-group-version-kind", ()):
            if (kind["group"], kind["version"]) == ("resource.k8s.io", "v1"):
                schema = {"definitions": _needed(closed, name), "$ref": f"#/definitions/{name}"}
                file = folder / f"{kind['kind'].lower()}-resource.k8s.io-v1.json"
                file.write_text(json.dumps(schema))


def _closed(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {**definition, "additionalProperties": False} if "properties" in definition else dict(definition)


def _needed(definitions: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The definition of *name* with all that it refers to: compiling thousands more would be counted as checking."""
    found: dict[str, Any] = {}
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            parts = json.dumps(definitions[name]).split('"#/definitions/')[1:]
            waiting += [part.partition('"')[0] for part in parts]
    return found
