"""Metrics for Prometheus, and a small HTTP server for them.

They tell what the plugin did, and what there is. Every label has a handful of values. The server answers GET /metrics
and nothing else, one request for each connection.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

import prometheus_client
from prometheus_client.core import GaugeMetricFamily

from dra_infra.codes import CODES
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.open_port import OpenPort, Shared, not_usable
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.observing import DeviceState, Observer, Operation

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Seconds: a claim takes a few milliseconds, one that makes MIG devices some seconds."""

_OTHER: Final = "other"
_KINDS: Final = ("prepare", "release")
_RESULTS: Final = ("success", "failure")
_DEVICE_STATES: Final = ("healthy", "unhealthy", "unknown")
_FILES: Final = {".json": "prepared", ".releasing": "releasing", ".unreadable": "unreadable"}


class Metrics(Observer):
    """An observer that counts.

    Args:
        checkpoint: The folder of the checkpoint, whose files are counted when somebody asks.
        back_end: As it is called in the settings.
    """

    def __init__(self, checkpoint: Path, *, driver: str, back_end: str, version: str) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._seconds = prometheus_client.Histogram(
            "dra_infra_plugin_operation_duration_seconds",
            "Time to prepare or release a claim, from its turn to its answer.",
            ["operation", "result"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self._failures = self._counter(
            "operation_failures",
            "Claims that were not prepared or released, by the problem's code.",
            "operation",
            "code",
        )
        self._devices = self._gauge("devices", "Devices of the node by their health.", "state")
        self._publishes = self._counter("publishes", "Tries to publish the node's slices.", "result")
        self._published = self._gauge(
            "published",
            "1 while the node's slices are as its devices are; 0 where that is refused or not done yet.",
        )
        self._slices = self._gauge("published_slices", "Slices that the node has on the API server.")
        self._generation = self._gauge("pool_generation", "Generation of the pool that was published last.")
        self._registered = self._gauge(
            "registered", "1 where the kubelet took the plugin when it last said something."
        )
        self._registrations = self._counter(
            "registrations", "What the kubelet said of registrations.", "result"
        )
        self._reconciled = self._counter(
            "reconciled_claims", "Claims released or restored because the API server says so.", "action"
        )
        self._noticed = self._counter(
            "noticed_problems", "Problems that are no answer to a call, by code.", "code"
        )
        about = {"version": version, "driver": driver, "back_end": back_end}
        self._gauge("info", "1, with what runs.", *about).labels(**about).set(1)
        self.registry.register(_Files(checkpoint))
        prometheus_client.ProcessCollector(registry=self.registry)
        self._show_zeros()

    def text(self) -> bytes:
        """All of it now, in the text format that every release of Prometheus reads."""
        return prometheus_client.generate_latest(self.registry)

    def serve(self, address: Address) -> MetricsServer:
        """Serve them at *address*.

        Raises:
            PluginError: `plugin-address-not-usable`.
        """
        return MetricsServer(address, self.text)

    def ended(self, operation: Operation, *, seconds: float, error: PluginError | None) -> None:
        """As `Observer.ended`."""
        self._seconds.labels(operation.kind, _RESULTS[error is not None]).observe(seconds)
        for code in _codes(error.problems if error else ()):
            self._failures.labels(operation.kind, code).inc()

    def registered(self, *, registered: bool, text: str) -> None:  # noqa: ARG002  (a text has no bounds)
        """As `Observer.registered`."""
        self._registered.set(int(registered))
        self._registrations.labels(_RESULTS[not registered]).inc()

    def published(self, *, slices: int, generation: int, error: PluginError | None) -> None:
        """As `Observer.published`."""
        self._publishes.labels(_RESULTS[error is not None]).inc()
        self._published.set(int(error is None))
        if error is None:
            self._slices.set(slices)
            self._generation.set(generation)

    def devices(self, by_state: Mapping[DeviceState, int]) -> None:
        """As `Observer.devices`."""
        for state in _DEVICE_STATES:
            self._devices.labels(state).set(by_state.get(state, 0))

    def reconciled(self, *, prepared: int, released: int, restored: int) -> None:  # noqa: ARG002  (the checkpoint's files say it)
        """As `Observer.reconciled`."""
        self._reconciled.labels("released").inc(released)
        self._reconciled.labels("restored").inc(restored)

    def noticed(self, problems: Sequence[Problem]) -> None:
        """As `Observer.noticed`."""
        for code in _codes(problems):
            self._noticed.labels(code).inc()

    def _counter(self, name: str, meaning: str, *labels: str) -> prometheus_client.Counter:
        return prometheus_client.Counter(f"dra_infra_plugin_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> prometheus_client.Gauge:
        return prometheus_client.Gauge(f"dra_infra_plugin_{name}", meaning, labels, registry=self.registry)

    def _show_zeros(self) -> None:
        """Set metrics of what did not happen yet to 0: a rate of a missing series is nothing, and alerts never fire."""
        for result in _RESULTS:
            self._publishes.labels(result)
            self._registrations.labels(result)
            for kind in _KINDS:
                self._seconds.labels(kind, result)
        for action in ("released", "restored"):
            self._reconciled.labels(action)
        self.devices({})


class _Files:
    """Counts the checkpoint's files: what is on disk decides, and asking for a turn would wait behind a preparation."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Count now."""
        try:
            found = Counter(_FILES.get(each.suffix) for each in self._folder.iterdir() if each.name[0] != ".")
        except OSError:
            return
        family = GaugeMetricFamily(
            "dra_infra_plugin_claims",
            "Claims that the checkpoint has, by the state of their file.",
            labels=["state"],
        )
        for state in _FILES.values():
            family.add_metric([state], found[state])
        yield family


def _codes(problems: Iterable[Problem]) -> Iterable[str]:
    return {each.code if each.code in CODES else _OTHER for each in problems}


_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = 10.0
"""Seconds for a request and its answer: Prometheus waits for ten, if nobody says more."""


class MetricsServer:
    """Serves a text, made at most once a second.

    Args:
        address: Where to listen; port 0 is any that is free.
        text: Makes it; called from another thread.

    Raises:
        PluginError: `plugin-address-not-usable`.
    """

    def __init__(self, address: Address, text: Callable[[], bytes]) -> None:
        self._text = Shared(text)
        try:
            self._open = OpenPort(address, self._serve, seconds=_SECONDS)
        except OSError as error:
            raise not_usable("metricsAddress", address, error) from error
        self.port = self._open.port
        self.stop = self._open.stop

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # One that is longer than a port takes, or that never ends, gets no answer.
        head = await reader.readuntil(b"\r\n\r\n")
        status = _judged(head.partition(b"\r\n")[0])
        body = await self._text.get() if status is HTTPStatus.OK else f"{status.phrase}\n".encode()
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            "Server: dra-infra-plugin",
            f"Content-Type: {_TYPE if status is HTTPStatus.OK else 'text/plain'}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        writer.write("\r\n".join((*lines, "", "")).encode() + body)
        await writer.drain()


def _judged(line: bytes) -> HTTPStatus:
    """The status of the answer, by the first line of the request alone; headers are not looked at."""
    match line.split(b" "):
        case [method, target, version] if version.startswith(b"HTTP/1."):
            if target.partition(b"?")[0] != b"/metrics":
                return HTTPStatus.NOT_FOUND
            return HTTPStatus.OK if method == b"GET" else HTTPStatus.METHOD_NOT_ALLOWED
        case _:
            return HTTPStatus.BAD_REQUEST
