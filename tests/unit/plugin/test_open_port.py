"""A port that anybody reaches: who is let in, who goes for it, and for how long one may stay."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from dra_infra.plugin.command.open_port import LARGEST, MOST, MOST_OF_ONE, OpenPort, Shared
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.service.serving import run
from tests.unit.plugin.publishing import wait_until

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
