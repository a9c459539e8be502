"""Lists that stay as new as the cluster: each kind is followed by a thread of its own.

Who may list and not watch is served too: the kind is then read again every few seconds.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self

from dra_infra.client.kinds import Kind
from dra_infra.client.objects import is_object, namespace_of, namespaced_name, text
from dra_infra.cluster.reading import Listing, Reader, as_object
from dra_infra.documents.json_texts import ForeignJsonError, read_foreign_json
from dra_infra.errors import ClusterError, Problem
from dra_infra.kubernetes.api import mapping

_SECONDS: Final = 290
"""Seconds that one watch is asked for; servers end them after 30 to 60 minutes by themselves, proxies after five."""

_SILENCE: Final = 300.0
_POLL: Final = 5.0
_PAUSE: Final = 2.0
_SETTLE: Final = 0.2
"""Seconds in which changes are gathered: pods of a Deployment come together."""


class Watch:
    """Follows kinds of one cluster, in a `with` statement.

    Args:
        reader: Lists them again when a watch cannot go on.
        listings: Where to begin.
        field_selectors: Of the server, by kind.
    """

    def __init__(
        self,
        reader: Reader,
        listings: Iterable[Listing],
        *,
        field_selectors: Mapping[Kind, str] | None = None,
    ) -> None:
        self._reader = reader
        self._selectors = dict(field_selectors or {})
        self._listings = {each.kind: each for each in listings if each.is_seen}
        self._items = {
            kind: {namespaced_name(item): item for item in each.items}
            for kind, each in self._listings.items()
        }
        self._problems: dict[tuple[Kind, str], tuple[Problem, ...]] = {}
        self._condition = threading.Condition()
        self._changes = 0
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        for kind, listing in self._listings.items():
            for namespace, version in listing.resource_versions.items():
                threading.Thread(
                    target=self._follow, args=(kind, listing.version, namespace, version), daemon=True
                ).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def items(self, kind: Kind) -> list[Mapping[str, Any]]:
        """The objects of a kind as they are now, by namespace and name."""
        with self._condition:
            found = self._items.get(kind, {})
            return [found[key] for key in sorted(found)]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems that keep kinds from being watched now."""
        with self._condition:
            return tuple(dict.fromkeys(each for found in self._problems.values() for each in found))

    def wait(self, seen: int, timeout: float) -> int:
        """The number of changes, once there are more than *seen* or after *timeout* seconds."""
        with self._condition:
            self._condition.wait_for(lambda: self._changes != seen, timeout)
            if self._changes == seen:
                return seen
        self._ended.wait(_SETTLE)
        return self._changes

    def _follow(self, kind: Kind, version: str, namespace: str, resource_version: str) -> None:
        since = resource_version
        while not self._ended.is_set():
            try:
                status, since = self._watch(kind, version, namespace, since)
                self._say(kind, namespace, ())
            except ClusterError as error:
                self._say(kind, namespace, error.problems)
                self._ended.wait(_PAUSE)
                continue
            if status == 200:
                continue
            # No right to watch, or a watch that is too old: everything is read again.
            self._ended.wait(_POLL if status == 403 else 0)
            try:
                since = self._read_again(kind, namespace)
            except ClusterError as error:
                self._say(kind, namespace, error.problems)
                self._ended.wait(_PAUSE)

    def _watch(self, kind: Kind, version: str, namespace: str, since: str) -> tuple[int, str]:
        """Status, and up to where was seen; 410 when that is too old."""
        query = {
            "watch": "true",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_SECONDS),
        }
        if kind in self._selectors:
            query["fieldSelector"] = self._selectors[kind]
        path = kind.path(version, namespace)
        with self._reader.session.lines(path, query, seconds=_SILENCE) as (status, lines):
            if status != 200:
                return status, since
            for line in lines:
                if self._ended.is_set():
                    break
                try:
                    event = mapping(read_foreign_json(line))
                except ForeignJsonError:
                    return 410, since
                if event.get("type") == "ERROR":
                    return 410, since
                item = mapping(event.get("object"))
                since = text(mapping(item.get("metadata")).get("resourceVersion")) or since
                if event.get("type") != "BOOKMARK":
                    if not is_object(item):
                        return 410, since
                    self._apply(kind, as_object(item, kind, version), is_gone=event.get("type") == "DELETED")
        return 200, since

    def _read_again(self, kind: Kind, namespace: str) -> str:
        reader = Reader(self._reader.session, namespaces=[namespace] if namespace else ())
        listing = reader.list(kind, field_selector=self._selectors.get(kind, ""))
        if not listing.is_seen:
            self._say(kind, namespace, listing.problems)
            self._ended.wait(_PAUSE)
            return ""
        fresh = {namespaced_name(item): item for item in listing.items}
        with self._condition:
            kept = {
                key: item
                for key, item in self._items[kind].items()
                if namespace and namespace_of(item) != namespace
            }
            changed = self._items[kind] != kept | fresh
            self._items[kind] = kept | fresh
            if changed:
                self._changes += 1
                self._condition.notify_all()
        return listing.resource_versions.get(namespace, "")

    def _apply(self, kind: Kind, item: Mapping[str, Any], *, is_gone: bool) -> None:
        with self._condition:
            if is_gone:
                self._items[kind].pop(namespaced_name(item), None)
            else:
                self._items[kind][namespaced_name(item)] = dict(item)
            self._changes += 1
            self._condition.notify_all()

    def _say(self, kind: Kind, namespace: str, problems: tuple[Problem, ...]) -> None:
        with self._condition:
            if self._problems.get((kind, namespace), ()) != problems:
                self._problems[kind, namespace] = problems
                self._changes += 1
                self._condition.notify_all()
