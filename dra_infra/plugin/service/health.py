"""How the devices are, told to the kubelet as it changes: pods show it in their status."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import grpc

from dra_infra.errors import PluginError
from dra_infra.plugin.back_end import Health, Inventory
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.protocol import health_v1_pb2 as messages
from dra_infra.plugin.unexpected import expected

SERVICES: Final = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""Both versions have the same messages."""

MOST_WATCHERS: Final = 4
"""Each takes a thread. The kubelet is one; another may come before we know that the last one has gone."""

EVERY: Final = 15.0
"""Seconds after which everything is told again."""

VALID: Final = 45
"""Seconds after which the kubelet says unknown: what we say is then old, for the back end or we do not answer."""

_LONGEST_MESSAGE: Final = 1024
"""Bytes that the kubelet takes (truncateHealthMessage of pkg/kubelet/cm/dra)."""

_STATES: Final = {
    "healthy": messages.HEALTHY,
    "unhealthy": messages.UNHEALTHY,
    "unknown": messages.UNKNOWN,
}


class HealthService:
    """What the kubelet watches.

    Args:
        inventory: What the back end has now.
        pool: That of all devices: the node's name.
        every: Seconds after which everything is told again.
    """

    def __init__(
        self,
        *,
        inventory: Callable[[], Inventory],
        pool: str,
        observer: Observer,
        every: float = EVERY,
    ) -> None:
        self._inventory = inventory
        self._pool = pool
        self._observer = observer
        self._every = every
        self._news = threading.Condition()
        self._version = 0
        self._watchers = 0
        self._closed = False

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """The service in both versions, for a server."""
        methods = {
            "NodeWatchResources": grpc.unary_stream_rpc_method_handler(
                self._watch,
                messages.NodeWatchResourcesRequest.FromString,
                messages.NodeWatchResourcesResponse.SerializeToString,
            )
        }
        return tuple(grpc.method_handlers_generic_handler(service, methods) for service in SERVICES)

    @property
    def watchers(self) -> int:
        """How many watch now."""
        return self._watchers

    def changed(self) -> None:
        """Tell everything anew; returns at once."""
        with self._news:
            self._version += 1
            self._news.notify_all()

    def close(self) -> None:
        """End all streams, and begin no other."""
        with self._news:
            self._closed = True
            self._news.notify_all()

    def wait_until_unwatched(self, timeout: float) -> None:
        """Wait until nobody watches, or for *timeout* seconds."""
        with self._news:
            self._news.wait_for(lambda: not self._watchers, timeout)

    def _watch(
        self, _request: messages.NodeWatchResourcesRequest, context: grpc.ServicerContext
    ) -> Iterator[messages.NodeWatchResourcesResponse]:
        gone = threading.Event()

        def leave() -> None:
            gone.set()
            with self._news:
                self._news.notify_all()

        with self._news:
            full = self._watchers >= MOST_WATCHERS
            self._watchers += not full
        if full:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MOST_WATCHERS} watch already")
        try:
            if context.add_callback(leave):
                yield from self._tell(gone)
        finally:
            with self._news:
                self._watchers -= 1
                self._news.notify_all()

    def _tell(self, gone: threading.Event) -> Iterator[messages.NodeWatchResourcesResponse]:
        told = -1
        while True:
            with self._news:
                if told == self._version and not (self._closed or gone.is_set()):
                    self._news.wait(self._every)
                if self._closed or gone.is_set():
                    return
                told = self._version
            message = self._message()
            if message is not None:
                yield message

    def _message(self) -> messages.NodeWatchResourcesResponse | None:
        """All devices; nothing where the back end fails, so that the kubelet says unknown after a while."""
        try:
            # The stream goes on, and what was told gets old.
            with expected("the devices' health"):
                inventory = self._inventory()
        except PluginError as error:
            self._observer.noticed(error.problems)
            return None
        now = int(time.time())
        return messages.NodeWatchResourcesResponse(
            devices=[
                self._device(each.name, inventory.health.get(each.name) or Health(), now)
                for each in inventory.devices
            ]
        )

    def _device(self, name: str, health: Health, now: int) -> messages.DeviceHealth:
        return messages.DeviceHealth(
            device=messages.DeviceIdentifier(pool_name=self._pool, device_name=name),
            health=_STATES[health.state],
            last_updated_time=now,
            health_check_timeout_seconds=VALID,
            # Half a letter, of a back end's or at the cut, would end the stream, or be in the pod's status.
            message=health.message.encode("utf-8", "replace")[:_LONGEST_MESSAGE].decode("utf-8", "ignore"),
        )
