"""Which binaries are built from which modules, with which flags: `toolsets.toml` as records."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).parent
DATA = FOLDER / "toolsets.toml"

_KEY_LENGTH = 16
_ENVIRONMENT = {
    "CGO_ENABLED": "0",
    # Set and not empty, so that neither the user's shell nor `go env -w` adds flags to ours.
    "GOFLAGS": "-buildvcs=false",
    # A toolchain fetched on the fly would be another one than `go version` told.
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}
# Compilers live for seconds: without collections a build takes a quarter less, and a linker 0.2 GiB more.
# The limit is above what the largest linker holds; a process that reaches it collects again.
_COLLECTING = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}
_CROSS_COMPILING = ("GOOS", "GOARCH", "GOAMD64", "GOARM64")


@dataclass(frozen=True, kw_only=True)
class Toolset:
    """Binaries that are built together from one go.mod.

    Args:
        name: Name of the folder beside this file that holds go.mod and go.sum.
        purpose: What the binaries are for, as shown before a build.
        module: Module whose required version is the version of the toolset.
        minutes: How long a build usually takes with an empty build cache on two cores.
        binaries: Package to build by name of the binary.
        ldflags: Linker flags with ``{version}``, ``{major}`` and ``{minor}`` filled in.
        tags: Build tags.
        optional: Whether it is built only when asked for by name.
    """

    name: str
    purpose: str
    module: str
    minutes: int
    binaries: Mapping[str, str]
    ldflags: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    optional: bool = False

    @property
    def folder(self) -> Path:
        """Folder of go.mod and go.sum."""
        return FOLDER / self.name

    @property
    def version(self) -> str:
        """Version of `module` that go.mod requires, without the leading v.

        Raises:
            ToolError: When go.mod is missing or does not require the module.
        """
        path = self.folder / "go.mod"
        try:
            text = path.read_text()
        except FileNotFoundError:
            raise ToolError(
                f"toolset {self.name}: {path.relative_to(FOLDER.parent)} is missing",
                hint="restore it from the repository; it pins what is built",
            ) from None
        found = re.search(rf"^(?:\t|require ){re.escape(self.module)} v(\S+)", text, re.MULTILINE)
        if found is None:
            raise ToolError(f"toolset {self.name}: go.mod does not require {self.module}")
        return found[1]

    def commands(self, output: Path, *, jobs: int) -> list[list[str]]:
        """Argument lists that, run in `folder`, put all binaries into *output*."""
        common = ["go", "build", "-p", str(jobs), *self._flags()]
        # Go names a binary after the last element of its package path; what is to be named otherwise needs a
        # command of its own.
        together = [package for name, package in self.binaries.items() if name == package.rpartition("/")[2]]
        commands = [[*common, "-o", f"{output}/", *sorted(together)]] if together else []
        for name, package in sorted(self.binaries.items()):
            if package not in together:
                commands.append([*common, "-o", str(output / name), package])
        return commands

    def compile_command(self, *, jobs: int) -> list[str]:
        """Argument list that, run in `folder`, compiles all packages as `commands` does, and links nothing."""
        return [
            "go",
            "list",
            "-p",
            str(jobs),
            *self._flags(),
            "-export",
            "-deps",
            *sorted(self.binaries.values()),
        ]

    def key(self, go_version: str) -> str:
        """Name for exactly this build: equal keys mean equal bytes."""
        parts = {
            "go.mod": (self.folder / "go.mod").read_text(),
            "go.sum": (self.folder / "go.sum").read_text(),
            "go version": go_version,
            "flags": self._flags(),
            "environment": _ENVIRONMENT,
            "binaries": dict(self.binaries),
            # Programs of our own lie beside their go.mod.
            "sources": {
                str(path.relative_to(self.folder)): path.read_text()
                for path in sorted(self.folder.rglob("*.go"))
            },
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:_KEY_LENGTH]

    def _flags(self) -> list[str]:
        major, minor, *_ = self.version.split(".")
        linker = " ".join(["-s", "-w", *self.ldflags]).format(version=self.version, major=major, minor=minor)
        tags = ["-tags", ",".join(self.tags)] if self.tags else []
        # Nobody debugs these binaries: what a debugger needs is not linked, and not compiled, which is a seventh of the time.
        compiler = "-gcflags=all=-dwarf=false"
        return ["-trimpath", "-mod=readonly", "-buildvcs=false", compiler, *tags, "-ldflags", linker]


def load(path: Path = DATA) -> tuple[Toolset, ...]:
    """All toolsets in the order in which they are built: what is quick and needed most first."""
    with path.open("rb") as file:
        entries = tomllib.load(file)["toolset"]
    return tuple(
        Toolset(**{**entry, "ldflags": tuple(entry.get("ldflags", ())), "tags": tuple(entry.get("tags", ()))})
        for entry in entries
    )


def build_environment() -> dict[str, str]:
    """The user's environment (module settings, caches) with what decides the result fixed, and with Go's collector at rest."""
    kept = {name: value for name, value in os.environ.items() if name not in _CROSS_COMPILING}
    return {**_COLLECTING, **kept, **_ENVIRONMENT}
