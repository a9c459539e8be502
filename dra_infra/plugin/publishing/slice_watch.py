"""Tells when the node's slices are not as they were written: the kubelet deletes them, and people edit them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_infra.cluster.kinds import SLICES
from dra_infra.cluster.objects import mapping, text
from dra_infra.errors import PluginError
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.following import Following
from dra_infra.plugin.api_server.watch import EventType

_REMEMBERED: Final = 1000


class SliceWatch:
    """Follows slices from where they were listed last.

    Args:
        changed: Called, from its thread, when somebody else has changed a slice.
        lost: Called, from its thread, when slices have to be listed again: the server was away, does not know any more what
            happened since, or is another release.
        failed: Is told why slices cannot be followed.
        wait: As of `Following`.
    """

    def __init__(
        self,
        api: Api,
        selector: str,
        *,
        changed: Callable[[], None],
        lost: Callable[[], None],
        failed: Callable[[PluginError], None],
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._api = api
        self._changed = changed
        self._lost = lost
        self._began = False
        self._version = ""
        self._listed = threading.Condition()
        self._own: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._following = Following(
            api,
            SLICES,
            name="slice-watch",
            begin=self._begin,
            happened=self._happened,
            wake=self._notify,
            resumed=self._resumed,
            failed=failed,
            field_selector=selector,
            wait=wait,
        )

    def start(self) -> None:
        """Begin, as soon as there is a list."""
        self._following.start()

    def stop(self) -> None:
        """End, and return when it has."""
        self._following.stop()

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

    def _begin(self) -> str:
        """Wait until slices were listed, which is asked for where they were before."""
        if self._began:
            with self._listed:
                self._version = ""
            self._lost()
        self._began = True
        with self._listed:
            self._listed.wait_for(lambda: self._version or self._following.ended)
            return "" if self._following.ended else self._version

    def _resumed(self) -> None:
        """Behind a load balancer the next watch may be at a server that was upgraded, with no request of ours that failed."""
        if self._api.is_another():
            self._lost()

    def _happened(self, type_: EventType, item: Mapping[str, Any]) -> None:
        key = _deletion(item) if type_ == "DELETED" else _version(item)
        with self._listed:
            own = type_ == "BOOKMARK" or key in self._own
        if not own:
            self._changed()


def _version(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    return text(metadata.get("uid")), text(metadata.get("resourceVersion"))


def _deletion(item: Mapping[str, Any]) -> tuple[str, str]:
    return text(mapping(item.get("metadata")).get("uid")), "deleted"
