"""The messages of Pulumi's protocol without the rest of its SDK.

Language host and provider only speak the protocol. The SDK's own `__init__` loads everything that a program may need, which
takes longer than all else that they do at their start, and the engine starts each of them once or twice per command.
"""

from __future__ import annotations

import importlib.util
import sys
import types


def load_alone() -> None:
    """Make `pulumi.runtime.proto` importable without `pulumi`; only for processes that run no program.

    Raises:
        ModuleNotFoundError: The SDK is not installed.
    """
    found = importlib.util.find_spec("pulumi")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'pulumi'", name="pulumi")
    (folder,) = found.submodule_search_locations
    for name, path in (("pulumi", folder), ("pulumi.runtime", f"{folder}/runtime")):
        package = types.ModuleType(name)
        package.__path__ = [path]
        sys.modules[name] = package
