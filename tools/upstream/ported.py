"""The upstream sources of each ported module, as `ported.toml` names them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

DATA: Final = Path(__file__).with_name("ported.toml")
PACKAGE: Final = Path(__file__).parents[2] / "dra_infra" / "kubernetes"
_MODULES_OF_TWO: Final = ("k8s.io", "sigs.k8s.io")


@dataclass(frozen=True, kw_only=True, slots=True)
class UpstreamFile:
    """One upstream file that a module of ours is ported from.

    Args:
        module: The Go module, `k8s.io/kubernetes`.
        path: The file in it.
        names: Functions, types and variables; empty for all of the file.
        until: The last minor that has it, as a number; None where the newest minor has it.
    """

    module: str
    path: str
    names: tuple[str, ...]
    until: int | None = None

    @property
    def text(self) -> str:
        """The file with its module."""
        return f"{self.module}/{self.path}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PortedModule:
    """One module of `dra_infra.kubernetes`.

    Args:
        name: Its path in the package, `api/gates.py`.
        files: What it is ported from.
        ours: Why it has no upstream source; empty for a ported module.
        differs: Minor to the upstream names by which the port tells it from the minor before.
    """

    name: str
    files: tuple[UpstreamFile, ...]
    ours: str
    differs: Mapping[str, tuple[str, ...]]

    @property
    def path(self) -> Path:
        """The file."""
        return PACKAGE / self.name


def load(path: Path = DATA) -> tuple[PortedModule, ...]:
    """Return every module that the file names, in its order."""
    data = tomllib.loads(path.read_text())
    return tuple(_read(name, entry) for name, entry in data.items())


def _read(name: str, entry: Mapping[str, Any]) -> PortedModule:
    return PortedModule(
        name=name,
        files=tuple(map(_read_file, entry.get("upstream", ()))),
        ours=entry.get("ours", ""),
        differs={minor: tuple(names) for minor, names in entry.get("differs", {}).items()},
    )


def _read_file(text: str) -> UpstreamFile:
    """Read `k8s.io/kubernetes/pkg/a.go: One, Two.Three`, with `(until 1.36)` behind the file of an older minor."""
    file, _, names = text.partition(": ")
    file, _, until = file.removesuffix(")").partition(" (until 1.")
    parts = file.split("/")
    length = 2 if parts[0] in _MODULES_OF_TWO else 3
    if parts[0] == "sigs.k8s.io" and parts[2].startswith("v"):
        length = 3
    return UpstreamFile(
        module="/".join(parts[:length]),
        path="/".join(parts[length:]),
        names=tuple(name.strip() for name in names.split(",") if name.strip()),
        until=int(until) if until else None,
    )
