"""The containers of a pod spec with what they request, as the API server completes it.

Source: SetDefaults_Pod in pkg/apis/core/v1/defaults.go: a limit stands in for a request that is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.kubernetes.api.quantity import Quantity

Amounts = dict[str, int]
"""Whole amounts by resource name: thousandths for cpu, units for everything else, rounded up."""


@dataclass(frozen=True, slots=True)
class PodContainer:
    """One container.

    Args:
        name: Its name in the pod.
        requests: What it requests, exactly as written, by resource.
        is_init: Whether it is one of the init containers.
        is_lasting: Whether it runs as long as the pod: all but init containers that end.
        claims: Entries of the pod's claims that it uses, in the order written.
        limits: Resources of which it has a limit.
    """

    name: str
    requests: Mapping[str, Quantity] = field(hash=False)
    is_init: bool = False
    is_lasting: bool = True
    claims: tuple[str, ...] = ()
    limits: frozenset[str] = frozenset()

    @property
    def amounts(self) -> dict[str, Fraction]:
        """The exact amounts that it requests, by resource."""
        return {name: amount.value for name, amount in self.requests.items()}

    def count(self, resource: str) -> int:
        """How many of a resource it requests; none when the scheduler cannot read that as a whole number."""
        amount = self.requests.get(resource)
        return (amount.stored_int64() or 0) if amount else 0

    def position(self, resource: str) -> int:
        """The number of a resource among the sorted names of all that it requests."""
        return sorted(self.requests).index(resource)


def read_containers(spec: Mapping[str, Any]) -> list[PodContainer]:
    """The init containers, then the others, in the order written.

    Raises:
        ValueError: With the field's path in front, when a quantity is malformed.
    """
    found: list[PodContainer] = []
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(mappings(spec.get(kind))):
            lasting = kind == "containers" or container.get("restartPolicy") == "Always"
            resources = mapping(container.get("resources"))
            found.append(
                PodContainer(
                    name=str(container.get("name") or ""),
                    requests=read_requests(container, f"{kind}[{index}]"),
                    is_init=kind == "initContainers",
                    is_lasting=lasting,
                    claims=tuple(str(claim.get("name")) for claim in mappings(resources.get("claims"))),
                    limits=frozenset(map(str, mapping(resources.get("limits")))),
                )
            )
    return found


def read_requests(holder: Mapping[str, Any], path: str) -> dict[str, Quantity]:
    """Quantities that a container or pod requests by itself, by resource.

    Raises:
        ValueError: With the field's path in front, when a quantity is malformed.
    """
    resources = mapping(holder.get("resources"))
    written = {**mapping(resources.get("limits")), **mapping(resources.get("requests"))}
    return {str(name): parse_quantity(value, f"{path}.resources {name}") for name, value in written.items()}


def parse_quantity(value: Any, path: str) -> Quantity:
    """Reads a quantity at *path*.

    Raises:
        ValueError: With *path* in front, when it is malformed.
    """
    try:
        return Quantity.parse(str(value))
    except ValueError as error:
        raise ValueError(f"{path}: {str(value)[:80]!r}: {error}") from error
