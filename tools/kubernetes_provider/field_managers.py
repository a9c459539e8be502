"""Who owns which field of an object, and when an update may take fields over.

A create leaves its fields to the manager `pulumi-kubernetes` with operation Update; the first server-side
apply must take them over, or fields that leave the program would stay on the object for ever. Behaviour of
`fixCSAFieldManagers` and `patchForce` in `provider/pkg/await/await.go` of pulumi/pulumi-kubernetes.
"""

from __future__ import annotations

from typing import Any, Final

CREATOR: Final = "pulumi-kubernetes"
"""Field manager of creates."""

OWN_CREATORS: Final = frozenset({CREATOR, "pulumi-kubernetes.exe", "pulumi-resource-kubernetes"})
INHERITED: Final = frozenset(
    {
        *((name, "Update") for name in OWN_CREATORS),
        ("kubectl", "Apply"),
        ("kubectl", "Update"),
        ("before-first-apply", "Update"),
    }
)
"""Managers and operations whose fields an update takes over; a manager counts by the beginning of its name, as
`kubectl-client-side-apply` and `kubectl-edit` do. Source: `PatchReplaceFieldsManagers` in `ssa` of fluxcd/pkg.
"""

Json = dict[str, Any]


def plan_takeover(live: Json, manager: str) -> list[Json]:
    """Return the JSON patch that gives *manager* all inherited fields of *live*; empty if there are none.

    The patch holds only for the version of *live*: the server answers Conflict when it has changed.
    """
    entries = live["metadata"].get("managedFields") or []
    inherited = [entry for entry in entries if _is_inherited(entry)]
    if not inherited:
        return []
    own = [entry for entry in entries if _is_applied_by(entry, manager)]
    fields: Json = {}
    for entry in [*own, *inherited]:
        _merge(fields, entry.get("fieldsV1") or {})
    united = {
        **(own or inherited)[0],
        "manager": manager,
        "operation": "Apply",
        "apiVersion": live["apiVersion"],
        "fieldsV1": fields,
    }
    others = [entry for entry in entries if entry not in own and entry not in inherited]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [united, *others]},
        {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": live["metadata"]["resourceVersion"],
        },
    ]


def must_force_preview(live: Json) -> bool:
    """Tell whether a dry run conflicts only because the takeover is not part of it."""
    entries = live["metadata"].get("managedFields") or []
    return not entries or any(
        entry.get("operation") == "Update" and entry.get("manager") in OWN_CREATORS for entry in entries
    )


def _is_inherited(entry: Json) -> bool:
    manager = str(entry.get("manager"))
    operation = entry.get("operation")
    return not entry.get("subresource") and any(
        manager.startswith(beginning) and operation == inherited for beginning, inherited in INHERITED
    )


def _is_applied_by(entry: Json, manager: str) -> bool:
    return (
        not entry.get("subresource") and entry.get("manager") == manager and entry.get("operation") == "Apply"
    )


def _merge(target: Json, source: Json) -> None:
    """Add the field set *source* to *target*; both are tries of steps such as `f:spec`."""
    for step, below in source.items():
        _merge(target.setdefault(step, {}), below)
