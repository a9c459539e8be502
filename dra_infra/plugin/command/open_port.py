"""A TCP port that anybody may reach, with limits on connections.

It limits how many connect at a time and for how long, and says who goes where there are too many.

Each rule is there so that one who has a right to ask is answered beside those who only want to keep the port busy:

- A connection ends after some seconds, whatever it does meanwhile.
- The newest is always let in. Where its peer has as many as one may have, the oldest of that peer ends for it; where
  all have as many as there may be, the oldest of the peer that came most often lately.

- Whoever answers may let few begin at a time. Of those who wait for that, whoever's peer came least often lately is next.
- A few peers that came while nobody was in want of room are known, for as long as they come back. They are the last to end,
  and begin among themselves: on a node so busy that hardly anybody is taken, those who attack come as seldom as the kubelet.

So a peer can only take its own places, and the kubelet, which comes once in some seconds, keeps its own and is not kept
waiting by those who come without a pause, even where the node is so busy that each answer takes long.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, Generic, TypeVar

from dra_infra.errors import PluginError
from dra_infra.plugin.command.logs import log
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.service.serving import run

MOST: Final = 128
"""Connections at a time. Each of a probe has three open files, and a process may often have no more than 1,024 of them."""

MOST_OF_ONE: Final = 8
"""Connections of one peer address: the node's is that of the kubelet, and of whoever is hidden behind it."""

LARGEST: Final = 16 * 1024
"""Bytes that one connection may send; a probe sends half a kilobyte, a scrape less than that."""

FRESH: Final = 1.0
"""Seconds for which an answer holds for whoever asks next."""

_LATELY: Final = 1024
"""Connections that are looked back at for who came most often."""

_RECENT: Final = 10.0
"""Seconds that are looked back: on a quiet node all that came before an attack was the kubelet."""

_KNOWN: Final = 16
"""Peers that are known, once they came back: the kubelet was there first, and nobody who comes later takes its place."""

_AWAY: Final = 600.0
"""Seconds after which a peer that did not come back is no longer known."""

_TURNS: Final = 4
"""Connections that have a turn at the same time, of known peers and of others."""

_WAITING: Final = 128
"""Connections that the kernel keeps until they are taken: on a busy node hardly a hundred are in a second, and a probe waits for all
before it."""

_AT_ONCE: Final = 2
"""Connections that are taken before those that are there get on: else as many would come at once as there are places, and
each would be the oldest before it is answered."""

_Answer = TypeVar("_Answer")
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class OpenPort:
    """Listens, in the thread of the event loop, and gives each connection to *serve*.

    Args:
        address: Where to listen; port 0 is any that is free.
        serve: Answers a connection. It may raise what streams raise: a connection that has to end is closed while it works.
        seconds: For which a connection may last.

    Raises:
        OSError: Nothing can listen there; see `not_usable`.
    """

    def __init__(self, address: Address, serve: Serve, *, seconds: float) -> None:
        self._serve = serve
        self._seconds = seconds
        self._visits: dict[asyncio.StreamWriter, str] = {}
        self._lately: deque[tuple[float, str]] = deque()
        self._times: Counter[str] = Counter()
        self._known: dict[str, tuple[float, float]] = {}
        self._crowded = float("-inf")
        self._turns: Counter[bool] = Counter()
        self._waits_as: dict[asyncio.StreamWriter, bool] = {}
        self.waiting: dict[asyncio.StreamWriter, asyncio.Future[None]] = {}
        """Connections that wait for a turn, with what wakes them."""
        listener = _listen(address)
        self.port = int(listener.getsockname()[1])
        self._server = run(self._start(listener))

    def stop(self) -> None:
        """Stop listening, and end all connections."""
        run(self._stop())

    @asynccontextmanager
    async def turn(self, writer: asyncio.StreamWriter) -> AsyncIterator[None]:
        """Wait until few others have a turn, and keep the turn for as long as the block lasts.

        Args:
            writer: Of the connection that is served.

        Raises:
            ConnectionAbortedError: The connection was ended before it had one.
        """
        if writer not in self._visits:
            raise ConnectionAbortedError
        is_known = self._is_known(self._visits[writer])
        if self._turns[is_known] < _TURNS:
            self._turns[is_known] += 1
        else:
            waiter = self.waiting[writer] = asyncio.get_running_loop().create_future()
            self._waits_as[writer] = is_known
            try:
                await waiter
            except asyncio.CancelledError:
                if self.waiting.pop(writer, None) is None and not waiter.cancelled():
                    # It was given a turn, and ran out of time before it knew.
                    self._pass_turn_on(is_known=is_known)
                raise
            finally:
                self._waits_as.pop(writer, None)
        try:
            yield
        finally:
            self._pass_turn_on(is_known=is_known)

    def _pass_turn_on(self, *, is_known: bool) -> None:
        # One that ran out of time is still among them until its task gets on.
        waiting = [
            each
            for each, waiter in self.waiting.items()
            if not waiter.done() and self._waits_as[each] == is_known
        ]
        if waiting:
            rarest = min(waiting, key=lambda each: self._times[self._visits[each]])
            self.waiting.pop(rarest).set_result(None)
        else:
            self._turns[is_known] -= 1

    def _is_known(self, peer: str) -> bool:
        if peer not in self._known:
            return False
        first, last = self._known[peer]
        # Who came only once may be anybody.
        return last - first >= FRESH

    async def _start(self, listener: socket.socket) -> asyncio.Server:
        server = await asyncio.start_server(self._visit, sock=listener, limit=LARGEST, backlog=_AT_ONCE)
        # asyncio has one number for both.
        listener.listen(_WAITING)
        return server

    async def _stop(self) -> None:
        self._server.close()
        for each in tuple(self._visits):
            self._end(each)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # One that has gone already has no name.
        peer = str((writer.get_extra_info("peername") or ("",))[0])
        self._make_room(peer)
        self._visits[writer] = peer
        try:
            async with asyncio.timeout(self._seconds):
                await self._serve(reader, writer)
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            # Whoever asked went, or never came to the point; a timeout is an OSError.
            return
        finally:
            self._visits.pop(writer, None)
            writer.transport.abort()

    def _make_room(self, peer: str) -> None:
        self._came(peer)
        self._get_to_know(peer)
        if sum(of == peer for of in self._visits.values()) >= MOST_OF_ONE:
            loser = peer
        elif len(self._visits) >= MOST:
            # The first of several: visits are in the order of their coming.
            loser = max(self._visits.values(), key=lambda of: (not self._is_known(of), self._times[of]))
            self._crowded = asyncio.get_running_loop().time()
        else:
            return
        self._end(next(writer for writer, of in self._visits.items() if of == loser))
        log("warning", "ended a connection to have room for another", peer=loser, port=self.port)

    def _get_to_know(self, peer: str) -> None:
        now = asyncio.get_running_loop().time()
        if peer in self._known:
            self._known[peer] = (self._known[peer][0], now)
        elif now - self._crowded > _RECENT and len(self._visits) < MOST // 4:
            if len(self._known) == _KNOWN:
                away = min(self._known, key=lambda each: self._known[each][1])
                if now - self._known[away][1] < _AWAY:
                    return
                del self._known[away]
            self._known[peer] = (now, now)

    def _came(self, peer: str) -> None:
        now = asyncio.get_running_loop().time()
        while self._lately and (len(self._lately) == _LATELY or self._lately[0][0] < now - _RECENT):
            _, gone = self._lately.popleft()
            self._times[gone] -= 1
            if not self._times[gone]:
                # An address that comes no more takes no memory.
                del self._times[gone]
        self._lately.append((now, peer))
        self._times[peer] += 1

    def _end(self, writer: asyncio.StreamWriter) -> None:
        # Now, and not when its task ends: whoever connects meanwhile must not count it.
        del self._visits[writer]
        if (waiter := self.waiting.pop(writer, None)) and not waiter.done():
            waiter.set_exception(ConnectionAbortedError())
        writer.transport.abort()


class Shared(Generic[_Answer]):
    """Finds an answer in a thread, once for all who ask meanwhile, and keeps it for a moment."""

    def __init__(self, find: Callable[[], _Answer], fresh: float = FRESH) -> None:
        self._find = find
        self._fresh = fresh
        self._finding: asyncio.Task[_Answer] | None = None
        self._until = 0.0

    async def get(self) -> _Answer:
        """The answer. A caller that is cancelled does not cancel it for the others."""
        if self._finding is None or (
            self._finding.done() and asyncio.get_running_loop().time() >= self._until
        ):
            self._finding = asyncio.create_task(self._found())
        return await asyncio.shield(self._finding)

    async def _found(self) -> _Answer:
        try:
            return await asyncio.to_thread(self._find)
        finally:
            self._until = asyncio.get_running_loop().time() + self._fresh


@contextmanager
def held(address: Address) -> Iterator[None]:
    """Listen at an address, and answer nobody.

    Raises:
        OSError: It cannot be had.
    """
    with _listen(address):
        yield


def not_usable(key: str, address: Address, error: OSError) -> PluginError:
    """The error for an address at which nothing can listen."""
    if error.errno == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        hint = f"give an address of this machine, or :{address.port} for all that it has"
    elif isinstance(error, PermissionError):
        hint = "choose a port from 1024 on: those below are for root"
    else:
        hint = "choose a free port; where two instances share the node's network in a rolling update, leave it out"
    return PluginError.of(
        path=key,
        code="plugin-address-not-usable",
        message=f"cannot listen at {address}: {error.strerror or error}",
        hint=hint,
    )


def _listen(address: Address) -> socket.socket:
    try:
        return _listener(address)
    except OSError as error:
        if address.host != "::" or isinstance(error, socket.gaierror):
            raise
    # A machine without IPv6 has no such address; all of IPv4 is then all there is.
    return _listener(Address("0.0.0.0", address.port))  # noqa: S104


def _listener(address: Address) -> socket.socket:
    try:
        family, *_, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except UnicodeError as error:
        # Python's own check of names: a part that is empty, or longer than DNS has them.
        raise socket.gaierror(socket.EAI_NONAME, "no host is called so") from error
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # All addresses are those of IPv4 too, whatever the node's default is.
            with suppress(OSError):
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(place)
        listener.listen(_WAITING)
    except BaseException:
        listener.close()
        raise
    return listener
