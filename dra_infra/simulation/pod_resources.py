"""How much of a node's resources a pod takes: NodeResourcesFit with plain sums.

Source: PodRequests in k8s.io/component-helpers/resource, and fitsRequest in the scheduler's noderesources plugin.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from dra_infra.model.quantity import Quantity

Amounts = dict[str, int]
"""Whole amounts by resource name: thousandths for cpu, units for everything else, rounded up."""

_POD_LEVEL = ("cpu", "memory")


def pod_requests(spec: Mapping[str, Any]) -> Amounts:
    """What one pod takes, the slot for the pod itself included.

    Raises:
        ValueError: With the field's path in front, when a quantity is malformed.
    """
    regular = _sum(
        _container_requests(container, f"containers[{index}]")
        for index, container in enumerate(_objects(spec.get("containers")))
    )
    sidecars: dict[str, Fraction] = {}
    starting: dict[str, Fraction] = {}
    for index, container in enumerate(_objects(spec.get("initContainers"))):
        requests = _container_requests(container, f"initContainers[{index}]")
        if container.get("restartPolicy") == "Always":
            sidecars = _sum((sidecars, requests))
            requests = sidecars
        else:
            requests = _sum((sidecars, requests))
        starting = _maximum(starting, requests)
    total = _maximum(_sum((regular, sidecars)), starting)
    written = _mapping(_mapping(spec.get("resources")).get("requests"))
    for name, amount in _container_requests(spec, "spec").items():
        # A limit of the pod stands in for its request only where the containers ask for nothing.
        if (name in written or name not in total) and (name in _POD_LEVEL or name.startswith("hugepages-")):
            total[name] = amount
    amounts = {name: _whole(name, amount) for name, amount in total.items()}
    return {**{name: amount for name, amount in sorted(amounts.items()) if amount > 0}, "pods": 1}


def node_amounts(allocatable: Mapping[str, str]) -> Amounts:
    """What a node offers.

    Raises:
        ValueError: With the resource's name in front, when a quantity is malformed.
    """
    return {name: _whole(name, _parse(value, name)) for name, value in allocatable.items()}


def find_shortage(requests: Amounts, free: Amounts) -> str:
    """The first resource of which the node has too little, empty when the pod fits."""
    if free.get("pods", 0) < 1:
        return "pods"
    return next((name for name, amount in requests.items() if amount > free.get(name, 0)), "")


def show_amount(name: str, amount: int) -> str:
    """An amount as people write it: `1500m`, `64Gi`."""
    text = f"{amount}m" if name == "cpu" else str(amount)
    quantity = Quantity.parse(text).canonical()
    if name != "memory" and not name.startswith(("ephemeral-storage", "hugepages-")):
        return quantity
    for suffix in ("Ti", "Gi", "Mi", "Ki"):
        size = int(Quantity.parse(f"1{suffix}").value)
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return quantity


def _container_requests(container: Mapping[str, Any], path: str) -> dict[str, Fraction]:
    resources = container.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    # The server fills in requests from limits where only these are set.
    written = {**_mapping(resources.get("limits")), **_mapping(resources.get("requests"))}
    return {str(name): _parse(value, f"{path}.resources {name}") for name, value in written.items()}


def _sum(parts: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _maximum(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> dict[str, Fraction]:
    zero = Fraction(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}


def _parse(value: Any, path: str) -> Fraction:
    try:
        return Quantity.parse(str(value)).value
    except ValueError as error:
        raise ValueError(f"{path}: {str(value)[:80]!r}: {error}") from error


def _whole(name: str, amount: Fraction) -> int:
    return math.ceil(amount * 1000 if name == "cpu" else amount)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
