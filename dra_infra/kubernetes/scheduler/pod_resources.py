"""Node resources that a pod takes: NodeResourcesFit with plain sums.

Source: PodRequests in k8s.io/component-helpers/resource, and fitsRequest in the scheduler's noderesources plugin.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction
from typing import Any

from dra_infra.kubernetes.api.manifests import mapping
from dra_infra.kubernetes.api.pod_containers import Amounts, parse_quantity, read_containers
from dra_infra.kubernetes.api.quantity import Quantity

Exact = dict[str, Fraction]
"""Amounts as they are written, by resource name."""


_POD_LEVEL = ("cpu", "memory")


def pod_requests(spec: Mapping[str, Any], added: Mapping[str, Fraction] | None = None) -> Amounts:
    """Amounts that one pod takes, overhead, the slot for the pod itself and what its devices have *added* included.

    Raises:
        ValueError: With the field's path in front, when a quantity is malformed.
    """
    inside = container_requests(spec)
    total = add_amounts(inside, added or {})
    total.update(find_pod_level(spec, inside))
    overhead = {
        str(name): parse_quantity(value, f"overhead {name}").value
        for name, value in mapping(spec.get("overhead")).items()
    }
    return round_amounts(add_amounts(total, overhead))


def container_requests(spec: Mapping[str, Any]) -> Exact:
    """Amounts that the containers take together; those that only start the pod do so one by one.

    Raises:
        ValueError: With the field's path in front, when a quantity is malformed.
    """
    regular: Exact = {}
    sidecars: Exact = {}
    starting: Exact = {}
    for container in read_containers(spec):
        if not container.is_init:
            regular = add_amounts(regular, container.amounts)
        elif container.is_lasting:
            sidecars = add_amounts(sidecars, container.amounts)
            starting = _maximum(starting, sidecars)
        else:
            starting = _maximum(starting, add_amounts(sidecars, container.amounts))
    return _maximum(add_amounts(regular, sidecars), starting)


def find_pod_level(spec: Mapping[str, Any], inside: Mapping[str, Fraction], minor: int = 0) -> Exact:
    """Amounts that `resources` of the pod as a whole request, in place of its containers'.

    A limit of the pod stands in for a request that neither it nor its containers make; containers' huge pages do not
    count as such. The others of its requests are then those of the containers, from 1.37 on also without a limit of
    the pod. Upstream: defaultPodRequests in pkg/apis/core/v1/defaults.go, DefaultPodLevelResources in pkg/api/pod.

    Args:
        spec: The pod spec.
        inside: What its containers request.
        minor: Of the server, for the requests that are those of the containers; 0 leaves these out.
    """
    resources = mapping(spec.get("resources"))
    found: Exact = {}
    if minor and (resources.get("limits") or (minor >= 37 and resources.get("requests"))):
        found = {name: amount for name, amount in inside.items() if name in _POD_LEVEL}
    for kind in ("limits", "requests"):
        for name, value in mapping(resources.get(kind)).items():
            is_huge = str(name).startswith("hugepages-")
            stands_in = kind == "requests" or is_huge or name not in inside
            if stands_in and (is_huge or name in _POD_LEVEL):
                found[str(name)] = parse_quantity(value, f"spec.resources {name}").value
    return found


def round_amounts(exact: Mapping[str, Fraction]) -> Amounts:
    """Amounts that the scheduler counts for one pod: whole units, none left at 0, and the pod's slot."""
    amounts = {name: _whole(name, amount) for name, amount in sorted(exact.items())}
    return {**{name: amount for name, amount in amounts.items() if amount > 0}, "pods": 1}


def add_amounts(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> Exact:
    """Adds amounts by resource."""
    zero = Fraction(0)
    return {name: one.get(name, zero) + other.get(name, zero) for name in {**one, **other}}


def node_amounts(allocatable: Mapping[str, str]) -> Amounts:
    """Amounts that a node offers.

    Raises:
        ValueError: With the resource's name in front, when a quantity is malformed.
    """
    return {name: _whole(name, parse_quantity(value, name).value) for name, value in allocatable.items()}


def find_shortage(requests: Amounts, free: Amounts, by_devices: Collection[str] = ()) -> str:
    """Return the first resource that the node has too little of; empty when the pod fits.

    Args:
        requests: What the pod takes.
        free: What the node has left.
        by_devices: Extended resources that devices stand for on this node: these are not counted here.
    """
    return next(find_shortages(requests, free, by_devices), "")


def find_shortages(requests: Amounts, free: Amounts, by_devices: Collection[str] = ()) -> Iterator[str]:
    """Yield all resources that the node has too little of, in order; takes the arguments of `find_shortage`."""
    if free.get("pods", 0) < 1:
        yield "pods"
    for name, amount in requests.items():
        if amount > free.get(name, 0) and name not in by_devices and name != "pods":
            yield name


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


def _maximum(one: Mapping[str, Fraction], other: Mapping[str, Fraction]) -> dict[str, Fraction]:
    zero = Fraction(0)
    return {name: max(one.get(name, zero), other.get(name, zero)) for name in {**one, **other}}


def _whole(name: str, amount: Fraction) -> int:
    return math.ceil(amount * 1000 if name == "cpu" else amount)
