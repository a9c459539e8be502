"""The node's slices on the API server: which are ours, whose they are, and how they are written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.cluster.kinds import NODES, SLICES
from dra_infra.cluster.objects import labels_of, mapping, name_of, uid_of
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.publishing.pool_changes import Changes
from dra_infra.plugin.publishing.slice_watch import SliceWatch

Item = Mapping[str, Any]

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Label of our slices: those of another driver with the same name do not have it."""

MANAGER: Final = "dra-infra-plugin"

NAME_TAKEN: Final = "driver-name-taken"
"""Code of what keeps us from publishing beside another driver of the name."""


class SliceWriter:
    """Reads and writes the slices of one driver on one node.

    Args:
        watch: Is told what is written, which is then no change by somebody else.
        driver: Its name.
        node: Its name, which is also the pool's.
    """

    def __init__(self, api: Api, watch: SliceWatch, *, driver: str, node: str) -> None:
        self._api = api
        self._watch = watch
        self._driver = driver
        self._node = node
        self._selector = selector(driver, node)

    def owner(self) -> Item:
        """The node, whose end is also that of its slices.

        Raises:
            PluginError: `node-not-known`.
        """
        node = self._api.get(NODES, self._node)
        if node is None:
            message = f"there is no node {self._node}"
            hint = "--node-name is the name in kubectl get nodes; the kubelet makes the node when it starts"
            problem = Problem(path="--node-name", code="node-not-known", message=message, hint=hint)
            raise PluginError([problem])
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._node,
            "uid": uid_of(node),
            "controller": True,
        }

    def find(self) -> tuple[list[dict[str, Any]], str]:
        """The slices that are there, and the version to watch them from.

        Raises:
            PluginError: `driver-name-taken`.
        """
        items, version = self._api.list(SLICES, field_selector=self._selector)
        if foreign := [name_of(each) for each in items if not _is_ours(each)]:
            raise _taken(self._driver, self._node, foreign)
        return items, version

    def write(self, changes: Changes, owner: Item) -> None:
        """Do all of *changes*, in their order."""
        for item in changes.first:
            self._delete(item)
        for item, spec in changes.update:
            metadata = {**mapping(item.get("metadata")), "ownerReferences": [owner]}
            self._watch.wrote(self._api.update(SLICES, {**item, "metadata": metadata, "spec": spec}))
        for index, spec in changes.create:
            metadata = {
                "generateName": f"{index:05x}-{self._driver}-{self._node}-",
                "labels": {MANAGED_BY: MANAGER},
                "ownerReferences": [owner],
            }
            self._watch.wrote(self._api.create(SLICES, {"metadata": metadata, "spec": spec}))
        for item in changes.last:
            self._delete(item)

    def withdraw(self) -> None:
        """Delete all that are ours.

        Raises:
            ApiError: Some may be left.
        """
        items, _ = self._api.list(SLICES, field_selector=self._selector)
        for item in filter(_is_ours, items):
            self._api.delete(SLICES, item)

    def _delete(self, item: Item) -> None:
        self._watch.deleting(item)
        self._api.delete(SLICES, item)


def selector(driver: str, node: str) -> str:
    """The field selector of a driver's slices of a node."""
    return f"spec.nodeName={node},spec.driver={driver}"


def _is_ours(item: Item) -> bool:
    return labels_of(item).get(MANAGED_BY) == MANAGER


def _taken(driver: str, node: str, names: list[str]) -> PluginError:
    problem = Problem(
        path=f"slices of {driver}",
        code=NAME_TAKEN,
        message=f"another driver called {driver} publishes on node {node}: {', '.join(names[:3])}",
        hint="remove it; the kubelet deletes its slices within a minute, and ours follow; or give ours another name with --driver",
    )
    return PluginError([problem])
