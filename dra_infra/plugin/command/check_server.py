"""Whether the API server is there and lets the plugin do what it does, tried without changing anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol

from dra_infra.cluster.kinds import CLAIMS, NODES, SLICES, Kind
from dra_infra.cluster.objects import mapping, text
from dra_infra.errors import PluginError, Problem
from dra_infra.model.device import Device
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.command.findings import Finding, attempt
from dra_infra.plugin.publishing.pools import lay_out

_REVIEW: Final = Kind(
    name="SelfSubjectAccessReview",
    plural="selfsubjectaccessreviews",
    group="authorization.k8s.io",
    namespaced=False,
)
_WHO: Final = Kind(
    name="SelfSubjectReview", plural="selfsubjectreviews", group="authentication.k8s.io", namespaced=False
)

_ANY: Final = Inventory(devices=(Device(name="check"),))
"""What is tried where a node has no devices yet."""

_OF_NODES: Final = "system:node:"
"""Accounts of kubelets: they are let read claims one by one, of pods that run on their node."""


class Server(Protocol):
    """What of `Api` is asked."""

    def minor(self) -> int:
        """As `Api.minor`."""
        ...

    def version(self, kind: Kind) -> str:
        """As `Api.version`."""
        ...

    def get(self, kind: Kind, name: str, namespace: str = "") -> dict[str, Any] | None:
        """As `Api.get`."""
        ...

    def list(self, kind: Kind, *, field_selector: str = "") -> tuple[list[dict[str, Any]], str]:
        """As `Api.list`."""
        ...

    def create(self, kind: Kind, manifest: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """As `Api.create`."""
        ...


def check_server(server: Server, *, driver: str, node: str, inventory: Inventory) -> Iterator[Finding]:
    """Whether claims can be read and slices be published, those of *inventory* above all."""
    reached = list(attempt("API server", lambda: _try_server(server)))
    yield from reached
    if not all(each.holds for each in reached):
        # All that follows would say the same.
        return
    yield from attempt("right to read claims", lambda: _try_claims(server))
    yield from attempt("right to read the node", lambda: _try_node(server, node))
    yield from attempt(
        "right to see the node's slices", lambda: _try_slices(server, driver=driver, node=node)
    )
    yield from attempt(
        "right to publish slices",
        lambda: _try_publishing(server, inventory if inventory.devices else _ANY, driver=driver, node=node),
    )
    yield from attempt("right to update slices", lambda: _try_right(server, "update", SLICES))
    yield from attempt("right to delete slices", lambda: _try_right(server, "delete", SLICES))


def _try_server(server: Server) -> str:
    return f"Kubernetes 1.{server.minor()}, {SLICES.api_version(server.version(SLICES))}"


def _try_claims(server: Server) -> str:
    return _try_right(server, "get", CLAIMS)


def _try_node(server: Server, node: str) -> str:
    if server.get(NODES, node) is None:
        message = f"there is no node {node}"
        hint = "--node-name is the name in kubectl get nodes; the kubelet makes the node when it starts"
        raise PluginError([Problem(path="--node-name", code="node-not-known", message=message, hint=hint)])
    return node


def _try_slices(server: Server, *, driver: str, node: str) -> str:
    found, _ = server.list(SLICES, field_selector=f"spec.nodeName={node}")
    ours = sum(text(mapping(each.get("spec")).get("driver")) == driver for each in found)
    return f"{len(found)} there, {ours} of {driver}"


def _try_publishing(server: Server, inventory: Inventory, *, driver: str, node: str) -> str:
    specs = lay_out(inventory, driver=driver, node=node, minor=server.minor())
    for spec in specs:
        pool = {**spec["pool"], "generation": 1, "resourceSliceCount": len(specs)}
        manifest = {
            "metadata": {"generateName": f"{node[:200]}-check-"},
            "spec": {**spec, "pool": pool},
        }
        server.create(SLICES, manifest, dry_run=True)
    return "in a dry run"


def _try_right(server: Server, verb: str, kind: Kind) -> str:
    attributes = {"verb": verb, "group": kind.group, "resource": kind.plural}
    said = server.create(_REVIEW, {"spec": {"resourceAttributes": attributes}})
    if mapping(said.get("status")).get("allowed") is True:
        return f"{verb} {kind.plural}"
    name = text(mapping(mapping(server.create(_WHO, {}).get("status")).get("userInfo")).get("username"))
    if name.startswith(_OF_NODES):
        return f"as {name}, object by object"
    rule = f'{{apiGroups: ["{kind.group}"], resources: ["{kind.plural}"], verbs: ["{verb}"]}}'
    problem = Problem(
        path=f"{verb} {kind.plural}",
        code="api-forbidden",
        message=f"{name or 'this account'} may not",
        hint=f"grant it to the plugin's account in a ClusterRole: {rule}",
    )
    raise PluginError([problem])
