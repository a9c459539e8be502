"""Reports the health of devices to the kubelet as it changes: pods show it in their status."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import grpc
import grpc.aio

from dra_infra.errors import PluginError
from dra_infra.plugin.back_end import Health, Inventory
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.protocol import health_v1_pb2 as messages
from dra_infra.plugin.service.methods import Method, service_handler

SERVICES: Final = ("v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth")
"""Both versions have the same messages."""

MOST_WATCHERS: Final = 4
"""The kubelet is one; another may come before we know that the last one has gone."""

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


_Context = grpc.aio.ServicerContext[messages.NodeWatchResourcesRequest, messages.NodeWatchResourcesResponse]


class HealthService:
    """The service DRAResourceHealth, which the kubelet watches.

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
        self._watching = threading.Condition()
        self._watchers: dict[asyncio.Event, asyncio.AbstractEventLoop] = {}
        self._closed = False

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """The service in both versions, for a server."""
        methods = {"NodeWatchResources": Method.stream(messages.NodeWatchResourcesRequest, self._watch)}
        return tuple(service_handler(service, methods, self._observer.malformed) for service in SERVICES)

    @property
    def watchers(self) -> int:
        """Number of watchers now."""
        return len(self._watchers)

    def changed(self) -> None:
        """Tell everything anew; returns at once."""
        with self._watching:
            for news, loop in self._watchers.items():
                loop.call_soon_threadsafe(news.set)

    def close(self) -> None:
        """End all streams, and begin no other."""
        self._closed = True
        self.changed()

    def wait_until_unwatched(self, timeout: float) -> None:
        """Wait until nobody watches, or for *timeout* seconds."""
        with self._watching:
            self._watching.wait_for(lambda: not self._watchers, timeout)

    async def _watch(self, _request: messages.NodeWatchResourcesRequest, context: _Context) -> None:
        news = asyncio.Event()
        if len(self._watchers) >= MOST_WATCHERS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MOST_WATCHERS} watch already")
        with self._watching:
            self._watchers[news] = asyncio.get_running_loop()
        try:
            # Whoever watches and goes ends this where it waits.
            while not self._closed:
                news.clear()
                # In another thread: hardware is asked, and others are served meanwhile.
                message = await asyncio.to_thread(self._message)
                if message is not None:
                    await context.write(message)
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(news.wait(), self._every)
        finally:
            with self._watching:
                del self._watchers[news]
                self._watching.notify_all()

    def _message(self) -> messages.NodeWatchResourcesResponse | None:
        """All devices; nothing where the back end fails, so that the kubelet says unknown after a while."""
        try:
            # The stream goes on, and what was told gets old.
            with as_plugin_error("the devices' health"):
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
