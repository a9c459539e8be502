"""The virtual environment that Pulumi.yaml names for a program, as Pulumi's toolchains `pip`, `uv` and `poetry` find it.

Its packages are added to the module path of this Python, before our own. So it has to be one of the same minor of Python.
"""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api.manifests import mapping

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"


def find_virtual_environment(root: Path, settings: Mapping[str, Any]) -> Path | None:
    """Return the folder of the environment, which may not be there; None where the project names none.

    Args:
        root: Folder of Pulumi.yaml.
        settings: What Pulumi.yaml holds.
    """
    options = mapping(mapping(settings.get("runtime")).get("options"))
    toolchain = options.get("toolchain")
    if named := options.get("virtualenv"):
        return root / str(named)
    if toolchain not in ("poetry", "uv"):
        return None
    marks = ("uv.lock", "pyproject.toml") if toolchain == "uv" else ("pyproject.toml",)
    folders = (each for mark in marks for each in (root, *root.parents) if (each / mark).is_file())
    return next(folders, root) / ".venv"


def packages_of(environment: Path) -> Path | None:
    """Return the folder of packages for this Python; None where there is none, or this Python runs in the environment."""
    folders = (
        environment / "lib" / f"python{_VERSION}" / "site-packages",
        environment / "Lib" / "site-packages",
    )
    packages = next((each for each in folders if each.is_dir()), None)
    if packages is None or os.path.realpath(packages) in map(os.path.realpath, sys.path):
        return None
    return packages


def add_packages(packages: Path) -> None:
    """Put *packages* first on the module path, with what its `.pth` files add: these may run code."""
    path = [*sys.path]
    site.addsitedir(str(packages))
    sys.path[:] = [*(each for each in sys.path if each not in path), *path]


def hint_on_modules(environment: Path | None) -> str:
    """Return where a module that is missing is to be installed."""
    if environment is None:
        return "install the program's requirements into the environment that runs dra-infra"
    others = sorted(
        found[1]
        for each in environment.glob("lib/python*/site-packages")
        if (found := re.fullmatch(r"python(\d+\.\d+)", each.parent.name)) and found[1] != _VERSION
    )
    if others and not (environment / "lib" / f"python{_VERSION}").is_dir():
        return (
            f"{environment.name} is for Python {others[0]}, and dra-infra runs on {_VERSION}: "
            f"install dra-infra on Python {others[0]}"
        )
    return f"install the program's requirements into {environment.name}, which Pulumi.yaml names: `pulumi install`"
