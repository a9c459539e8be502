"""The drivers whose devices a class is for, as its selectors name them."""

from __future__ import annotations

import re
from typing import Final

from dra_infra.model.device_class import DeviceClass

DRIVER: Final = re.compile(r"device\.driver\s*==\s*(['\"])(?P<name>[a-z0-9.-]+)\1")
"""A test of the driver."""


def drivers_of(device_class: DeviceClass) -> set[str]:
    """The drivers that the selectors of a class name."""
    return {found["name"] for each in expressions_of(device_class) for found in DRIVER.finditer(each)}


def expressions_of(device_class: DeviceClass) -> list[str]:
    """Its selectors."""
    return [each.cel.expression for each in device_class.spec.selectors or () if each.cel is not None]
