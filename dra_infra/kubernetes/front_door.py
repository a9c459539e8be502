"""The front door: a package lists its public names, and a name's module is loaded when the name is first used.

Most questions need few modules, and a command starts with no other ones.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def find_homes(names: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    """Return the module of each name, from the names of each module."""
    return {name: module for module, public in names.items() for name in public}


def load_late(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names lie in its modules.

    Args:
        package: Its full name.
        homes: The module of each public name, below the package. No name may be that of a module below it:
            importing the module would replace the name.
    """
    public = sorted(homes)

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: public
