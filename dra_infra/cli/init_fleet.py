"""What the program of a new project asks for, so that it fits on its fleet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.catalog import load_fleet
from dra_infra.catalog.fleet_terms import read_terms
from dra_infra.cel import gpu
from dra_infra.errors import Problem, ScaffoldError
from dra_infra.model.device import Device
from dra_infra.model.fleet import Fleet
from dra_infra.model.quantity import Quantity
from dra_infra.validation import validate

_NVIDIA: Final = "gpu.nvidia.com"
_FILE_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True, kw_only=True)
class StartingPoint:
    """What the first program asks for.

    Args:
        fleet: The fleet as the stack file names it.
        file: Text of the fleet's file; empty where the fleet is named.
        device_driver: The DRA driver of the class.
        memory: Whole GiB that GPUs of the class have at least, as `79Gi`; empty for other drivers than NVIDIA's.
        driver: Release line of NVIDIA's driver; empty where the fleet does not say it.
        replicas: Pods that fit.
    """

    fleet: str
    file: str
    device_driver: str
    memory: str
    driver: str
    replicas: int


def starting_point(fleet: str, *, kubernetes: str) -> StartingPoint:
    """Read *fleet*, and choose what fits on it.

    Raises:
        FleetError: When it cannot be read.
        ScaffoldError: `fleet-without-gpus`.
    """
    loaded = load_fleet(fleet, kubernetes=kubernetes)
    text = fleet.strip()
    is_file = text.lower().endswith(_FILE_ENDINGS) or "/" in text
    found = list(_whole_devices(loaded))
    if not found:
        raise ScaffoldError(
            [
                Problem(
                    path="--fleet",
                    code="fleet-without-gpus",
                    message=f"{loaded.name} has no whole GPU, and the first program asks for one",
                    hint="start with --fleet 'hgx-h100 x 4'; docs/mig.md shows how to ask for parts of GPUs",
                )
            ]
        )
    driver, first = found[0]
    name, content = _as_setting(text) if is_file else (text, "")
    return StartingPoint(
        fleet=name,
        file=content,
        device_driver=driver,
        memory=_round_amount(first) if driver == _NVIDIA else "",
        driver="" if is_file else _release_of(text),
        replicas=min(2, len(found)),
    )


def _whole_devices(fleet: Fleet) -> Iterator[tuple[str, Device]]:
    """NVIDIA's GPUs first, then devices of other drivers that a class can take without a selector."""
    others: list[tuple[str, Device]] = []
    for each in fleet.slices:
        for device in each.spec.devices or []:
            attributes = device.attributes or {}
            if each.spec.driver == _NVIDIA:
                if "type" in attributes and attributes["type"].string == "gpu" and _memory(device):
                    yield each.spec.driver, device
            elif not each.spec.driver.endswith(".nvidia.com"):
                others.append((each.spec.driver, device))
    yield from others


def _memory(device: Device) -> str:
    capacity = (device.capacity or {}).get("memory")
    gibibytes = Quantity.parse(str(capacity.value)).nanos // (10**9 * 2**30) if capacity else 0
    return f"{gibibytes}Gi" if gibibytes else ""


def _round_amount(device: Device) -> str:
    """The most that is advised of: cards of one size report amounts that differ a little."""
    most = int(_memory(device).removesuffix("Gi"))
    return next((f"{each}Gi" for each in range(most, 0, -1) if not _advised(each)), f"{most}Gi")


def _advised(gibibytes: int) -> bool:
    selector = gpu.memory >= f"{gibibytes}Gi"
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"selectors": [{"cel": {"expression": selector.expression()}}]},
    }
    return bool(validate([manifest]))


def _release_of(text: str) -> str:
    lines = {group.line for group in read_terms(text) if group.kind.driver == _NVIDIA}
    return lines.pop() if len(lines) == 1 else ""


def _as_setting(text: str) -> tuple[str, str]:
    """The file of a fleet moves into the project, for the stack file must not name a file of one machine alone."""
    content = Path(text).read_text(encoding="utf-8")
    suffix = ".json" if text.lower().endswith(".json") else ".yaml"
    return f"fleet{suffix}", content
