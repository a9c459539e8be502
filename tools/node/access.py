"""What a cluster has to allow a real node, and where the node's pods find the API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from tools.cluster.api import Api
    from tools.cluster.control_plane import ControlPlane

_READS_CLAIMS = "dra-infra:nodes-read-claims"
_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, kw_only=True)
class Service:
    """The service ``kubernetes`` and the API server behind it.

    Args:
        address: Address of the service, for which the API server's certificate is valid too.
        port: Port of the service.
        server_port: Port on loopback where the API server listens.
    """

    address: str
    port: int
    server_port: int

    def relayed(self) -> list[str]:
        """Arguments of `service_relay`."""
        return [self.address, str(self.port), str(self.server_port)]


def service_of(plane: ControlPlane) -> Service:
    """The service ``kubernetes`` of a running control plane."""
    with plane.api() as api:
        spec = api.wait_until("v1/Service", "kubernetes", bool, namespace="default")["spec"]
    server_port = urlsplit(plane.url).port
    assert server_port is not None  # noqa: S101 - a control plane never has the default port.
    return Service(address=spec["clusterIP"], port=spec["ports"][0]["port"], server_port=server_port)


def grant_binding_conditions(api: Api, node: str) -> None:
    """Let the node's own user say of claims that their devices are bound, as a plugin's service account may on a cluster."""
    rules = [
        ("resourceclaims", ["list", "watch"]),
        ("resourceclaims/status", ["patch"]),
        ("resourceclaims/driver", ["associated-node:patch", "arbitrary-node:patch"]),
    ]
    _allow(
        api,
        "dra-infra:writes-binding-conditions",
        [
            {"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": verbs}
            for resource, verbs in rules
        ],
        {"apiGroup": _RBAC, "kind": "User", "name": f"system:node:{node}"},
    )


def grant(api: Api) -> None:
    """Let kubelets read all claims.

    The node authorizer lets them read those of their own pods, but learns of a pod some milliseconds after the kubelet
    does. A kubelet that is refused in that time asks again only after 10 s, so a few pods in a hundred start late; tests
    with limits of time would fail by chance. RBAC is asked next, and allows it.
    """
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "resources": ["resourceclaims"],
        "verbs": ["get", "list", "watch"],
    }
    _allow(api, _READS_CLAIMS, [rule], {"apiGroup": _RBAC, "kind": "Group", "name": "system:nodes"})


def _allow(api: Api, name: str, rules: list[dict[str, Any]], subject: dict[str, str]) -> None:
    api.apply(
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules,
        }
    )
    api.apply(
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        }
    )
