"""A port that anybody reaches: who is let in, who goes for it, and for how long one may stay."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from dra_infra.plugin.command import open_port
from dra_infra.plugin.command.open_port import LARGEST, MOST, MOST_OF_ONE, OpenPort, Shared
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.service.serving import run
from tests.support.plugin.publishing import wait_until

ANY = Address("127.0.0.1", 0)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer each line until there are no more."""
    while line := await reader.readuntil(b"\n"):
        writer.write(line)
        await writer.drain()


@pytest.fixture
def port() -> Iterator[OpenPort]:
    made = OpenPort(ANY, echo, seconds=60.0)
    yield made
    made.stop()


Connect = Callable[..., socket.socket]


@pytest.fixture
def connect() -> Iterator[Connect]:
    made: list[socket.socket] = []

    def one(port: OpenPort, peer: int = 1) -> socket.socket:
        client = socket.create_connection(
            ("127.0.0.1", port.port), timeout=60, source_address=(f"127.0.0.{peer}", 0)
        )
        made.append(client)
        return client

    yield one
    for each in made:
        each.close()


def answered(client: socket.socket) -> bool:
    with suppress(OSError):
        client.sendall(b"x\n")
        return client.recv(2) == b"x\n"
    return False


def test_a_peer_with_too_many_connections_loses_its_oldest(port: OpenPort, connect: Connect):
    other = connect(port, 2)
    assert answered(other)
    clients = [connect(port) for _ in range(MOST_OF_ONE)]
    assert all(map(answered, clients))
    newest = connect(port)
    assert answered(newest)
    assert [answered(each) for each in clients] == [False, *[True] * (MOST_OF_ONE - 1)]
    assert answered(other)


def test_where_all_have_too_many_whoever_has_most_loses_its_oldest(port: OpenPort, connect: Connect):
    greedy = [connect(port, 2) for _ in range(3)]
    others = [connect(port, peer) for peer in range(3, MOST)]
    assert all(map(answered, [*greedy, *others]))
    assert answered(connect(port, 1))
    assert [answered(each) for each in greedy] == [False, True, True]
    assert all(map(answered, others))


def test_where_all_have_too_many_whoever_came_most_often_lately_loses_its_oldest(
    port: OpenPort, connect: Connect
):
    seldom, often = connect(port, 1), connect(port, 2)
    assert answered(seldom)
    for _ in range(3):
        # Most came and went; the peer has no more connections than others now.
        often.close()
        often = connect(port, 2)
        assert answered(often)
    others = [connect(port, peer) for peer in range(3, MOST + 1)]
    assert all(map(answered, others))
    assert answered(connect(port, MOST + 1))
    assert not answered(often)
    assert answered(seldom)
    assert all(map(answered, others))


async def is_known(port: OpenPort, peer: str) -> bool:
    return port._is_known(peer)


class Gate:
    """Answers a connection within its turn, once it may."""

    def __init__(self, seconds: float) -> None:
        self.may = threading.Event()
        self.began: list[str] = []
        self.port = OpenPort(ANY, self.serve, seconds=seconds)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readuntil(b"\n")
        async with self.port.turn(writer):
            self.began.append(writer.get_extra_info("peername")[0])
            await asyncio.to_thread(self.may.wait)
            writer.write(line)
            await writer.drain()

    def waits(self, wanted: int) -> bool:
        """Whether so many connections wait for a turn."""

        async def count() -> int:
            return len(self.port.waiting)

        return run(count()) == wanted

    def knows(self, peer: str) -> bool:
        """Whether a peer may get known."""
        return peer in self.port._known


@pytest.fixture
def gate(request: pytest.FixtureRequest) -> Iterator[Gate]:
    made = Gate(getattr(request, "param", 60.0))
    yield made
    made.may.set()
    made.port.stop()


def test_whoever_came_least_often_has_the_next_turn(gate: Gate, connect: Connect):
    for peer in (2, 2, 2, 2):
        connect(gate.port, peer).sendall(b"x\n")
    wait_until(lambda: len(gate.began) == 4)
    for number, peer in enumerate((2, 3, 3, 1), start=1):
        connect(gate.port, peer).sendall(b"x\n")
        wait_until(lambda number=number: gate.waits(number))
    gate.may.set()
    wait_until(lambda: len(gate.began) == 8)
    assert gate.began[4:] == ["127.0.0.1", "127.0.0.3", "127.0.0.3", "127.0.0.2"]


def test_a_peer_that_came_back_while_there_was_room_begins_beside_those_who_have_all_turns(
    gate: Gate, connect: Connect, monkeypatch: pytest.MonkeyPatch
):
    early = [connect(gate.port, 1), connect(gate.port, 1)]
    wait_until(lambda: gate.knows("127.0.0.1"))
    for peer in (2, 3, 4, 5, 6):
        connect(gate.port, peer).sendall(b"x\n")
    wait_until(lambda: len(gate.began) == 4 and gate.waits(1))
    # Others came back too late: nobody is known who was there for less than a moment.
    monkeypatch.setattr(open_port, "FRESH", 0.0)
    early[1].sendall(b"x\n")
    wait_until(lambda: len(gate.began) == 5)
    assert gate.began[4] == "127.0.0.1"


def test_a_known_peer_is_the_last_to_end(monkeypatch: pytest.MonkeyPatch, port: OpenPort, connect: Connect):
    monkeypatch.setattr(open_port, "FRESH", 0.0)
    monkeypatch.setattr(open_port, "_KNOWN", 1)
    known = [connect(port, 1) for _ in range(4)]
    assert all(map(answered, known))
    others = [connect(port, peer) for peer in range(2, MOST - 2)]
    assert all(map(answered, others))
    assert answered(connect(port, MOST - 1))
    assert not answered(others[0])
    assert all(map(answered, known))


def test_who_comes_while_there_is_no_room_gets_known_to_nobody(
    monkeypatch: pytest.MonkeyPatch, port: OpenPort, connect: Connect
):
    monkeypatch.setattr(open_port, "FRESH", 0.0)
    crowd = [connect(port, peer) for peer in range(2, 2 + MOST)]
    assert all(map(answered, crowd))
    assert answered(connect(port, 200))
    assert not run(is_known(port, "127.0.0.200"))
    assert run(is_known(port, "127.0.0.2"))


def test_who_goes_while_it_waits_takes_no_turn(gate: Gate, connect: Connect):
    for peer in (2, 3, 4, 5):
        connect(gate.port, peer).sendall(b"x\n")
    wait_until(lambda: len(gate.began) == 4)
    for _ in range(MOST_OF_ONE + 3):
        connect(gate.port, 6).sendall(b"x\n")
    # The oldest ended for the newest, some of them before they were waiting.
    wait_until(lambda: gate.waits(MOST_OF_ONE))
    gate.may.set()
    wait_until(lambda: len(gate.began) == 4 + MOST_OF_ONE)
    last = connect(gate.port, 7)
    assert answered(last)


@pytest.mark.parametrize("gate", [0.3], indirect=True)
def test_who_runs_out_of_time_while_it_waits_takes_no_turn(gate: Gate, connect: Connect):
    clients = [connect(gate.port, peer) for peer in range(2, 8)]
    for each in clients:
        each.sendall(b"x\n")
    assert [each.recv(1) for each in clients] == [b""] * 6
    gate.may.set()
    # One connection may run out of time on a busy machine; without a turn, all would.
    wait_until(lambda: answered(connect(gate.port, 8)))


def test_a_connection_ends_after_its_time_whatever_it_does(connect: Connect):
    port = OpenPort(ANY, echo, seconds=0.3)
    try:
        client = connect(port)
        wait_until(lambda: not answered(client))
    finally:
        port.stop()


def test_a_line_that_is_longer_than_a_connection_may_send_ends_it(port: OpenPort, connect: Connect):
    client = connect(port)
    with suppress(OSError):
        client.sendall(b"a" * LARGEST * 4)
    with suppress(ConnectionError):
        assert client.recv(1) == b""


def test_connections_end_with_the_port(port: OpenPort, connect: Connect):
    client = connect(port)
    assert answered(client)
    port.stop()
    assert not answered(client)


def test_all_who_ask_at_a_time_have_one_answer():
    begun, wanted, asked = threading.Event(), threading.Event(), []

    def find() -> int:
        begun.set()
        assert wanted.wait(60)
        asked.append(1)
        return len(asked)

    async def many() -> list[int]:
        shared = Shared(find, fresh=60.0)
        gone = asyncio.create_task(shared.get())
        others = [asyncio.create_task(shared.get()) for _ in range(100)]
        await asyncio.to_thread(begun.wait)
        # One who goes takes nobody's answer with it.
        gone.cancel()
        wanted.set()
        return [*await asyncio.gather(*others), await shared.get()]

    assert run(many()) == [1] * 101


def test_an_answer_gets_old_and_a_failure_too():
    asked: list[int] = []

    def find() -> int:
        asked.append(1)
        if len(asked) == 1:
            raise ValueError("not yet")
        return len(asked)

    async def two() -> int:
        shared = Shared(find, fresh=0.0)
        with pytest.raises(ValueError, match="not yet"):
            await shared.get()
        await shared.get()
        return await shared.get()

    assert run(two()) == 3
