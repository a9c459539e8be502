"""What the plugin may do: what it does, and of slices those of its own node alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

_GROUP: Final = "resource.k8s.io"

_OWN_NODE: Final = "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')"
"""The node of the pod that a token was made for: the API server says so of tokens of pods (KEP 4193)."""


def rules(driver: str, *, binding_conditions: bool) -> list[dict[str, Any]]:
    """The rules of the ClusterRole.

    Claims are read one by one, by the name that the kubelet says, and listed where a damaged disk has left their UIDs
    alone; who sets binding conditions follows them. The node is read for its UID, which owns the slices.

    Args:
        driver: Name of the driver.
        binding_conditions: Whether the plugin sets conditions of devices in claims. For that it needs a verb of its
            own beside `patch`, by which the server knows drivers (DRAResourceClaimGranularStatusAuthorization).
    """
    slices = ["list", "watch", "create", "update", "delete"]
    given = [
        _rule("", "nodes", ["get"]),
        _rule(_GROUP, "resourceclaims", ["get", "list", *(["watch"] if binding_conditions else [])]),
        _rule(_GROUP, "resourceslices", slices),
    ]
    if binding_conditions:
        given.append(_rule(_GROUP, "resourceclaims/status", ["patch"]))
        given.append(
            {**_rule(_GROUP, "resourceclaims/driver", ["associated-node:patch"]), "resourceNames": [driver]}
        )
    return given


def policy(
    driver: str, *, account: str, namespace: Any, join: Callable[[Sequence[Any]], Any]
) -> dict[str, Any]:
    """The spec of the ValidatingAdmissionPolicy: whoever has the token of one node cannot touch slices of another.

    The pool has to be the node's too: a slice of an own node in a pool of another one would, with a higher generation,
    take that one's devices away. Shape after kubernetes-sigs/dra-example-driver, which checks the node alone.

    Args:
        driver: Name of the driver.
        account: Name of the service account.
        namespace: Its namespace.
        join: Joins texts of which some may not be known yet.
    """
    user = join(["request.userInfo.username == 'system:serviceaccount:", namespace, f":{account}'"])
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [_GROUP],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["resourceslices"],
                }
            ]
        },
        "matchConditions": [{"name": "is-node-plugin", "expression": user}],
        "variables": [
            {"name": "node", "expression": _OWN_NODE},
            {"name": "slice", "expression": "request.operation == 'DELETE' ? oldObject : object"},
        ],
        "validations": [
            {
                "expression": "variables.node != ''",
                "message": "this token is of no node: only pods of the plugin's DaemonSet write slices",
                "reason": "Forbidden",
            },
            {
                "expression": "variables.slice.spec.?nodeName.orValue('') == variables.node",
                "messageExpression": "'the plugin of node ' + variables.node + ' writes slices of that node alone'",
                "reason": "Forbidden",
            },
            {
                "expression": "variables.slice.spec.pool.name == variables.node",
                "messageExpression": "'the pool of a slice of node ' + variables.node + ' has that name'",
                "reason": "Forbidden",
            },
            {
                "expression": f"variables.slice.spec.driver == '{driver}'",
                "message": f"the driver of its slices is {driver}",
                "reason": "Forbidden",
            },
        ],
    }


def _rule(group: str, resource: str, verbs: Sequence[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
