"""What an API server that lies can make the plugin keep in memory: it is killed when that is more than its pod has.

Whoever has the API server has the cluster. But a proxy that fails, an aggregated server, or an object that was never to be
stored must not end the plugins of all nodes at once.
"""

from __future__ import annotations

import json
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from dra_infra.specs.node_plugin.daemon_set import _RESOURCES
from tests.e2e.attacks.conftest import Loot
from tests.support.plugin.api_server import Handler
from tests.support.plugin.whole_plugin import Machine, machine_in, wait_until

pytestmark = pytest.mark.e2e

MIB: Final = 1 << 20
LIMIT: Final = int(_RESOURCES["limits"]["memory"].removesuffix("Mi"))
MOST: Final = LIMIT * 5 // 8
"""MiB that the plugin takes at most, whatever a server answers: 110 are seen, and 66 without a lie."""

CALLERS: Final = 16
"""Claims that are asked for at the same time: as many as the plugin reads at once."""

Answer = Callable[[], Iterator[bytes]]


def repeated(begin: bytes, part: bytes, end: bytes, size: int = 20 * MIB) -> Answer:
    """JSON of *size* bytes."""

    def blocks() -> Iterator[bytes]:
        yield begin
        block = part * (MIB // len(part))
        for _ in range(size // len(block)):
            yield block
        yield end

    return blocks


METADATA = (
    b'{"kind": "Status", "minor": "37", "major": "1", "metadata": {"resourceVersion": "1", "uid": "u"}, '
)
WIDE = "\U0001f600".encode()
ANSWERS: Final[Mapping[str, Answer]] = MappingProxyType(
    {
        "20 MiB of a text": repeated(METADATA + b'"x": "', b"a", b'"}'),
        "20 MiB of a wide text": repeated(METADATA + b'"x": "' + WIDE, b"a", b'"}'),
        "7 MiB of a wide text": repeated(METADATA + b'"x": "' + WIDE, b"a", b'"}', 7 * MIB),
        "3 MiB of a wide text": repeated(METADATA + b'"x": "' + WIDE, b"a", b'"}', 3 * MIB),
        "20 MiB of lists": repeated(METADATA + b'"x": [', b"[],", b"[]]}"),
        "3 MiB of lists": repeated(METADATA + b'"x": [', b"[],", b"[]]}", 3 * MIB),
        "3 MiB of objects": repeated(METADATA + b'"x": [', b'{"":0},', b"[]]}", 3 * MIB),
        "3 MiB of numbers": repeated(METADATA + b'"x": [', b"1e9,", b"1]}", 3 * MIB),
        "3 MiB of keys": lambda: iter(
            [
                json.dumps(
                    {**json.loads(METADATA + b'"x": 1}'), **{str(n): n for n in range(180_000)}}
                ).encode()
            ]
        ),
        "20 MiB without an end": repeated(METADATA + b'"x": "', b"a", b""),
    }
)


def plainly(answer: Answer, status: int = 200) -> Callable[[Handler], None]:
    def write(handler: Handler) -> None:
        handler.send_response(status)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for block in answer():
            handler.wfile.write(block)

    return write


def packed(size: int) -> Callable[[Handler], None]:
    """A text of *size* bytes that is a thousandth of it on its way."""

    @cache
    def content() -> bytes:
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        parts = [packer.compress(METADATA + b'"x": "')]
        parts += [packer.compress(b"a" * MIB) for _ in range(size // MIB)]
        return b"".join([*parts, packer.compress(b'"}'), packer.flush()])

    def write(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(content())))
        handler.end_headers()
        handler.wfile.write(content())

    return write


def pages_without_end(handler: Handler) -> None:
    items = [{"metadata": {"name": f"s{n}", "uid": "a" * 40}, "spec": {"x": "a" * 4000}} for n in range(100)]
    handler.send(200, {"items": items, "metadata": {"resourceVersion": "1", "continue": "more"}})


def large_headers(handler: Handler) -> None:
    """As many and as long as Python's own parser takes."""
    handler.send_response(200)
    for number in range(90):
        handler.send_header(f"X-{number}", "a" * 65_000)
    handler.end_headers()
    handler.wfile.write(b"{}")
    handler.close_connection = True


LIES: Final[Mapping[str, Callable[[Handler], None]]] = MappingProxyType(
    {
        **{name: plainly(answer) for name, answer in ANSWERS.items()},
        "a refusal of 20 MiB": plainly(ANSWERS["20 MiB of a text"], 403),
        "20 MiB that were packed": packed(20 * MIB),
        "256 MiB that were packed": packed(256 * MIB),
        "pages without an end": pages_without_end,
        "headers of 6 MiB": large_headers,
    }
)


@pytest.fixture
def machine() -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, machine_in(Path(folder)) as found:
        yield found


def peak(pid: int) -> int:
    """The most MiB of memory that a process had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM:")).split()[1]) >> 10


def asked_for(path: str, query: Mapping[str, str]) -> str:
    """What a request is for."""
    if query.get("watch"):
        return "a watch"
    return "a claim" if "resourceclaims/" in path else "another"


IMPATIENT: Final = """
import os, sys
from dra_infra.plugin.api_server import requests
requests._LONGEST, requests.BUDGET = 0.2, 1.0
from dra_infra.plugin.command.program import run
sys.exit(run(sys.argv[1:], os.environ))
"""
"""The plugin itself, but for its pauses behind a failure."""


class Liar:
    """Lies to the requests for one thing, and has the plugin ask again and again."""

    def __init__(self, machine: Machine, what: str) -> None:
        self._server = machine.server
        self._what = what
        self._lie: Callable[[Handler], None] | None = None
        self.told = 0
        self._server.lie = self._answer

    def begin(self, lie: Callable[[Handler], None]) -> None:
        self._lie = lie
        self.told = 0
        self._have_it_ask()

    def _answer(self, _method: str, path: str, query: Mapping[str, str]) -> Callable[[Handler], None] | None:
        return self._tell if self._lie and asked_for(path, query) == self._what else None

    def _tell(self, handler: Handler) -> None:
        try:
            assert self._lie
            self._lie(handler)
        finally:
            self.told += 1
            self._have_it_ask()

    def _have_it_ask(self) -> None:
        if self._what == "a watch":
            self._server.hang_up()


@pytest.mark.parametrize("what", ["a claim", "a watch"])
def test_no_answer_takes_the_memory_that_the_pod_has(machine: Machine, loot: Loot, what: str) -> None:
    process = machine.start_and_register(program=("-c", IMPATIENT))
    claims = [machine.allocate(number, f"gpu-{number % 8}") for number in range(CALLERS)]
    liar = Liar(machine, what)
    before = peak(process.pid)
    for name, lie in LIES.items():
        liar.begin(lie)
        if what == "a claim":
            with ThreadPoolExecutor(CALLERS) as callers:
                errors = [each.error for each in callers.map(machine.prepare, claims)]
            loot.add_if(not all(errors), f"a claim that was prepared by {name}")
        else:
            # Whoever asks again has dealt with the answer before.
            wait_until(lambda: liar.told >= 2 or process.poll() is not None)
        if process.poll() is not None:
            loot.add(f"the plugin's life by {name}")
            return
    most = peak(process.pid)
    print(f"{most} MiB, and {before} before")
    loot.add_if(most > MOST, f"{most} MiB of memory")
