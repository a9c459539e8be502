"""Definitions of workload kinds (CustomResourceDefinitions), out of the Go modules of their projects.

`workload_crds.toml` pins each module by version and hash. Go's ordinary client fetches it, runs nothing of it, and the
hash is compared before a file is read. What is kept are the definitions and the webhooks of their controllers, as JSON,
which loads in a tenth of the time.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tools import cache, toolsets
from tools.errors import ToolError

DATA = Path(__file__).with_suffix(".toml")

Manifest = dict[str, Any]

DEFINITION = "CustomResourceDefinition"
WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

_MINUTES = 10


@dataclass(frozen=True, kw_only=True)
class Module:
    """One Go module with definitions.

    Args:
        path: Module path.
        version: Exact version, with its v.
        sum: Hash of the module as go.sum writes it.
        folders: What is read inside the module.
        schemas: Where that is one file of Go with schemas as strings: name of the string to
            ``<group>/<version>/<Kind>``.
    """

    path: str
    version: str
    sum: str
    folders: list[str]
    schemas: Mapping[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> Path:
        """File in the per-user cache; another pin or reader has another name."""
        parts = [self.path, self.version, self.sum, self.folders, dict(self.schemas)]
        key = hashlib.sha256(json.dumps(parts).encode() + Path(__file__).read_bytes()).hexdigest()[:16]
        return cache.root() / "workload-crds" / f"{self.path.replace('/', '_')}-{key}.json"

    def definitions(self) -> list[Manifest]:
        """The module's definitions of kinds; see `objects`."""
        return [each for each in self.objects() if each["kind"] == DEFINITION]

    def webhooks(self) -> list[Manifest]:
        """The configurations of the webhooks that the module's controller serves; see `objects`."""
        return [each for each in self.objects() if each["kind"] in WEBHOOKS]

    def objects(self) -> list[Manifest]:
        """All definitions and configurations of webhooks, from the cache or fetched into it.

        Raises:
            ToolError: When Go is missing or fails, what it fetched is not what was pinned, or a folder holds none.
        """
        if not self.kept.is_file():
            with cache.locked("workload-crds", lambda: None):
                if not self.kept.is_file():
                    _keep(self._fetch(), self.kept)
        kept: list[Manifest] = json.loads(self.kept.read_text())
        return kept

    def _fetch(self) -> list[Manifest]:
        module = self._download()
        found: list[Manifest] = []
        for folder in self.folders:
            read = self._read_schemas if self.schemas else _read_folder
            objects = list(read(module / folder))
            if not objects:
                raise ToolError(f"{self.path} {self.version}: no definition and no webhook below {folder}")
            found += objects
        return found

    def _download(self) -> Path:
        name = f"{self.path}@{self.version}"
        go = shutil.which("go")
        if go is None:
            raise ToolError("go is not on PATH", hint="install the Go version that tools/*/go.mod names")
        # In a folder of its own: a go.mod above would choose versions.
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = subprocess.run(
                    [go, "mod", "download", "-json", name],
                    cwd=folder,
                    env=toolsets.build_environment(),
                    capture_output=True,
                    text=True,
                    timeout=60 * _MINUTES,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise ToolError(
                    f"go did not end in {_MINUTES} minutes", hint=f"try it by hand: go mod download {name}"
                ) from None
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {"Error": (done.stderr.strip().splitlines() or ["no message"])[-1]}
        if "Error" in answer:
            raise ToolError(
                f"go could not fetch {name}: {answer['Error']}",
                hint=f"try it by hand: go mod download {name}",
            )
        if answer["Sum"] != self.sum:
            raise ToolError(
                f"{name} has the hash {answer['Sum']}", hint=f"expected {self.sum}; nothing of it was used"
            )
        return Path(answer["Dir"])

    def _read_schemas(self, source: Path) -> Iterator[Manifest]:
        texts = dict(re.findall(r'^\t"(\w+)": `([^`]*)`', source.read_text(), re.MULTILINE))
        for name, served_as in self.schemas.items():
            group, version, kind = served_as.split("/")
            schema = yaml.load(texts[name], yaml.CSafeLoader)
            plural = f"{kind.lower()}s"
            yield {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": DEFINITION,
                "metadata": {"name": f"{plural}.{group}"},
                "spec": {
                    "group": group,
                    "names": {"kind": kind, "plural": plural},
                    "scope": "Namespaced",
                    "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
                },
            }


def load() -> tuple[Module, ...]:
    """All modules that `workload_crds.toml` names."""
    with DATA.open("rb") as file:
        return tuple(Module(**entry) for entry in tomllib.load(file)["module"])


def _read_folder(folder: Path) -> Iterator[Manifest]:
    for path in sorted(folder.rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(), yaml.CSafeLoader):
            if not isinstance(document, dict):
                continue
            kind = document.get("kind")
            group = str(document.get("apiVersion", ""))
            # Patches have the kind of a definition too, and no names; some modules keep an older form beside.
            is_definition = kind == DEFINITION and group.endswith("/v1") and "names" in document["spec"]
            if is_definition or kind in WEBHOOKS:
                yield document


def _keep(found: list[Manifest], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
        json.dump(found, file)
    Path(file.name).replace(target)


@functools.cache
def all_definitions() -> tuple[Manifest, ...]:
    """The definitions of kinds of all modules, read once in a process: parsing them takes seconds. Change none of them."""
    return tuple(definition for module in load() for definition in module.definitions())
