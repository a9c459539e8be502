"""The node's slices on the API server: which are ours, whose they are, and how they are written.

A watch tells when they are not as they were written: the kubelet deletes them, and people edit them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_infra.client.kinds import NODES, SLICES
from dra_infra.client.objects import labels_of, name_of, text, uid_of
from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import mapping
from dra_infra.plugin.api_server.client import Api, EventType
from dra_infra.plugin.api_server.informer import Informer
from dra_infra.plugin.publishing.pool_changes import Changes

_REMEMBERED: Final = 1000
_LONGEST: Final = 100
"""Characters of a UID or resource version that are remembered; those of API servers have at most 36."""


class SliceWatch:
    """Follows slices from where they were listed last.

    Args:
        changed: Called, from its thread, when somebody else has changed a slice.
        lost: Called, from its thread, when slices have to be listed again: the server was away, does not know any more what
            happened since, or is another release.
        on_error: Is told why slices cannot be followed.
        wait: As of `Informer`.
    """

    def __init__(
        self,
        api: Api,
        selector: str,
        *,
        changed: Callable[[], None],
        lost: Callable[[], None],
        on_error: Callable[[PluginError], None],
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._api = api
        self._changed = changed
        self._lost = lost
        self._began = False
        self._version = ""
        self._listed = threading.Condition()
        self._own: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._informer = Informer(
            api,
            SLICES,
            name="slice-watch",
            list_objects=self._wait_for_list,
            on_event=self._on_event,
            wake=self._notify,
            on_resume=self._on_resume,
            on_error=on_error,
            field_selector=selector,
            wait=wait,
        )

    def start(self) -> None:
        """Begin, as soon as there is a list."""
        self._informer.start()

    def stop(self) -> None:
        """End, and return when it has."""
        self._informer.stop()

    def listed(self, resource_version: str) -> None:
        """Slices were listed, and looked at."""
        with self._listed:
            self._version = resource_version
            self._listed.notify_all()

    def wrote(self, item: Mapping[str, Any]) -> None:
        """A slice is so because this process wrote it."""
        self._remember(_version(item))

    def deleting(self, item: Mapping[str, Any]) -> None:
        """This process deletes a slice."""
        self._remember(_deletion(item))

    def _remember(self, key: tuple[str, str]) -> None:
        with self._listed:
            self._own[key] = None
            while len(self._own) > _REMEMBERED:
                self._own.popitem(last=False)

    def _notify(self) -> None:
        with self._listed:
            self._listed.notify_all()

    def _wait_for_list(self) -> str:
        """Wait until slices were listed, which is asked for where they were before."""
        if self._began:
            with self._listed:
                self._version = ""
            self._lost()
        self._began = True
        with self._listed:
            self._listed.wait_for(lambda: self._version or self._informer.ended)
            return "" if self._informer.ended else self._version

    def _on_resume(self) -> None:
        """Behind a load balancer the next watch may be at a server that was upgraded, with no request of ours that failed."""
        if self._api.is_another():
            self._lost()

    def _on_event(self, type_: EventType, item: Mapping[str, Any]) -> None:
        key = _deletion(item) if type_ == "DELETED" else _version(item)
        with self._listed:
            own = type_ == "BOOKMARK" or key in self._own
        if not own:
            self._changed()


def _version(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    # As long as those of a server that does not lie.
    return text(metadata.get("uid"))[:_LONGEST], text(metadata.get("resourceVersion"))[:_LONGEST]


def _deletion(item: Mapping[str, Any]) -> tuple[str, str]:
    return text(mapping(item.get("metadata")).get("uid"))[:_LONGEST], "deleted"


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
            raise PluginError.of(path="--node-name", code="node-not-known", message=message, hint=hint)
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
        if foreign := [name_of(each) for each in items if labels_of(each).get(MANAGED_BY) != MANAGER]:
            raise PluginError.of(
                path=f"slices of {self._driver}",
                code=NAME_TAKEN,
                message=f"another driver called {self._driver} publishes on node {self._node}: {', '.join(foreign[:3])}",
                hint="remove it; the kubelet deletes its slices within a minute, and ours follow; or give ours another name with --driver",
            )
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

    def _delete(self, item: Item) -> None:
        self._watch.deleting(item)
        self._api.delete(SLICES, item)


def selector(driver: str, node: str) -> str:
    """The field selector of a driver's slices of a node."""
    return f"spec.nodeName={node},spec.driver={driver}"
