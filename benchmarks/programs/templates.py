"""The claim templates that every candidate writes, so that all of them write the same specs."""

from __future__ import annotations

from typing import Any

CLASS = "h100"


def count_of(index: int) -> int:
    """Devices that template *index* asks for."""
    return index % 8 + 1


def memory_of(index: int) -> str:
    """Least memory of a device of template *index*; another one in each, so that no selector is checked twice."""
    return f"{index + 1}Mi"


def spec_of(index: int, *, selectors: bool) -> dict[str, Any]:
    """The spec of template *index* as the API has it, as text that was checked by nobody."""
    exactly: dict[str, Any] = {"deviceClassName": CLASS, "count": count_of(index)}
    if selectors:
        expression = (
            'has(device.capacity["gpu.nvidia.com"].memory) && '
            f'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{memory_of(index)}")) >= 0'
        )
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
