"""RBAC rules, admission policy and network policy of the node plugin.

It may do what it does, and of slices and claims' status only with those of its own node. In the network its pods are
reached by the node of each, and by whoever reads metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dra_infra.specs.node_plugin import daemon_set

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


def admission_policy(
    driver: str,
    *,
    account: str,
    namespace: Any,
    binding_conditions: bool,
    join: Callable[[Sequence[Any]], Any],
) -> dict[str, Any]:
    """The spec of the ValidatingAdmissionPolicy: whoever has the token of one node cannot touch what is another node's.

    Shape after kubernetes-sigs/dra-example-driver, which checks the node of slices alone.

    Args:
        driver: Name of the driver.
        account: Name of the service account.
        namespace: Its namespace.
        binding_conditions: Whether the account may write the status of claims, which is held then too.
        join: Joins texts of which some may not be known yet.
    """
    user = join(["request.userInfo.username == 'system:serviceaccount:", namespace, f":{account}'"])
    written = [_resource("resourceslices", "CREATE", "UPDATE", "DELETE")]
    what = "slices"
    validations = _slice_validations(driver)
    variables = [{"name": "slice", "expression": "request.operation == 'DELETE' ? oldObject : object"}]
    if binding_conditions:
        written.append(_resource("resourceclaims/status", "UPDATE"))
        what = "slices and the status of claims"
        variables += _status_variables(driver)
        validations = [
            *(_only_of("resourceslices", each) for each in validations),
            *(_only_of("resourceclaims", each) for each in _status_validations(driver)),
        ]
    of_a_node = {
        "expression": "variables.node != ''",
        "message": f"this token is of no node: only pods of the plugin's DaemonSet write {what}",
        "reason": "Forbidden",
    }
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": written},
        "matchConditions": [{"name": "is-node-plugin", "expression": user}],
        "variables": [{"name": "node", "expression": _OWN_NODE}, *variables],
        "validations": [of_a_node, *validations],
    }


def _slice_validations(driver: str) -> list[dict[str, Any]]:
    """The checks of a slice: it is of the token's node, in the pool of that name, and of the driver.

    The pool counts as well: a slice of the own node in the pool of another one would, with a higher generation, take that
    node's devices away.
    """
    return [
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
    ]


def _status_variables(driver: str) -> list[dict[str, Any]]:
    """Variables: the entries of devices that are not the node's own, before and after."""
    others = f".?status.?devices.orValue([]).filter(each, !({_own(driver)}))"
    return [
        {"name": "othersBefore", "expression": f"oldObject{others}"},
        {"name": "othersAfter", "expression": f"object{others}"},
    ]


def _status_validations(driver: str) -> list[dict[str, Any]]:
    """The checks of a claim's status: a claim is a node's where it has a device of the driver in the pool of the node's name.

    Not by the node selector of the allocation: that is of all devices of the claim, and those of other drivers may be
    reached from several nodes. Servers from 1.36 on compare that too (DRAResourceClaimGranularStatusAuthorization), and know nothing of pools.
    """
    results = "oldObject.?status.?allocation.?devices.?results.orValue([])"
    kept = [f"object.?status.?{each} == oldObject.?status.?{each}" for each in ("allocation", "reservedFor")]
    same = "variables.othersBefore.all(each, each in variables.othersAfter) && "
    same += "variables.othersAfter.all(each, each in variables.othersBefore)"
    return [
        {
            "expression": f"{results}.exists(each, {_own(driver)})",
            "messageExpression": "'the plugin of node ' + variables.node + ' writes the status of claims with devices of that node alone'",
            "reason": "Forbidden",
        },
        {
            "expression": " && ".join(kept),
            "message": "it changes neither the allocation of a claim nor whom it is reserved for",
            "reason": "Forbidden",
        },
        {
            "expression": same,
            "messageExpression": f"'in the status of claims it changes devices of {driver} on node ' + variables.node + ' alone'",
            "reason": "Forbidden",
        },
    ]


def _own(driver: str) -> str:
    return f"each.driver == '{driver}' && each.pool == variables.node"


def _only_of(resource: str, validation: dict[str, Any]) -> dict[str, Any]:
    expression = f"request.resource.resource != '{resource}' || ({validation['expression']})"
    return {**validation, "expression": expression}


def _resource(name: str, *operations: str) -> dict[str, Any]:
    return {
        "apiGroups": [_GROUP],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": [name],
    }


def _rule(group: str, resource: str, verbs: Sequence[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


_NAME_OF_NAMESPACE: Final = "kubernetes.io/metadata.name"
"""The label that the API server gives each namespace, and that nobody can change."""


def network_policy(
    arguments: Mapping[str, Any], *, name: str, metadata: Mapping[str, Any]
) -> dict[str, Any] | None:
    """The NetworkPolicy; None with the node's network, to which network policies do not apply.

    The port of the probes is in no rule: what comes from a pod's own node, as the kubelet does, is let in by every policy.
    """
    if arguments.get("host_network"):
        return None
    port = {"protocol": "TCP", "port": arguments.get("metrics_port", daemon_set.METRICS_PORT)}
    rule: dict[str, Any] = {"ports": [port]}
    namespaces = arguments.get("metrics_namespaces")
    if namespaces is not None:
        named = {"key": _NAME_OF_NAMESPACE, "operator": "In", "values": list(namespaces)}
        rule["from"] = [{"namespaceSelector": {"matchExpressions": [named]}}]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": dict(metadata),
        "spec": {
            "podSelector": {"matchLabels": daemon_set.selector(name)},
            "policyTypes": ["Ingress"],
            # A rule without names would let everybody in, where the list of them is empty.
            "ingress": [] if namespaces is not None and not namespaces else [rule],
        },
    }
