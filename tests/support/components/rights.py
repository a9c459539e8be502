"""Who may do what in a cluster of GpuRoles and GpuTenant: persona, verb, resource and place, as tests ask real servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DRA = "resource.k8s.io"
READ = ("get", "list", "watch")
WRITE = ("create", "update", "patch", "delete")

MAY: dict[str, dict[tuple[str, str, str], tuple[str, ...]]] = {
    # Where: the namespace of the tenant, that of another one, or the cluster.
    "platform-admin": {
        ("cluster", DRA, "deviceclasses"): (*READ, *WRITE),
        ("cluster", DRA, "devicetaintrules"): (*READ, *WRITE),
        ("cluster", DRA, "resourceslices"): READ,
        ("cluster", "", "namespaces"): (*READ, *WRITE),
        ("cluster", "", "nodes"): READ,
        ("any", "", "resourcequotas"): (*READ, *WRITE),
        ("any", "", "pods"): READ,
        ("any", DRA, "resourceclaims"): READ,
        ("any", DRA, "resourceclaimtemplates"): (*READ, *WRITE),
    },
    "on-call": {
        ("cluster", DRA, "deviceclasses"): READ,
        ("cluster", DRA, "devicetaintrules"): (*READ, *WRITE),
        ("cluster", DRA, "resourceslices"): (*READ, "delete"),
        ("cluster", "", "namespaces"): READ,
        ("cluster", "", "nodes"): READ,
        ("any", "", "resourcequotas"): READ,
        ("any", "", "pods"): (*READ, "delete"),
        ("any", "", "pods/eviction"): ("create",),
        ("any", DRA, "resourceclaims"): (*READ, "delete"),
        ("any", DRA, "resourceclaimtemplates"): READ,
    },
    "reader": {
        ("cluster", DRA, "deviceclasses"): ("list", "watch"),
        ("cluster", DRA, "devicetaintrules"): ("list", "watch"),
        ("cluster", DRA, "resourceslices"): ("list", "watch"),
        ("cluster", "", "namespaces"): ("list", "watch"),
        ("cluster", "", "nodes"): ("list", "watch"),
        **{("any", "", each): ("list", "watch") for each in ("pods", "resourcequotas")},
        **{("any", DRA, each): ("list", "watch") for each in ("resourceclaims", "resourceclaimtemplates")},
        ("any", "apps", "deployments"): ("list", "watch"),
        ("any", "batch", "jobs"): ("list", "watch"),
    },
    "driver": {
        ("cluster", DRA, "resourceslices"): (*READ, *WRITE),
        ("cluster", "", "nodes"): ("get",),
        ("any", DRA, "resourceclaims"): ("get",),
        ("any", DRA, "resourceclaims/status"): ("update", "patch"),
    },
    "team-lead": {
        **{("cluster", DRA, each): READ for each in ("deviceclasses", "resourceslices")},
        **{("own", DRA, each): (*READ, *WRITE) for each in ("resourceclaims", "resourceclaimtemplates")},
        ("own", "", "pods"): (*READ, *WRITE),
        ("own", "", "pods/eviction"): ("create",),
        ("own", "apps", "deployments"): (*READ, *WRITE),
        ("own", "batch", "jobs"): (*READ, *WRITE),
        ("own", "", "resourcequotas"): READ,
    },
    "developer": {
        **{("cluster", DRA, each): READ for each in ("deviceclasses", "resourceslices")},
        **{("own", DRA, each): READ for each in ("resourceclaims", "resourceclaimtemplates")},
        ("own", "", "pods"): (*READ, *WRITE),
        ("own", "apps", "deployments"): (*READ, *WRITE),
        ("own", "batch", "jobs"): (*READ, *WRITE),
        ("own", "", "resourcequotas"): READ,
    },
}
"""Verbs that each persona may use, by place, group and resource; of what is not named, none."""

OF_CLUSTER = {(DRA, each) for each in ("deviceclasses", "devicetaintrules", "resourceslices")}
OF_CLUSTER |= {("", "namespaces"), ("", "nodes"), ("rbac.authorization.k8s.io", "clusterroles")}
IN_NAMESPACES = {
    (DRA, each) for each in ("resourceclaims", "resourceclaims/status", "resourceclaims/binding")
}
IN_NAMESPACES |= {(DRA, "resourceclaimtemplates"), ("apps", "deployments"), ("batch", "jobs")}
IN_NAMESPACES |= {("", each) for each in ("pods", "pods/eviction", "resourcequotas", "secrets")}
IN_NAMESPACES |= {("rbac.authorization.k8s.io", "rolebindings")}


@dataclass(frozen=True)
class Asked:
    """One row of the table."""

    persona: str
    verb: str
    group: str
    resource: str
    place: str

    @property
    def is_expected(self) -> bool:
        """The table says yes; `any` is every namespace."""
        said = MAY[self.persona]
        places = (self.place,) if self.place == "cluster" else (self.place, "any")
        return any(self.verb in said.get((place, self.group, self.resource), ()) for place in places)


ROWS = [
    Asked(persona, verb, group, resource, place)
    for persona in MAY
    for places, resources in ((("cluster",), OF_CLUSTER), (("own", "other"), IN_NAMESPACES))
    for group, resource in sorted(resources)
    for place in places
    for verb in (*READ, *WRITE)
]


def attributes_of(asked: Asked, namespaces: Mapping[str, str]) -> dict[str, Any]:
    """What a review of access asks the server about a row.

    Args:
        asked: The row.
        namespaces: The namespace of each place; empty for the cluster.
    """
    resource, _, sub = asked.resource.partition("/")
    attributes = {"verb": asked.verb, "group": asked.group, "resource": resource, "subresource": sub}
    if namespace := namespaces[asked.place]:
        attributes["namespace"] = namespace
    return attributes
