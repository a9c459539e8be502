"""Whoever reaches the plugin's ports: pods of the cluster, with all the sockets and bytes that they like.

The kubelet asks from 127.0.0.1 here, and every attacker has another address of the loopback network.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import re
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from dra_infra.plugin.protocol import grpc_health_v1_pb2 as messages
from dra_infra.plugin.service.health import SERVICES
from dra_infra.plugin.service.node import VERSIONS
from tests.e2e.attacks.conftest import Loot
from tests.support.plugin.whole_plugin import Machine, machine_in, wait_until

pytestmark = pytest.mark.e2e

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, CONTINUATION = 0, 1, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4
PATIENCE = 10.0
"""Seconds that a probe gets, as that of `NodePlugin` does."""

PREPARING = ("NodePrepareResources", "NodeUnprepareResources")
REGISTERING = ("GetInfo", "NotifyRegistrationStatus")

MOST_FILES = 600
MOST_THREADS = 60
MOST_LINES = 60
MOST_MEMORY = 160
"""MiB, of the 256 that `NodePlugin` gives the container. What gRPC holds for connections that have ended becomes free as it gets processor
time, so that on a busy machine an attack is seen with 119 MiB, and without one the plugin has 70."""


class Target:
    """A plugin that runs, with both of its ports."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        process = machine.start_and_register(
            *("--metrics-address", ":0", "--health-address", ":0", "--log-format", "json")
        )
        self.pid = process.pid
        self.health, self.metrics = (
            machine.port(each) for each in ("probes are answered", "metrics are served")
        )
        wait_until(lambda: self.probe("readiness") == "SERVING")
        self._lines_before = 0
        self.begin()

    def begin(self) -> None:
        """Count lines from here on."""
        self._lines_before = len(self.machine.log.read_text().splitlines())

    def probe(self, service: str = "liveness") -> str:
        """As the kubelet asks: a connection of its own for each question."""
        options = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{self.health}", options) as channel:
            call = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                messages.HealthCheckRequest.SerializeToString,
                messages.HealthCheckResponse.FromString,
            )
            try:
                answer = call(messages.HealthCheckRequest(service=service), timeout=PATIENCE)
            except grpc.RpcError as error:
                return f"{error.code().name}"
            return str(messages.HealthCheckResponse.ServingStatus.Name(answer.status))

    def scrape(self) -> str:
        """As Prometheus asks."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics, timeout=PATIENCE)
        try:
            connection.request("GET", "/metrics")
            answer = connection.getresponse()
            return "OK" if b"dra_infra_plugin_info" in answer.read() else str(answer.status)
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        finally:
            connection.close()

    @property
    def files(self) -> int:
        """Open files of the plugin."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def threads(self) -> int:
        """Its threads."""
        return len(list(Path(f"/proc/{self.pid}/task").iterdir()))

    @property
    def memory(self) -> int:
        """MiB of it."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) >> 10

    @property
    def lines(self) -> list[str]:
        """What it wrote since the attack began."""
        return self.machine.log.read_text().splitlines()[self._lines_before :]


@pytest.fixture(scope="module")
def plugin() -> Iterator[Target]:
    """One plugin for all attacks: what one of them leaves, the next one finds."""
    # Sockets have no room for the path of a folder of pytest's.
    with tempfile.TemporaryDirectory() as folder, machine_in(Path(folder)) as machine:
        yield Target(machine)


@pytest.fixture
def target(plugin: Target) -> Target:
    """The plugin, as an attack begins."""
    assert plugin.probe() == "SERVING"
    plugin.begin()
    return plugin


@pytest.fixture
def open_sockets() -> Iterator[list[socket.socket]]:
    """Sockets of attackers, closed with the test."""
    made: list[socket.socket] = []
    yield made
    for each in made:
        each.close()


def connect(port: int, made: list[socket.socket], peer: int = 2) -> socket.socket:
    """From an address of its own."""
    client = socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(f"127.0.0.{peer}", 0))
    made.append(client)
    return client


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name: bytes, value: bytes) -> bytes:
    """Literal, without an index."""
    return b"\0" + _length(name) + name + _length(value) + value


def _length(text: bytes) -> bytes:
    size = len(text)
    if size < 127:
        return bytes([size])
    size -= 127
    said = [127]
    while size >= 128:
        said.append(size % 128 + 128)
        size //= 128
    return bytes([*said, size])


CHECK = b"".join(
    header(name, value)
    for name, value in (
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/grpc.health.v1.Health/Check"),
        (b":authority", b"x"),
        (b"te", b"trailers"),
        (b"content-type", b"application/grpc"),
    )
)
HELLO = PREFACE + frame(SETTINGS, 0, 0)


def half_open(streams: int) -> bytes:
    """Calls that begin, and whose question never comes."""
    return HELLO + b"".join(frame(HEADERS, END_HEADERS, 2 * each + 1, CHECK) for each in range(streams))


def is_open(client: socket.socket) -> bool:
    """Whether the plugin still listens to an attacker."""
    client.settimeout(0)
    try:
        while client.recv(65536):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def note(target: Target, loot: Loot) -> None:
    """What an attacker got while whatever it opened is open."""
    loot.add_if((said := target.probe()) != "SERVING", f"a liveness probe that says {said}")
    loot.add_if((said := target.probe("readiness")) != "SERVING", f"a readiness probe that says {said}")
    loot.add_if((said := target.scrape()) != "OK", f"metrics that are not served: {said}")
    loot.add_if(target.files > MOST_FILES, f"{target.files} open files of the plugin")
    loot.add_if(target.threads > MOST_THREADS, f"{target.threads} threads of the plugin")
    loot.add_if(target.memory > MOST_MEMORY, f"{target.memory} MiB of memory")
    loot.add_if(len(target.lines) > MOST_LINES, f"{len(target.lines)} lines of the log")
    loot.add_if(
        odd := [each for each in target.lines if not is_json(each)], f"lines that are no JSON: {odd[:2]}"
    )
    loot.add_if(
        traces := [each for each in target.lines if '"trace":' in each],
        f"{len(traces)} lines with a traceback: {traces[:1]}",
    )


def is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_calls_whose_question_never_comes(
    target: Target, loot: Loot, open_sockets: list[socket.socket]
) -> None:
    clients = [connect(target.health, open_sockets) for _ in range(4)]
    for each in clients:
        each.sendall(half_open(20))
        # Something comes back once gRPC has begun with them.
        assert each.recv(1)
    note(target, loot)


@pytest.mark.parametrize(
    "said", [b"", PREFACE[:10], PREFACE, HELLO], ids=["nothing", "half", "preface", "hello"]
)
def test_connections_that_go_silent(
    target: Target, loot: Loot, open_sockets: list[socket.socket], said: bytes
) -> None:
    for _ in range(400):
        connect(target.health, open_sockets).sendall(said)
    note(target, loot)


def test_half_requests_for_metrics(target: Target, loot: Loot, open_sockets: list[socket.socket]) -> None:
    for _ in range(400):
        connect(target.metrics, open_sockets).sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
    note(target, loot)


def test_many_peers_with_a_few_connections_each(
    target: Target, loot: Loot, open_sockets: list[socket.socket]
) -> None:
    for peer in range(2, 102):
        for port in (target.health, target.metrics):
            for _ in range(3):
                connect(port, open_sockets, peer).sendall(half_open(20))
    note(target, loot)


def repeatedly(send: Callable[[], bytes], port: int, peer: int, ended: threading.Event) -> None:
    """Send without an end, on a new connection where the plugin ended one."""
    while not ended.is_set():
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 1, source_address=(f"127.0.0.{peer}", 0)) as client,
        ):
            client.sendall(HELLO)
            while not ended.is_set():
                client.sendall(send())
        ended.wait(0.01)


FLOODS = {
    "pings": lambda: frame(PING, 0, 0, b"12345678") * 200,
    "settings": lambda: frame(SETTINGS, 0, 0) * 200,
    "headers without end": lambda: (
        frame(HEADERS, 0, 1, CHECK) + frame(CONTINUATION, 0, 1, header(b"a", b"b" * 9000)) * 20
    ),
    "large headers": lambda: frame(HEADERS, END_HEADERS, 1, CHECK + header(b"a", b"b" * 15000)),
    "rapid resets": lambda: b"".join(
        frame(HEADERS, END_HEADERS, each, CHECK) + frame(RST, 0, each, b"\0\0\0\x08")
        for each in range(1, 401, 2)
    ),
    "whole calls": lambda: b"".join(
        frame(HEADERS, END_HEADERS, each, CHECK) + frame(DATA, END_STREAM, each, b"\0\0\0\0\0")
        for each in range(1, 401, 2)
    ),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_floods(target: Target, loot: Loot, flood: str) -> None:
    ended = threading.Event()
    attackers = [
        threading.Thread(target=repeatedly, args=(FLOODS[flood], target.health, peer, ended))
        for peer in range(2, 6)
    ]
    for each in attackers:
        each.start()
    try:
        for _ in range(3):
            note(target, loot)
    finally:
        ended.set()
        for each in attackers:
            each.join()


def test_a_stream_of_new_connections_of_many_peers(target: Target, loot: Loot) -> None:
    """Two hundred of them may get a probe now and then; a kubelet ends what fails three in a row.

    It asks once a second here, the shortest period that a pod may have.
    """
    ended = threading.Event()

    def come(peers: range) -> None:
        held: list[socket.socket] = []
        for peer in itertools.cycle(peers):
            if ended.is_set():
                break
            with contextlib.suppress(OSError):
                connect(target.health, held, peer).sendall(half_open(2))
            if len(held) > 100:
                held.pop(0).close()
        for each in held:
            each.close()

    attackers = [
        threading.Thread(target=come, args=(range(first, first + 50),)) for first in range(2, 202, 50)
    ]
    for each in attackers:
        each.start()
    try:
        said = [target.probe() == "SERVING" for _ in range(8) if not ended.wait(1.0)]
    finally:
        ended.set()
        for each in attackers:
            each.join()
    in_a_row = max((len(list(group)) for served, group in itertools.groupby(said) if not served), default=0)
    loot.add_if(in_a_row >= 3, f"{in_a_row} probes in a row, and a restart by the kubelet")
    note(target, loot)


def test_a_request_line_without_an_end(target: Target, loot: Loot, open_sockets: list[socket.socket]) -> None:
    clients = [connect(target.metrics, open_sockets) for _ in range(8)]
    for client in clients:
        with contextlib.suppress(OSError):
            for _ in range(100):
                client.sendall(b"a" * 65536)
    note(target, loot)


def test_answers_that_nobody_reads(target: Target, loot: Loot, open_sockets: list[socket.socket]) -> None:
    for _ in range(200):
        client = socket.socket()
        open_sockets.append(client)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        client.bind(("127.0.0.2", 0))
        client.connect(("127.0.0.1", target.metrics))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    note(target, loot)


def test_those_who_hold_on_are_let_go(target: Target, loot: Loot, open_sockets: list[socket.socket]) -> None:
    clients = [connect(target.health, open_sockets, peer) for peer in (2, 3)]
    clients += [connect(target.metrics, open_sockets, peer) for peer in (2, 3)]
    deadline = time.monotonic() + 60.0
    while any(map(is_open, clients)) and time.monotonic() < deadline:
        for each in clients:
            # A byte now and then keeps no connection.
            with contextlib.suppress(OSError):
                each.settimeout(1)
                each.send(b"P")
        time.sleep(0.1)
    loot.add_if(held := sum(map(is_open, clients)), f"{held} connections for as long as it likes")


MALFORMED = b"\x0a\xff\xff\xff\x0f"
"""A field whose length is more than there is."""


def refusal(channel: grpc.Channel, method: str, request: bytes = MALFORMED) -> str:
    """Status of a call whose request is no message."""
    call = channel.unary_unary(method)
    try:
        call(request, timeout=PATIENCE)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def test_questions_that_are_no_message(target: Target, loot: Loot) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    statuses = set()
    for _ in range(300):
        with grpc.insecure_channel(f"127.0.0.1:{target.health}", options) as channel:
            statuses |= {refusal(channel, "/grpc.health.v1.Health/Check") for _ in range(2)}
    loot.add_if(statuses != {"INVALID_ARGUMENT"}, f"the answers {statuses}")
    note(target, loot)


def test_calls_of_the_kubelet_that_are_no_message(target: Target, loot: Loot) -> None:
    """By whoever may open the kubelet's sockets: root of the node, or a kubelet of another version."""
    machine = target.machine
    (registration,) = machine.kubelet.registry.glob("*.sock")
    claims = [f"/{each}/{name}" for each in VERSIONS for name in PREPARING]
    health = [f"/{each}/NodeWatchResources" for each in SERVICES]
    registering = [f"/pluginregistration.Registration/{name}" for name in REGISTERING]
    for path, methods in ((machine.state / "dra.sock", [*claims, *health]), (registration, registering)):
        with grpc.insecure_channel(f"unix:{path}") as channel:
            for method in methods:
                # Each of them more often than lines of one kind are written in a minute.
                statuses = {refusal(channel, method) for _ in range(25)}
                loot.add_if(statuses != {"INVALID_ARGUMENT"}, f"the answers {statuses} of {method}")
    note(target, loot)
