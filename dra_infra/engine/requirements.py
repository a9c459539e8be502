"""Which releases of packages a project pins, read from its lock and requirement files."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PACKAGES: Final = ("dra-infra", "pulumi", "pulumi-kubernetes")
"""Packages whose release decides what a program compiles to."""

_LOCKS: Final = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_MAX_BYTES: Final = 8 * 1024 * 1024
_LINE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([=<>!~^][^;#\\]*)")


def read_package_pins(root: Path) -> dict[str, str]:
    """What the project in *root* asks for of each package: a version where it is pinned, else the range as written.

    A lock file counts before requirement files, those before `pyproject.toml`. What cannot be read is passed over, for
    nothing but a remark of the review follows from it.
    """
    pins: dict[str, str] = {}
    for name in _LOCKS:
        for package in _mappings(_read_toml(root / name), "package", "packages"):
            _add(pins, package.get("name"), package.get("version"))
    for path in sorted(root.glob("*requirements*.txt")):
        for line in _read(path).splitlines():
            if found := _LINE.match(line.strip()):
                _add(pins, found[1], found[2])
    project = _read_toml(root / "pyproject.toml").get("project")
    dependencies = project.get("dependencies") if isinstance(project, Mapping) else None
    for line in dependencies if isinstance(dependencies, list) else ():
        if found := _LINE.match(str(line).strip()):
            _add(pins, found[1], found[2])
    return dict(sorted(pins.items()))


def _add(pins: dict[str, str], name: Any, version: Any) -> None:
    plain = re.sub(r"[-_.]+", "-", str(name)).lower()
    if plain in PACKAGES and isinstance(version, str) and version.strip():
        pins.setdefault(plain, version.strip().removeprefix("=="))


def _mappings(tree: Mapping[str, Any], *keys: str) -> Iterator[Mapping[str, Any]]:
    for key in keys:
        items = tree.get(key)
        yield from (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else ()


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError:
        return {}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
