"""Follows what happens to objects of one kind: a list, watch after watch, and a list again when that is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from dra_infra.client.kinds import Kind
from dra_infra.client.objects import text
from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import mapping
from dra_infra.plugin.api_server.client import Api, EventType, Watch
from dra_infra.plugin.api_server.refusals import ApiError, retry_after_of
from dra_infra.plugin.api_server.requests import backoff
from dra_infra.plugin.failures import as_plugin_error

_GONE: Final = 410


def _nothing() -> None:
    pass


def _silent(_: PluginError) -> None:
    pass


class Informer:
    """Lists and watches in a thread of its own until it is stopped, whatever the server does. All callbacks are called from there.

    Args:
        api: The server.
        kind: Of the objects.
        name: Of the thread.
        list_objects: Has the objects listed, and returns the version that they are watched from. It may wait; where it returns
            nothing, for there is nothing to follow yet or *wake* was called, it is called again.
        on_event: Is told each event.
        wake: Ends the waiting in *begin*; called when this is stopped.
        on_resume: Called when a watch ended as watches do, before the next one: the server may be another one.
        on_error: Is told why it has to be listed again; not where only what happened since is not known any more.
        field_selector: What the server leaves out.
        wait: Waits for some seconds, and returns whether it was stopped; tests pass one of their own.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind,
        *,
        name: str,
        list_objects: Callable[[], str],
        on_event: Callable[[EventType, dict[str, Any]], None],
        wake: Callable[[], None],
        on_resume: Callable[[], None] = _nothing,
        on_error: Callable[[PluginError], None] = _silent,
        field_selector: str = "",
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._api = api
        self._kind = kind
        self._list_objects = list_objects
        self._on_event = on_event
        self._wake = wake
        self._on_resume = on_resume
        self._on_error = on_error
        self._field_selector = field_selector
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._since = ""
        self._watch_stream: Watch | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def ended(self) -> bool:
        """True once it was stopped."""
        return self._ended.is_set()

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, and return when it has."""
        self._ended.set()
        self._wake()
        if self._watch_stream is not None:
            self._watch_stream.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        failures = 0
        while not self.ended:
            retry_after = 0.0
            try:
                with as_plugin_error(f"watch {self._kind.plural}"):
                    failures = 0 if self._go_on() else failures + 1
            except PluginError as error:
                self._since = ""
                failures += 1
                retry_after = retry_after_of(error)
                if not isinstance(error, ApiError) or error.status != _GONE:
                    self._on_error(error)
            # Also behind a watch that only ended: a server that is stopped ends those of all nodes in one moment.
            if not self.ended:
                self._wait(backoff(failures, retry_after))

    def _go_on(self) -> bool:
        """List or watch once; whether that was of use."""
        if self._since:
            self._on_resume()
        else:
            self._since = self._list_objects()
        return not self._since or self._watch()

    def _watch(self) -> bool:
        """Watch until the server ends it; returns whether an event came."""
        watch = self._watch_stream = self._api.watch(
            self._kind, self._since, field_selector=self._field_selector
        )
        if self.ended:
            # `stop` may have looked for a watch before there was this one, which would last for minutes.
            return True
        anything = False
        for type_, item in watch:
            if self.ended:
                return True
            anything = True
            self._since = text(mapping(item.get("metadata")).get("resourceVersion")) or self._since
            self._on_event(type_, item)
        return anything
