"""A time limit for a whole HTTP request: from the handshake to the last byte of the answer.

A time-out of a socket begins anew with each byte, so whoever sends one a second holds the other side for ever: in the
handshake, in the headers, or where a packed body does not unfold to anything. Here the connection is cut when the
time is over, whatever is waited for.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from contextvars import ContextVar
from typing import Any, Final, Self, TypeVar

import urllib3
import urllib3.connection
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

from dra_infra.client.head import BoundedResponse


class Deadline:
    """Cuts the connections that its thread uses meanwhile when *seconds* are over."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.is_over = False
        self._lock = threading.Lock()
        self._held: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._token = _CURRENT.set(self)
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        _CURRENT.reset(self._token)
        self.lift()

    def lift(self) -> None:
        """End the limit: what is read from now on may take its time."""
        self._timer.cancel()
        with self._lock:
            for each in self._held:
                each.close()
            self._held.clear()

    def watch(self, connection: socket.socket) -> None:
        """Cut *connection* too, at once where the time is over."""
        # A second descriptor of it: TLS takes the first one over, and a closed one may be another file by then.
        held = socket.fromfd(connection.fileno(), connection.family, connection.type)
        with self._lock:
            self._held.append(held)
        if self.is_over:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self.is_over = True
            for each in self._held:
                # The other side may have been faster.
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


_Manager = TypeVar("_Manager", bound=urllib3.PoolManager)

_CURRENT: Final[ContextVar[Deadline | None]] = ContextVar("deadline", default=None)


def _watch(connection: Any) -> None:
    deadline = _CURRENT.get()
    if deadline is not None and isinstance(connection, socket.socket):
        deadline.watch(connection)


class _Http(urllib3.connection.HTTPConnection):
    """A connection that is watched from its beginning, and with each answer, whose head is bounded."""

    response_class = BoundedResponse

    def _new_conn(self) -> socket.socket:
        connection = super()._new_conn()
        _watch(connection)
        return connection

    def getresponse(self) -> Any:
        # One that was open before is used again.
        _watch(self.sock)
        return super().getresponse()


class _Https(_Http, urllib3.connection.HTTPSConnection):
    """`_Http` with TLS: its methods come before those of the other class."""


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


def with_deadlines(manager: _Manager) -> _Manager:
    """*manager*, whose connections a `Deadline` can cut."""
    manager.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return manager
