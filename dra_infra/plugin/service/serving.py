"""A gRPC server at a Unix socket: who may connect, how much is taken, and how it ends."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import quote

import grpc

from dra_infra.errors import PluginError, Problem

LARGEST_REQUEST: Final = 128 * 1024
"""Bytes; a request with as many claims as one call may have takes less than 100 KiB."""

MOST_CALLS: Final = 512
"""Calls at work and waiting. The kubelet calls once per pod, and a node has 110 of them, seldom more than 250."""

_LAST_STEPS: Final = 0.2
"""Seconds that a thread may take from its answer to its end."""

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class _Pool(ThreadPoolExecutor):
    """Threads that know what they have not ended: grpc forgets a call that was cancelled, also where its thread goes on."""

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self.open: set[Future[Any]] = set()

    def submit(
        self, fn: Callable[_Arguments, _Answer], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Answer]:
        future = super().submit(fn, *args, **kwargs)
        self.open.add(future)
        future.add_done_callback(self.open.discard)
        return future


class Server:
    """Services at one socket, which only our user may open.

    Args:
        path: The socket's. Whatever is there already is replaced in one step, as it is where an instance was killed.
        handlers: The services.
        threads: Calls that are at work at the same time; others wait.
        name: For the threads.
    """

    def __init__(
        self, path: Path, handlers: Sequence[grpc.GenericRpcHandler[Any, Any]], *, threads: int, name: str
    ) -> None:
        self._path = path
        self._handlers = handlers
        self._threads = threads
        self._name = name
        self._running: tuple[grpc.Server, _Pool] | None = None
        self._made: tuple[int, int] | None = None

    @property
    def intact(self) -> bool:
        """Whether the socket is still there and ours: one that was taken away is not seen by the kubelet."""
        return self._made is not None and self._made == _identity(self._path)

    def start(self) -> None:
        """Serve.

        Raises:
            PluginError: `socket-not-made`.
        """
        pool = _Pool(self._threads, self._name)
        server = grpc.server(
            pool,
            handlers=list(self._handlers),
            options=[("grpc.max_receive_message_length", LARGEST_REQUEST), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=MOST_CALLS,
        )
        # Under another name first: nobody connects before the permissions are right, the kubelet sees a socket that
        # answers, and grpc, which at its end removes the name that it knows, does not remove a later instance's.
        beside = self._path.parent / f".{secrets.token_hex(3)}"
        try:
            server.add_insecure_port(f"unix:{quote(str(beside))}")
            beside.chmod(0o600)
            server.start()
            beside.rename(self._path)
        except (OSError, RuntimeError) as error:
            server.stop(None)
            pool.shutdown(wait=False)
            beside.unlink(missing_ok=True)
            raise _not_made(self._path, error) from error
        self._running = (server, pool)
        self._made = _identity(self._path)

    def withdraw(self) -> None:
        """Take the socket away, if it is still ours. Who is connected goes on."""
        if self.intact:
            with suppress(OSError):
                self._path.unlink()
        self._made = None

    def stop(self, grace: float) -> bool:
        """Take no new calls, wait for those at work, and take the socket away.

        Args:
            grace: Seconds to wait.

        Returns:
            Whether all of them ended. One that did not is answered as cancelled, and its thread goes on.
        """
        self.withdraw()
        if self._running is None:
            return True
        server, pool = self._running
        self._running = None
        server.stop(grace).wait()
        ended = not wait(tuple(pool.open), timeout=_LAST_STEPS).not_done
        pool.shutdown(wait=ended, cancel_futures=True)
        return ended


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _not_made(path: Path, error: Exception) -> PluginError:
    reason = error.strerror if isinstance(error, OSError) else ""
    problem = Problem(
        path=str(path),
        code="socket-not-made",
        message=f"no socket can be made there: {reason or error}",
        hint="see that the folder is there, and that the plugin's user may write to it",
    )
    return PluginError([problem])
