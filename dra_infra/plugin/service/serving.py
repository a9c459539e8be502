"""A gRPC server at Unix sockets: who may connect, how much is taken, and how it ends.

gRPC's servers of this process run in one thread, which sleeps until somebody calls. grpc's own servers, one thread
each, wake five times a second to see whether they are still wanted.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar
from urllib.parse import quote

import grpc
import grpc.aio

from dra_infra.errors import PluginError

_Result = TypeVar("_Result")


def run(work: Coroutine[Any, Any, _Result]) -> _Result:
    """Do *work* in that thread, from any other, and wait for what comes of it."""
    return asyncio.run_coroutine_threadsafe(work, _loop()).result()


def tasks() -> set[asyncio.Task[Any]]:
    """The tasks of the event loop that are not done; none before there is a loop."""
    # To ask must not make one: two threads that do so at once would make two.
    return asyncio.all_tasks(_loop()) if _loop.cache_info().currsize else set()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    # One for all servers, and for ever: grpc has one queue of events per process, which it binds to the loops that it sees.
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="event-loop", daemon=True).start()
    return loop


LARGEST_REQUEST: Final = 128 * 1024
"""Bytes; a request with as many claims as one call may have takes less than 100 KiB."""

MOST_CALLS: Final = 512
"""Calls at work and waiting. The kubelet calls once per pod, and a node has 110 of them, seldom more than 250."""

_LAST_STEPS: Final = 0.2
"""Seconds that a thread may take from its answer to its end."""

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


class Pool(ThreadPoolExecutor):
    """Threads for calls that take long, and that know what they have not ended: grpc forgets a call that was cancelled.

    Args:
        threads: Calls that are at work at the same time; others wait.
        name: For the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, thread_name_prefix=name)
        self.open: set[Future[Any]] = set()

    def submit(
        self, fn: Callable[_Arguments, _Answer], /, *args: _Arguments.args, **kwargs: _Arguments.kwargs
    ) -> Future[_Answer]:
        """As `Executor.submit`."""
        future = super().submit(fn, *args, **kwargs)
        self.open.add(future)
        future.add_done_callback(self.open.discard)
        return future


class Server:
    """Services at sockets that only our user may open, and that are seen one by one.

    Args:
        paths: The sockets.
        handlers: The services, the same at each socket.
        pool: Where handlers that are no coroutines are at work. The server ends it.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        handlers: Sequence[grpc.GenericRpcHandler[Any, Any]],
        *,
        pool: Pool,
    ) -> None:
        self._handlers = handlers
        self._pool = pool
        self._running: grpc.aio.Server | None = None
        # Made under another name: nobody connects before the permissions are right, the kubelet sees a socket that
        # answers, and grpc, which at its end removes the name that it knows, does not remove a later instance's.
        self._hidden = {path: path.parent / f".{secrets.token_hex(3)}" for path in paths}
        self._shown: dict[Path, tuple[int, int] | None] = {}

    def intact(self, path: Path) -> bool:
        """True while a socket is there and ours: one that somebody took away is not seen by the kubelet."""
        return self._shown.get(path) == _identity(path) is not None

    def is_hidden(self, path: Path) -> bool:
        """True while a socket is there to be shown."""
        return _identity(self._hidden[path]) is not None

    def start(self) -> None:
        """Serve, with all sockets hidden.

        Raises:
            PluginError: `socket-not-made`.
        """
        run(self._start())

    async def _start(self) -> None:
        server = grpc.aio.server(
            self._pool,
            handlers=list(self._handlers),
            options=[("grpc.max_receive_message_length", LARGEST_REQUEST), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=MOST_CALLS,
        )
        for path, hidden in self._hidden.items():
            try:
                server.add_insecure_port(f"unix:{quote(str(hidden))}")
                hidden.chmod(0o600)
            except (OSError, RuntimeError) as error:
                await server.stop(None)
                raise not_made(path, error) from error
        await server.start()
        self._running = server

    def show(self, path: Path) -> None:
        """Let a socket be seen. What is there already is replaced in one step, as it is where an instance was killed.

        Raises:
            PluginError: `socket-not-made`.
        """
        # Before it is seen: what comes in between, such as Ctrl-C, would leave it there for good.
        before = self._shown.get(path)
        self._shown[path] = _identity(self._hidden[path])
        try:
            self._hidden[path].rename(path)
        except OSError as error:
            self._shown[path] = before
            raise not_made(path, error) from error

    def hide(self, path: Path) -> None:
        """Take a socket away, to be shown again. Who is connected goes on.

        Raises:
            PluginError: `socket-not-made`.
        """
        try:
            if not self.intact(path):
                # It could not be shown again: whoever asks whether we are alive has us started anew.
                raise FileNotFoundError(errno.ENOENT, "it was taken away")
            # The kubelet notices that a name ends, and not that it becomes another (pkg/kubelet/pluginmanager/pluginwatcher).
            os.link(path, self._hidden[path])
            path.unlink()
        except OSError as error:
            raise not_made(path, error) from error
        self._shown.pop(path, None)

    def withdraw(self, path: Path) -> None:
        """Take a socket away, if it is still ours. Who is connected goes on."""
        with suppress(OSError):
            if self.intact(path):
                path.unlink()
            self._hidden[path].unlink(missing_ok=True)
        self._shown.pop(path, None)

    def stop(self, grace: float) -> bool:
        """Take no new calls, wait *grace* seconds for those at work, and take all sockets away. Again is no error.

        Returns:
            Whether all of them ended. One that did not is answered as cancelled, and its thread goes on.
        """
        for path in self._hidden:
            self.withdraw(path)
        if self._running is None:
            return True
        server = self._running
        self._running = None
        until = time.monotonic() + grace
        run(server.stop(grace))
        # Of calls whose callers went grpc knows nothing any more: their threads have what is left of the time.
        left = max(_LAST_STEPS, until - time.monotonic())
        ended = not wait(tuple(self._pool.open), timeout=left).not_done
        self._pool.shutdown(wait=ended, cancel_futures=True)
        return ended


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def not_made(path: Path, error: Exception) -> PluginError:
    """The error for a path at which no socket can be made."""
    reason = error.strerror if isinstance(error, OSError) else ""
    return PluginError.of(
        path=str(path),
        code="socket-not-made",
        message=f"no socket can be made there: {reason or error}",
        hint="see that the folder is there, and that the plugin's user may write to it",
    )
