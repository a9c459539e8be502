"""NVIDIA facts and named fleets as data, each with its source and version; no rule about claims lives here.

`load_fleet` is loaded when it is first asked for: validation needs the facts alone, and starts faster without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_infra.catalog.vocabulary import product_names

if TYPE_CHECKING:
    from dra_infra.catalog.fleets import load_fleet

__all__ = ["load_fleet", "product_names"]


def __getattr__(name: str) -> Any:
    if name != "load_fleet":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dra_infra.catalog.fleets import load_fleet

    return load_fleet
