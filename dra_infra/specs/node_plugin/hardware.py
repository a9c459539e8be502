"""Which devices the plugin has: back end, fleet, the driver's name, and the classes that go with them."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.catalog.drivers import ShippedClass, drivers
from dra_infra.catalog.fleet_terms import read_terms
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.errors import FleetError, Problem
from dra_infra.model import names
from dra_infra.specs.arguments import PLAIN_HINT, shorten, wrong_type

BACK_ENDS: Final = ("sim", "nvml")

DEFAULT_FLEET: Final = "example"
"""The fleet of a simulated plugin where none is named: pretended devices, which nobody takes for real ones."""

_NVIDIA: Final = "gpu.nvidia.com"
_PUBLISHED_BY_NVML: Final = ("gpu", "mig")
_LONGEST_DRIVER: Final = 63


@dataclass(frozen=True)
class Hardware:
    """What a node has, after the plugin.

    Args:
        back_end: One of `BACK_ENDS`.
        fleet: As the plugin is told; empty for `nvml`.
        driver: Name of the driver in slices.
        is_named: Whether the user named the driver.
        classes: The DeviceClasses that the driver's chart would bring.
    """

    back_end: str
    fleet: str
    driver: str
    is_named: bool
    classes: tuple[ShippedClass, ...]


def choose_hardware(arguments: Mapping[str, Any]) -> tuple[Hardware | None, list[Problem]]:
    """The hardware, None where it is not known, and problems.

    Codes: `missing-argument`, `unsupported-value`, `wrong-type`, `invalid-name`, `field-not-allowed`, `fleet-unknown`,
    `fleet-count`, `fleet-option` and what else `read_terms` says of a fleet.
    """
    back_end, fleet, named = (arguments.get(name) for name in ("back_end", "fleet", "driver"))
    problems = [*_check_back_end(back_end), *_check_driver(named)]
    known = isinstance(back_end, str) and back_end in BACK_ENDS
    if back_end == "nvml" and fleet is not None:
        hint = 'leave it out, or write back_end="sim"'
        problems.append(
            Problem(
                path="fleet", code="field-not-allowed", message="nvml has the GPUs of the node", hint=hint
            )
        )
    group, wrong = _read_fleet(fleet) if back_end != "nvml" else (None, [])
    problems += wrong
    if problems or not known:
        return None, problems
    driver = named or (group.kind.driver if group else _NVIDIA)
    shipped = _shipped(group)
    if driver != (group.kind.driver if group else _NVIDIA):
        shipped = (ShippedClass(driver, f"device.driver == '{driver}'", "gpu"),)
    text = (fleet or DEFAULT_FLEET) if group else ""
    return Hardware(str(back_end), text, driver, bool(named), shipped), []


def _shipped(group: NodeGroup | None) -> tuple[ShippedClass, ...]:
    if group:
        return group.release.classes
    newest = drivers()[_NVIDIA].newest
    return tuple(each for each in newest.classes if each.selects in _PUBLISHED_BY_NVML)


def _read_fleet(fleet: object) -> tuple[NodeGroup | None, list[Problem]]:
    """The kind of node that the plugin makes of every node."""
    if fleet is None:
        fleet = DEFAULT_FLEET
    if not isinstance(fleet, str):
        return None, [wrong_type("fleet", fleet, "the name of a fleet", 'write fleet="hgx-h100"')]
    try:
        groups = read_terms(fleet)
    except FleetError as error:
        return None, [
            Problem(path="fleet", code=each.code, message=each.message, hint=each.hint)
            for each in error.problems
        ]
    if len(groups) > 1 or groups[0].count > 1:
        return None, [
            Problem(
                path="fleet",
                code="fleet-count",
                message=f"{shorten(fleet)} is more than one node, and the plugin makes one of each node that it runs on",
                hint="name one fleet without a count; for others write another NodePlugin with another node_selector",
            )
        ]
    return groups[0], []


def _check_back_end(back_end: object) -> list[Problem]:
    known = ", ".join(f'"{name}"' for name in BACK_ENDS)
    if back_end is None:
        message, hint = (
            "the back end is not named",
            'write back_end="sim" for pretended devices, "nvml" for real GPUs',
        )
        return [Problem(path="back_end", code="missing-argument", message=message, hint=hint)]
    if not isinstance(back_end, str):
        return [wrong_type("back_end", back_end, f"one of {known}", PLAIN_HINT)]
    if back_end in BACK_ENDS:
        return []
    near = difflib.get_close_matches(back_end.lower()[:80], BACK_ENDS, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"known are {known}"
    return [
        Problem(
            path="back_end",
            code="unsupported-value",
            message=f"{shorten(back_end)} is no back end",
            hint=hint,
        )
    ]


def _check_driver(driver: object) -> list[Problem]:
    """A driver's name is a DNS subdomain of at most 63 characters (upstream: ValidateDriverName of resource.k8s.io)."""
    if driver is None:
        return []
    if not isinstance(driver, str):
        return [wrong_type("driver", driver, "the name of a driver", PLAIN_HINT)]
    if names.is_dns_subdomain(driver) and len(driver) <= _LONGEST_DRIVER:
        return []
    return [
        Problem(
            path="driver",
            code="invalid-name",
            message=f"{shorten(driver)} is not the name of a driver",
            hint="use at most 63 lower-case letters, digits, '-' and '.', such as gpu.example.com",
        )
    ]
