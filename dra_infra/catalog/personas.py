"""Personas: who does what with devices on a cluster, and the least rights that each needs.

Drivers have rights of their own, by the name of the driver and the minor of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal

from pydantic import Field

from dra_infra.catalog.records import Entry, Fact
from dra_infra.catalog.vocabulary import read_data

_GROUP: Final = "resource.k8s.io"
_STATUS_BY_DRIVER: Final = 36
"""From 1.36 on a driver needs a verb by its name to change its devices in a claim's status (gate
DRAResourceClaimGranularStatusAuthorization, pkg/registry/resource/resourceclaim/strategy.go)."""


class Rule(Entry):
    """Verbs on resources of API groups, or on addresses that are no resources."""

    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    verbs: tuple[str, ...] = Field(min_length=1)

    def to_manifest(self) -> dict[str, Any]:
        """The rule as a role has it."""
        if self.urls:
            return {"nonResourceURLs": list(self.urls), "verbs": list(self.verbs)}
        return {
            "apiGroups": list(self.groups),
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }


class Persona(Fact):
    """A kind of people, or of programs.

    Args:
        meaning: What they do with devices.
        scope: Where their role is bound: in the whole cluster, or in the namespaces of tenants.
        rules: The least rights that they need.
    """

    meaning: str
    scope: Literal["cluster", "namespace"]
    rules: tuple[Rule, ...] = Field(min_length=1)


@cache
def personas() -> Mapping[str, Persona]:
    """All personas by name."""
    return {name: Persona.model_validate(entry) for name, entry in read_data("personas.yaml").items()}


def rules_of(persona: str) -> list[dict[str, Any]]:
    """The rules of a persona's role, as a ClusterRole has them."""
    return [rule.to_manifest() for rule in personas()[persona].rules]


def rules_of_driver(driver: str, minor: int) -> list[dict[str, Any]]:
    """The rules of the role of a driver's node plugin.

    Which slices it may write is not limited by RBAC: a ValidatingAdmissionPolicy holds it to those of its own node, as
    upstream's example does (test/e2e/dra/test-driver/deploy/example/plugin-permissions.yaml).
    """
    slices = ("create", "delete", "get", "list", "patch", "update", "watch")
    rules = [
        Rule(groups=(_GROUP,), resources=("resourceslices",), verbs=slices),
        Rule(groups=(_GROUP,), resources=("resourceclaims",), verbs=("get",)),
        Rule(groups=(_GROUP,), resources=("resourceclaims/status",), verbs=("patch", "update")),
        Rule(groups=("",), resources=("nodes",), verbs=("get",)),
    ]
    found = [rule.to_manifest() for rule in rules]
    if minor >= _STATUS_BY_DRIVER:
        verbs = ("associated-node:patch", "associated-node:update")
        rule = Rule(groups=(_GROUP,), resources=("resourceclaims/driver",), verbs=verbs)
        found.append({**rule.to_manifest(), "resourceNames": [driver]})
    return found
