"""Imports modules of a user from their source as it is now, and never from bytecode that an earlier run left.

Python takes bytecode as current if the source has the same size and was written in the same second (PEP 552). Somebody who
changes a number and asks again, or a tool that does, would get the answer for the file as it was.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib import machinery
from types import CodeType
from typing import Any, Final

_PACKAGES: Final = ("dist-packages", "site-packages")
_OWN: Final = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep  # noqa: PTH120  (it is faster)
"""This package: a release changes its files, and no user."""


@contextlib.contextmanager
def compiled_anew() -> Iterator[None]:
    """Compile each module of a user that the body imports. Installed packages keep their bytecode, which makes them fast."""
    installed = installed_folders()
    find = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (_SourceLoader, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )

    def find_users(folder: str) -> Any:
        if not _is_of_user(folder, installed):
            raise ImportError
        return find(folder)

    former = _take_finders(installed)
    sys.path_hooks.insert(0, find_users)
    try:
        yield
    finally:
        sys.path_hooks.remove(find_users)
        _take_finders(installed)
        sys.path_importer_cache.update(former)


def installed_folders() -> tuple[str, ...]:
    """Return the folders of Python's library and of packages that are installed for this process, each with a final slash."""
    packages = (each for each in sys.path if each.endswith(_PACKAGES))
    folders = (os.path.dirname(os.__file__), *packages)  # noqa: PTH120
    return tuple({each + os.sep for folder in folders for each in (folder, os.path.realpath(folder))})


class _SourceLoader(machinery.SourceFileLoader):
    """Neither reads bytecode nor writes it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _is_of_user(folder: str, installed: tuple[str, ...]) -> bool:
    for path in (os.path.abspath(folder), os.path.realpath(folder)):  # noqa: PTH100
        # An environment of the program's own has its packages in a folder of that name, too.
        is_installed = any(f"{os.sep}{each}{os.sep}" in f"{path}{os.sep}" for each in _PACKAGES)
        if is_installed or f"{path}{os.sep}".startswith((*installed, _OWN)):
            return False
    return True


def _take_finders(installed: tuple[str, ...]) -> dict[str, Any]:
    """Take what finds modules in folders of the user out of Python's cache."""
    paths = [each for each in sys.path_importer_cache if _is_of_user(each, installed)]
    return {path: sys.path_importer_cache.pop(path) for path in paths}
