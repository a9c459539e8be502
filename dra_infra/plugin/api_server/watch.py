"""A watch: what happens to objects of one kind, until the server ends it or somebody stops it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import urllib3

from dra_infra.cluster.kinds import Kind
from dra_infra.cluster.objects import mapping, text
from dra_infra.cluster.wire import Wire
from dra_infra.errors import ClusterError
from dra_infra.plugin.api_server.pauses import asked_pause
from dra_infra.plugin.api_server.refusals import of_cluster, refused

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
Event = tuple[EventType, dict[str, Any]]

_TYPES: Final[Mapping[str, EventType]] = {
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
    "BOOKMARK": "BOOKMARK",
}
_GONE: Final = 410


class Watching:
    """Iterate over it for the events; it ends without an error where the server ends it, or the connection is lost.

    Iterating raises `ApiError`; status 410 means that its beginning is too old, and that everything has to be listed.
    """

    def __init__(
        self,
        wire: Wire,
        path: str,
        query: Mapping[str, str],
        *,
        kind: Kind,
        seconds: float,
        shape: Callable[[Mapping[str, Any]], dict[str, Any]],
    ) -> None:
        self._wire = wire
        self._path = path
        self._query = query
        self._kind = kind
        self._seconds = seconds
        self._shape = shape
        self._response: urllib3.BaseHTTPResponse | None = None
        self._stopped = False

    def stop(self) -> None:
        """End it, from any thread."""
        self._stopped = True
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (ValueError, OSError, RuntimeError):
                # It has ended by itself.
                return

    def __iter__(self) -> Iterator[Event]:
        """Each event as it comes."""
        asked = f"watch {self._kind.plural}"
        try:
            with self._wire.ask("GET", self._path, self._query, read=self._seconds) as response:
                self._response = response
                if self._stopped:
                    return
                if response.status != 200:
                    said = self._wire.body(response, self._path).decode("utf-8", "replace")
                    pause = asked_pause(response.headers.get("Retry-After"))
                    status, words = response.status, _message(said)
                    raise refused(asked, self._kind, "watch", status, words, retry_after=pause)
                for line in self._wire.lines(response, self._path):
                    if self._stopped:
                        return
                    yield self._event(asked, line)
        except ClusterError as error:
            raise of_cluster(asked, error) from error
        finally:
            self._response = None

    def _event(self, asked: str, line: bytes) -> Event:
        try:
            event = mapping(json.loads(line))
        except (ValueError, RecursionError):
            event = {}
        item = mapping(event.get("object"))
        type_ = _TYPES.get(text(event.get("type")))
        if type_ is None:
            # ERROR, or what is no event at all: from here on nothing is sure.
            status = item.get("code")
            said = text(item.get("message")) or "no event"
            code = status if isinstance(status, int) else _GONE
            raise refused(asked, self._kind, "watch", code, said)
        return type_, dict(item) if type_ == "BOOKMARK" else self._shape(item)


def _message(said: str) -> str:
    try:
        return text(mapping(json.loads(said)).get("message")) or said
    except (ValueError, RecursionError):
        return said
