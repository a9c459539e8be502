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
from dra_infra.plugin.api_server.pauses import pause_after
from dra_infra.plugin.api_server.watch import Watching
from dra_infra.plugin.unexpected import expected

_REMEMBERED: Final = 1000


class SliceWatch:
    """Follows slices from where they were listed last.

    Args:
        changed: Called, from its thread, when somebody else has changed a slice.
        lost: Called, from its thread, when the server was away, or does not know any more what happened since.
    """

    def __init__(
        self, api: Api, selector: str, *, changed: Callable[[], None], lost: Callable[[], None]
    ) -> None:
        self._api = api
        self._selector = selector
        self._changed = changed
        self._lost = lost
        self._since = ""
        self._listed = threading.Condition()
        self._ended = False
        self._own: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._watching: Watching | None = None
        self._thread = threading.Thread(target=self._run, name="slice-watch", daemon=True)

    def start(self) -> None:
        """Begin, as soon as there is a list."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return when it has."""
        with self._listed:
            self._ended = True
            self._listed.notify_all()
        if self._watching is not None:
            self._watching.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def listed(self, resource_version: str) -> None:
        """Slices were listed, and looked at."""
        with self._listed:
            self._since = self._since or resource_version
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

    def _run(self) -> None:
        failures = 0
        while True:
            with self._listed:
                self._listed.wait_for(lambda: self._since or self._ended)
                if self._ended:
                    return
                since = self._since
            try:
                with expected("watch slices"):
                    failures = 0 if self._follow(since) else failures + 1
            except PluginError:
                # Too old, or the server is away: what is there now has to be listed.
                failures += 1
                with self._listed:
                    self._since = ""
                    self._listed.wait_for(lambda: self._ended, pause_after(failures))
                self._lost()
                continue
            if failures:
                with self._listed:
                    self._listed.wait_for(lambda: self._ended, pause_after(failures))

    def _follow(self, since: str) -> bool:
        """Whether anything came."""
        watching = self._watching = self._api.watch(SLICES, since, field_selector=self._selector)
        if self._ended:
            # `stop` may have looked for a watch before there was this one, which would last for minutes.
            return True
        anything = False
        for type_, item in watching:
            anything = True
            with self._listed:
                if self._ended:
                    return True
                self._since = text(mapping(item.get("metadata")).get("resourceVersion")) or self._since
                key = _deletion(item) if type_ == "DELETED" else _version(item)
                own = type_ == "BOOKMARK" or key in self._own
            if not own:
                self._changed()
        return anything


def _version(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    return text(metadata.get("uid")), text(metadata.get("resourceVersion"))


def _deletion(item: Mapping[str, Any]) -> tuple[str, str]:
    return text(mapping(item.get("metadata")).get("uid")), "deleted"
