"""NVIDIA facts and named fleets as data, each with its source and version; no rule about claims lives here.

`load_fleet` and `load_snapshot` are loaded when they are first asked for: validation needs the facts alone, and the nine
modules behind them are a twelfth of what it takes to start (`python -X importtime`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dra_infra.catalog.vocabulary import product_names

if TYPE_CHECKING:
    from dra_infra.catalog.fleets import load_fleet
    from dra_infra.catalog.snapshots import load_snapshot

_HOMES: Final = {"load_fleet": "fleets", "load_snapshot": "snapshots"}
"""The module of each name that is loaded late."""

__all__ = ["load_fleet", "load_snapshot", "product_names"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
