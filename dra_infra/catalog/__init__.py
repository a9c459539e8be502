"""NVIDIA facts and named fleets as data, each with its source and version; no rule about claims lives here."""

from dra_infra.catalog.fleets import load_fleet
from dra_infra.catalog.records import product_names

__all__ = ["load_fleet", "product_names"]
