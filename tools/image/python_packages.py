"""The Python packages of an image: our wheel, and what it runs with, by hash and for the image's Python."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from configparser import ConfigParser
from pathlib import Path
from typing import Final

from tools.errors import ToolError
from tools.image import import_closure

ROOT: Final = Path(__file__).parent.parent.parent
REQUIREMENTS: Final = ROOT / "requirements" / "plugin.txt"
COMMAND_REQUIREMENTS: Final = ROOT / "requirements" / "run.txt"

FORBIDDEN: Final = ("pulumi", "pulumi_kubernetes", "cel_expr_python", "click", "jinja2", "requests", "rich")
"""Packages that authoring needs and no plugin: what is in the image can be attacked on every node."""

CARRIED: Final = ("dra_infra.plugin", "dra_infra.kubernetes.api")
"""Packages of our wheel that are in the image with all that they import: the plugin, and the records that back ends of others use."""

_LEFT_OUT: Final = ("direct_url.json", "INSTALLER", "REQUESTED", "RECORD", "uv_cache.json")
"""Notes of the installer, which name folders of this machine."""

FLAGS: Final = "-IOO"
"""How the image's Python runs: alone, and without docstrings and asserts, which would be 2 of 64 MB."""

_STARTER: Final = """#!/usr/bin/python3 {flags}
import sys

from {module} import {function}

sys.exit({function}())
"""

_COMMAND_STARTER: Final = """#!/usr/bin/python3 -I
from dra_infra.cli.process import main

main()
"""


def install(folder: Path, python: str) -> None:
    """Put the requirements of the node plugin and what it needs of our wheel into *folder*.

    Args:
        folder: Such as `usr/local/lib/python3.11/dist-packages` of the image.
        python: Version of its Python, `3.11`.

    Raises:
        ToolError: Where a wheel cannot be had, or something is in it that has no business there.
    """
    _install(folder, python, REQUIREMENTS)
    keep_imported(folder)
    if present := [name for name in FORBIDDEN if (folder / name).exists()]:
        raise ToolError(
            f"{', '.join(present)} would be in the image",
            hint="look what asks for it in requirements/plugin.txt",
        )


def install_command(folder: Path, python: str) -> None:
    """Put the requirements of the command `dra-infra` and all of our wheel into *folder*; the arguments are those of `install`.

    Raises:
        ToolError: Where a wheel cannot be had.
    """
    _install(folder, python, COMMAND_REQUIREMENTS)


def _install(folder: Path, python: str, requirements: Path) -> None:
    _uv(folder, python, ["--require-hashes", "--requirement", str(requirements)])
    with tempfile.TemporaryDirectory() as built:
        wheel = build_wheel(Path(built))
        _uv(folder, python, [str(wheel)])
    for path in [*folder.glob("*.dist-info/*")]:
        if path.name in _LEFT_OUT:
            path.unlink()
    for path in [
        *folder.rglob("*.pyi"),
        *folder.rglob("*.pyx"),
        *folder.glob("bin/*"),
        *folder.glob(".lock"),
    ]:
        path.unlink()
    if (folder / "bin").is_dir():
        (folder / "bin").rmdir()


def keep_imported(folder: Path) -> None:
    """Delete our modules that nothing of `CARRIED` imports, and the data of packages of which no module is left."""
    kept = set(import_closure.find_closure(folder, CARRIED).values())
    start = folder / import_closure.PACKAGE
    packages = {path.parent for path in start.rglob("__init__.py")}
    carried = {path.parent for path in kept if path.name == "__init__.py"} - {start}
    for path in sorted(start.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.suffix == ".py":
            if path not in kept:
                path.unlink()
        # Data belongs to the nearest package around it.
        elif next(each for each in path.parents if each in packages) not in carried:
            path.unlink()


def build_wheel(folder: Path) -> Path:
    """Our wheel, built into *folder*; equal sources give equal bytes."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800", "PYTHONPATH": ""}
    _run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        environment,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def starters(folder: Path) -> dict[str, str]:
    """The commands that the image has: those that our wheel declares and that need nothing else, by name."""
    commands = {}
    for file in folder.glob("dra_infra-*.dist-info/entry_points.txt"):
        read = ConfigParser()
        read.read_string(file.read_text())
        for name, place in read["console_scripts"].items():
            module, _, function = place.partition(":")
            if module.startswith("dra_infra.plugin"):
                commands[name] = _STARTER.format(flags=FLAGS, module=module, function=function)
    return commands


def command_starter(_folder: Path) -> dict[str, str]:
    """Return the command `dra-infra`. It keeps docstrings, which are its help."""
    return {"dra-infra": _COMMAND_STARTER}


def versions(folder: Path) -> list[tuple[str, str]]:
    """Name and version of every package in *folder*, sorted."""
    found = (path.name.removesuffix(".dist-info").split("-") for path in folder.glob("*.dist-info"))
    return sorted((name, version) for name, version in found)


def compile_all(root: Path, python: str, *, is_optimized: bool = True) -> None:
    """Compile every module by the image's own Python; *is_optimized* leaves out docstrings and asserts.

    Start-up counts, and nothing can be written where the image runs. The compiled files name no time and are not
    compared with their source, which cannot change either.
    """
    libraries = [str(each) for each in root.glob("usr/lib/*-linux-gnu*")]
    (loader,) = root.glob("usr/lib*/ld-linux-*.so.*")
    command = [str(loader), "--library-path", ":".join(libraries), str(root / f"usr/bin/python{python}")]
    options = ["-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(root), "-p", "/"]
    folders = [str(root / "usr/lib" / f"python{python}"), str(root / "usr/local/lib")]
    environment = {
        "PYTHONHOME": str(root / "usr"),
        # The order of names in compiled sets would change with each run.
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
    }
    optimization = ["-OO"] if is_optimized else []
    _run([*command, "-s", "-S", "-B", *optimization, *options, *folders], environment)


def _uv(folder: Path, python: str, what: Sequence[str]) -> None:
    uv = Path(sys.executable).parent / "uv"
    command = [
        str(uv),
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
        str(folder),
    ]
    command += ["--python", sys.executable, "--python-version", python, "--link-mode", "copy"]
    command += ["--python-platform", f"{platform.machine()}-manylinux_2_28"]
    _run([*command, *what], {**os.environ, "PYTHONPATH": ""})


def _run(command: Sequence[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()[-5:]
        lines = "\n".join(f"  | {line}" for line in said)
        raise ToolError(f"{Path(command[0]).name} failed\n{lines}")
