"""The virtual environment of a program, as Pulumi's toolchains `pip`, `uv` and `poetry` find it.

Follows sdk/python/toolchain of Pulumi 3.276.0: `ResolveToolchain` (toolchain.go), `newPip`, `newUv` and `newPoetry`. The tools
themselves are not run. Packages of the environment are added to the module path of this Python, before our own. So it has to
be one of the same minor of Python.
"""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from dra_infra.kubernetes.api import mapping
from dra_infra.output.wording import nearest
from dra_infra.program.poetry_environment import find_poetry_environment
from dra_infra.program.project_files import invalid, is_outside

_VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
_TOOLCHAINS: Final = ("pip", "poetry", "uv")


class VirtualEnvironment(NamedTuple):
    """The environment of a program.

    Args:
        folder: Its folder, which may be missing. None where this Python's own environment is used.
        hint: What to do about a module that the program imports and that is missing.
    """

    folder: Path | None
    hint: str


NO_ENVIRONMENT: Final = VirtualEnvironment(None, "")
"""That of a program in another language."""


def find_virtual_environment(
    file: Path, settings: Mapping[str, Any], within: Sequence[Path] | None = None
) -> VirtualEnvironment:
    """Return the environment of the program of a project.

    Args:
        file: Pulumi.yaml.
        settings: What Pulumi.yaml holds.
        within: Folders that an environment of a reviewed program may be in. Variables and settings of the user count for no
            reviewed program. None for a program of the user's own.

    Raises:
        ProgramError: With code `invalid-project`.
    """
    options = _read_options(file, settings)
    root = file.parent
    folder = _folder_of_program(root, settings)
    toolchain = options.get("toolchain") or _detect_toolchain(folder)
    variables = os.environ if within is None else {}
    environment: Path | None
    if toolchain == "poetry":
        # Pulumi gives Poetry's environment, whatever `virtualenv` names.
        environment = find_poetry_environment(folder, variables)
    elif named := options.get("virtualenv"):
        environment = Path(os.path.normpath(root / named))
    else:
        environment = _uv_environment(folder, variables) if toolchain == "uv" else None
    if within is not None and toolchain == "poetry" and not (environment and environment.is_dir()):
        return VirtualEnvironment(environment, _HINT_IN_REVIEW)
    if environment is None:
        return VirtualEnvironment(None, _HINTS_WITHOUT.get(toolchain, _HINT_WITHOUT))
    if within is not None and all(is_outside(environment, each) for each in within):
        return VirtualEnvironment(None, _HINT_OUTSIDE.format(_show(environment, root)))
    return VirtualEnvironment(environment, _hint(environment, root, toolchain, variables))


def _read_options(file: Path, settings: Mapping[str, Any]) -> Mapping[str, str]:
    options = mapping(mapping(settings.get("runtime")).get("options"))
    for name in ("toolchain", "virtualenv"):
        if name in options and not isinstance(options[name], str):
            raise invalid(
                file,
                f"runtime.options.{name} is {repr(options[name])[:80]}, which is no text",
                f"write {name}: {_WORDS[name]}",
            )
    toolchain = options.get("toolchain", "pip")
    if toolchain not in _TOOLCHAINS:
        near = nearest(toolchain, _TOOLCHAINS)
        message = f"runtime.options.toolchain is {toolchain[:80]!r}, which Pulumi does not know"
        raise invalid(file, message, f"write {near}" if near else "write pip, poetry or uv")
    return options


_WORDS: Final = {"toolchain": "uv", "virtualenv": "venv"}


def _folder_of_program(root: Path, settings: Mapping[str, Any]) -> Path:
    """Return the folder that Pulumi runs the program in, by its name: a link to it is not followed."""
    main = Path(os.path.normpath(root / str(settings.get("main") or ".")))
    return main if main.is_dir() else main.parent


def _detect_toolchain(folder: Path) -> str:
    """Return the toolchain that a lock file selects, in the folder of the program or above."""
    if _search_upwards(folder, "uv.lock"):
        return "uv"
    return "poetry" if _search_upwards(folder, "poetry.lock") else "pip"


def _uv_environment(folder: Path, variables: Mapping[str, str]) -> Path:
    top = _search_upwards(folder, "uv.lock") or _search_upwards(folder, "pyproject.toml") or folder
    return top / (variables.get("UV_PROJECT_ENVIRONMENT") or ".venv")


def _search_upwards(folder: Path, name: str) -> Path | None:
    return next((each for each in (folder, *folder.parents) if os.path.exists(each / name)), None)  # noqa: PTH110


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


_HINT_WITHOUT: Final = "install the program's requirements into the environment that runs dra-infra"
_HINTS_WITHOUT: Final = {
    "poetry": "Poetry has no environment for this program, so it runs in that of dra-infra: write a pyproject.toml with a name, "
    "leave virtualenvs.create at true, and run `pulumi install`"
}
_HINT_IN_REVIEW: Final = (
    "a review uses an environment of Poetry in the repository alone: write in-project = true below [virtualenvs] in poetry.toml, "
    "and run `pulumi install`"
)
_HINT_OUTSIDE: Final = (
    "{} is outside of the repository, and a review uses no environment there: make one in the repository, "
    "or install the program's requirements into the environment that runs dra-infra"
)


def _hint(environment: Path, root: Path, toolchain: str, variables: Mapping[str, str]) -> str:
    shown = _show(environment, root)
    versions = sorted(
        match[1]
        for each in environment.glob("lib/python*/site-packages")
        if (match := re.fullmatch(r"python(\d+\.\d+)", each.parent.name))
    )
    if versions and _VERSION not in versions:
        other = f"install dra-infra on Python {versions[0]}"
        if toolchain == "poetry":
            other = f"{other}, or run `poetry env use {_VERSION}` and `pulumi install`"
        return f"{shown} is for Python {versions[0]}, and dra-infra runs on {_VERSION}: {other}"
    if toolchain == "poetry":
        if str(environment) == variables.get("VIRTUAL_ENV", variables.get("CONDA_PREFIX")):
            return f"Poetry uses {shown}, because it is activated: run `pulumi install`, or `deactivate` it first"
        if not environment.is_dir():
            return f"Poetry has no environment {shown}: run `poetry env use {_VERSION}` and `pulumi install`"
        return f"install the program's requirements into {shown}, which Poetry made: `pulumi install`"
    by = "uv makes" if toolchain == "uv" else "Pulumi.yaml names"
    return f"install the program's requirements into {shown}, which {by}: `pulumi install`"


def _show(environment: Path, root: Path) -> str:
    return str(environment.relative_to(root) if environment.is_relative_to(root) else environment)
