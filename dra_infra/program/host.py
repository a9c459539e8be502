"""The process that Pulumi's Python host gives a program: its folder, arguments, module path and modules.

All of it stays until the last registration is answered: the SDK resolves annotations in the program's modules, and
functions in `apply` open files from its folder. Nothing of it stays for the next program of the same process.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from pulumi.runtime import rpc

from dra_infra.program.current_modules import compiled_anew, installed_folders
from dra_infra.program.virtual_environment import add_packages, packages_of

_PACKAGE = __name__.partition(".")[0]


@contextlib.contextmanager
def hosted(
    program: Path, variables: Mapping[str, str], environment: Path | None, *, is_own_process: bool
) -> Iterator[None]:
    """Give a program what a process of its own would: run from its folder, and import every module of a user anew.

    Args:
        program: The file or folder to run.
        variables: Environment variables that its stack sets.
        environment: Its virtual environment.
        is_own_process: Whether the process was started for it: what Python's start imported is the program's then.
    """
    folder = str(program if program.is_dir() else program.parent)
    directory = Path.cwd()
    path = [*sys.path]
    arguments = sys.argv
    former = dict(os.environ)
    main = sys.modules["__main__"]
    installed = installed_folders()
    started_with = _find_users_modules(installed)
    hidden = _Taken({} if is_own_process else started_with)
    hidden.take()
    importlib.invalidate_caches()
    sys.argv = [str(program)]
    try:
        with compiled_anew():
            if environment and (packages := packages_of(environment)):
                add_packages(packages)
            sys.path.insert(0, folder)
            os.chdir(folder)
            os.environ.update(variables)
            yield
    finally:
        os.chdir(directory)
        sys.argv = arguments
        os.environ.clear()
        os.environ.update(former)
        sys.path[:] = path
        sys.modules["__main__"] = main
        now = _find_users_modules(installed)
        _Taken({name: each for name, each in now.items() if started_with.get(name) is not each}).take()
        hidden.restore()


def run_file(program: Path) -> None:
    """Run a program in the process that `hosted` gives it."""
    # runpy takes the module away at its end, but registrations are answered later.
    main = ModuleType("__main__")
    vars(main).update(runpy.run_path(str(program), run_name="__main__"))
    sys.modules["__main__"] = main


class _Taken:
    """Modules of a user that were taken out of the process, with what they registered at the SDK."""

    def __init__(self, modules: dict[str, ModuleType]) -> None:
        self._modules = modules
        self._registered = [
            (entries, entry)
            for registry in _registries()
            for entries in registry.values()
            for entry in entries
            if type(entry).__module__ in modules
        ]

    def take(self) -> None:
        """Take them out."""
        for name in self._modules:
            del sys.modules[name]
        for entries, entry in self._registered:
            entries.remove(entry)

    def restore(self) -> None:
        """Put them back."""
        sys.modules.update(self._modules)
        for entries, entry in self._registered:
            entries.append(entry)


def _find_users_modules(installed: tuple[str, ...]) -> dict[str, ModuleType]:
    return {name: each for name, each in sys.modules.items() if _is_of_user(name, each, installed)}


def _is_of_user(name: str, module: ModuleType, installed: tuple[str, ...]) -> bool:
    if name.partition(".")[0] in ("__main__", _PACKAGE):
        return False
    # A folder without `__init__.py` is a module without a file.
    file = str(getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), ""))
    # Links are followed for the few that remain: it takes ten calls of the system for each.
    return bool(file) and not file.startswith(installed) and not os.path.realpath(file).startswith(installed)


def _registries() -> Iterator[dict[str, list[Any]]]:
    """Yield what generated SDKs register, which may be registered once in a process."""
    for name in ("_RESOURCE_MODULES", "_RESOURCE_PACKAGES"):
        yield getattr(rpc, name, {})
