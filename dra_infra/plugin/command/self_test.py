"""`dra-infra-plugin --check`: tries what the plugin needs of machine and cluster, and changes nothing.

Of the API server it tries whether it is there and lets the plugin do what it does, without changing anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from dra_infra.client.kinds import CLAIMS, NODES, SLICES, Kind
from dra_infra.client.kubeconfig import find_account
from dra_infra.client.objects import text
from dra_infra.errors import PluginError, Problem, ProblemsError
from dra_infra.kubernetes.api import Device, mapping
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.back_end import BackEnd, Inventory
from dra_infra.plugin.command.back_end_loading import LoadedBackEnd, driver_name, make_back_end
from dra_infra.plugin.command.checks import (
    Finding,
    ask_kubelet,
    attempt,
    check_addresses,
    check_folders,
)
from dra_infra.plugin.command.instance import INSTANCES_FILE, Paths
from dra_infra.plugin.command.settings import Settings
from dra_infra.plugin.disk import explain_os_errors
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.inventories import find_refused_names
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
"""Stand-in for the inventory of a node that has no devices yet."""

_OF_NODES: Final = "system:node:"
"""Accounts of kubelets: they are let read claims one by one, of pods that run on their node."""


def check_server(server: Api, *, driver: str, node: str, inventory: Inventory) -> Iterator[Finding]:
    """Check that claims can be read and slices be published, those of *inventory* above all."""
    reached = list(attempt("API server", lambda: _try_server(server)))
    yield from reached
    if not all(each.holds for each in reached):
        # All that follows would say the same.
        return
    yield from attempt("right to read claims", lambda: _try_right(server, "get", CLAIMS))
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


def _try_server(server: Api) -> str:
    return f"Kubernetes 1.{server.minor()}, {SLICES.api_version(server.version(SLICES))}"


def _try_node(server: Api, node: str) -> str:
    if server.get(NODES, node) is None:
        message = f"there is no node {node}"
        hint = "--node-name is the name in kubectl get nodes; the kubelet makes the node when it starts"
        raise PluginError.of(path="--node-name", code="node-not-known", message=message, hint=hint)
    return node


def _try_slices(server: Api, *, driver: str, node: str) -> str:
    found, _ = server.list(SLICES, field_selector=f"spec.nodeName={node}")
    ours = sum(text(mapping(each.get("spec")).get("driver")) == driver for each in found)
    return f"{len(found)} there, {ours} of {driver}"


def _try_publishing(server: Api, inventory: Inventory, *, driver: str, node: str) -> str:
    specs = lay_out(inventory, driver=driver, node=node, minor=server.minor())
    for spec in specs:
        pool = {**spec["pool"], "generation": 1, "resourceSliceCount": len(specs)}
        manifest = {
            "metadata": {"generateName": f"{node[:200]}-check-"},
            "spec": {**spec, "pool": pool},
        }
        server.create(SLICES, manifest, dry_run=True)
    return "in a dry run"


def _try_right(server: Api, verb: str, kind: Kind) -> str:
    attributes = {"verb": verb, "group": kind.group, "resource": kind.plural}
    said = server.create(_REVIEW, {"spec": {"resourceAttributes": attributes}})
    if mapping(said.get("status")).get("allowed") is True:
        return f"{verb} {kind.plural}"
    name = text(mapping(mapping(server.create(_WHO, {}).get("status")).get("userInfo")).get("username"))
    if name.startswith(_OF_NODES):
        return f"as {name}, object by object"
    rule = f'{{apiGroups: ["{kind.group}"], resources: ["{kind.plural}"], verbs: ["{verb}"]}}'
    raise PluginError.of(
        path=f"{verb} {kind.plural}",
        code="api-forbidden",
        message=f"{name or 'this account'} may not",
        hint=f"grant it to the plugin's account in a ClusterRole: {rule}",
    )


_Kind = TypeVar("_Kind")
_NOTHING: Final = Inventory(devices=())


def check(settings: Settings, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Everything, as it is tried."""
    inventory = _NOTHING
    driver, problems = _made("driver", lambda: driver_name(settings))
    yield from problems
    if driver:
        paths = Paths.of(settings, driver)
        inventory = yield from _check_devices(settings, paths)
        yield from _check_machine(paths)
        yield from check_addresses(settings, paths.state / INSTANCES_FILE)
    api, problems = _made(
        "API server",
        lambda: Api(find_account(settings.kubeconfig, None, environment, can_choose=False), environment),
    )
    yield from problems
    if api:
        yield from check_server(
            api, driver=driver or "gpu.example.com", node=settings.node_name, inventory=inventory
        )


def _check_devices(settings: Settings, paths: Paths) -> Generator[Finding, None, Inventory]:
    """Check that the back end works; returns its inventory, an empty one where it does not."""
    warnings: list[Problem] = []
    inventories: list[Inventory] = []
    with ExitStack() as closing:
        loaded, problems = _made("devices", lambda: _opened(settings, paths, closing, warnings.extend))
        yield from problems
        if loaded:
            yield from attempt("devices", lambda: _count(loaded.back_end, inventories.append))
            # Else it would say the same.
            if inventories and loaded.try_edits:
                yield from attempt("what containers get", loaded.try_edits)
    for each in warnings:
        yield Finding(what="devices", problem=each)
    return inventories[0] if inventories else _NOTHING


def _opened(
    settings: Settings, paths: Paths, closing: ExitStack, noticed: Callable[[Sequence[Problem]], None]
) -> LoadedBackEnd:
    # Simulated hardware may be at work where the plugin keeps it; a container has no other folder to write to. That
    # the plugin's own cannot be written to is found with the folders.
    aside = paths.state if os.access(paths.state, os.W_OK) else None
    with explain_os_errors("no temporary folder can be made", paths.state):
        folder = closing.enter_context(TemporaryDirectory(dir=aside))
    loaded = make_back_end(settings, replace(paths, state=Path(folder)), noticed)
    closing.callback(_close, loaded.back_end)
    return loaded


def _close(back_end: BackEnd) -> None:
    with as_plugin_error("the back end"):
        back_end.close()


def _check_machine(paths: Paths) -> Iterator[Finding]:
    findings = list(check_folders(sockets=paths.sockets, state=paths.state, cdi=paths.cdi))
    yield from findings
    if all(each.holds for each in findings):
        yield from attempt("kubelet", lambda: ask_kubelet(paths.sockets))


def _count(back_end: BackEnd, keep: Callable[[Inventory], None]) -> str:
    with as_plugin_error("the back end"):
        found: object = back_end.inventory()
    # Back ends of others are not held to types.
    if not isinstance(found, Inventory):
        message = f"its inventory() gives {type(found).__name__}, and no Inventory"
        hint = "see dra_infra.plugin.back_end.Inventory"
        raise PluginError.of(path=back_end.driver, code="back-end-not-loaded", message=message, hint=hint)
    if problems := [*find_refused_names(found)]:
        raise PluginError(problems)
    keep(found)
    return f"{len(found.devices)} of {back_end.driver}"


def _made(what: str, make: Callable[[], _Kind]) -> tuple[_Kind | None, list[Finding]]:
    try:
        return make(), []
    except ProblemsError as error:
        return None, [Finding(what=what, problem=each) for each in error.problems]
