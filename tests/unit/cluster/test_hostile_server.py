"""An API server that means harm: every answer that has no end is left, by time, by pages or by bytes."""

from __future__ import annotations

import gzip
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from dra_infra.client import deadline, session, transport
from dra_infra.client.kinds import PODS
from dra_infra.client.kubeconfig import Account
from dra_infra.client.session import Session
from dra_infra.cluster import reading
from dra_infra.cluster.reading import Reader
from dra_infra.errors import ClusterError
from tests.unit.cluster.conftest import Query, Reply, Server

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Timer:
    """In place of the clock of a deadline, whose time is over when the test says so."""

    def __init__(self, _seconds: float, end: Callable[[], None]) -> None:
        self.end = end

    def start(self) -> None:
        Timer.started.append(self)

    def cancel(self) -> None:
        """There is nothing that would come."""

    started: ClassVar[list[Timer]] = []


@pytest.fixture
def time_is_over(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Ends the time of the answers that are awaited. On a busy machine, real time could be over before they begin."""
    Timer.started.clear()
    monkeypatch.setattr(deadline, "threading", SimpleNamespace(Lock=threading.Lock, Timer=Timer))

    def end() -> None:
        for each in Timer.started:
            each.end()

    return end


@contextmanager
def saying(
    *parts: bytes, then: bytes = b"", seconds: float = 60.0, fifth: Callable[[], None] = lambda: None
) -> Iterator[Session]:
    """A server that says *parts* to each who asks, and then *then* once more every 10 ms while somebody listens.

    With the fifth time, it calls *fifth*.
    """
    ended = threading.Event()
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while not ended.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65_536)
                    for part in parts:
                        connection.sendall(part)
                    for number in itertools.count(1) if then else ():
                        if ended.wait(0.01):
                            break
                        connection.sendall(then)
                        if number == 5:
                            fifth()
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    server = f"http://127.0.0.1:{listening.getsockname()[1]}"
    account = Account(name="test", server=server, request_timeout=seconds)
    try:
        yield Session(account, {}, sleep=lambda _: None)
    finally:
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def refusal(ask: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(ClusterError) as caught:
        ask()
    (problem,) = caught.value.problems
    return problem.code, problem.message


@pytest.mark.parametrize(
    ("parts", "then"),
    [
        ([b"H"], b"T"),
        ([b"HTTP/1.1 200 OK\r\nX-Long: "], b"x"),
        ([HEAD, b"Content-Length: 100000\r\n\r\n"], b" "),
        ([HEAD, b"\r\n"], b" "),
        ([HEAD, b"Transfer-Encoding: chunked\r\n\r\n"], b"1\r\n \r\n"),
        # The name of the file in front of packed bytes has no end, and nothing comes out meanwhile.
        ([HEAD, b"Content-Encoding: gzip\r\n\r\n", b"\x1f\x8b\x08\x08\0\0\0\0\0\x03"], b"x"),
    ],
    ids=["status", "header", "body", "body-without-length", "chunks", "gzip-header"],
)
def test_an_answer_that_comes_byte_by_byte_is_left_in_time(
    time_is_over: Callable[[], None], parts: list[bytes], then: bytes
) -> None:
    with saying(*parts, then=then, fifth=time_is_over) as asking:
        assert refusal(lambda: asking.get("/x")) == (
            "cluster-unreachable",
            f"{asking.account.server} does not answer: an answer is not complete after 120 s",
        )


def test_half_of_an_answer_that_was_cut_is_not_taken_for_all_of_it(time_is_over: Callable[[], None]) -> None:
    with saying(HEAD, b'\r\n{"items": []}', then=b" ", fifth=time_is_over) as asking:
        assert refusal(lambda: asking.get_json("/x"))[0] == "cluster-unreachable"


def test_a_packed_answer_counts_as_what_it_unfolds_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_LARGEST", 4 << 20)
    packed = gzip.compress(gzip.compress(b" " * (256 << 20), 9), 9)
    head = HEAD + f"Content-Encoding: gzip, gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()
    with saying(head, packed) as asking:
        code, message = refusal(lambda: asking.get("/x"))
        assert (code, "more than 4 MiB" in message) == ("cluster-answer", True)


def test_a_line_of_a_watch_without_an_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    with saying(HEAD + b"\r\n", b"x" * (1 << 20), then=b"x" * 65_536) as asking:
        monkeypatch.setattr(asking._transport, "_largest", 4 << 20)

        def follow() -> None:
            with asking.lines("/x", {}, seconds=30) as (_, lines):
                list(lines)

        assert refusal(follow)[0] == "cluster-answer"


def test_lines_of_a_watch_are_whole_however_they_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_BLOCK", 3)
    body = b"first\n\nsecond\nthi"
    with (
        saying(HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode(), body) as asking,
        asking.lines("/x", {}, seconds=30) as (_, lines),
    ):
        assert list(lines) == [b"first", b"", b"second"]


def page(number: int, more: str) -> dict[str, Any]:
    return {"metadata": {"continue": more}, "items": [{"metadata": {"name": f"p{number}"}}]}


def endless(server: Server) -> None:
    def answer(query: Query) -> Reply:
        number = int(query.get("continue", "0")) + 1
        return 200, page(number, str(number))

    server.answers["/api/v1/pods"] = answer


def test_pages_without_an_end_are_left(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_PAGES", 20)
    endless(server)
    code, message = refusal(lambda: server.reader().list(PODS))
    assert (code, "more than 20 pages" in message) == ("cluster-answer", True)
    assert len(server.asked) == 20


def test_pages_are_left_when_the_time_is_over(server: Server) -> None:
    endless(server)
    now = iter(range(0, 10**6, 100))
    reader = Reader(server.session(), clock=lambda: float(next(now)))
    assert "do not end in 1800 s" in refusal(lambda: reader.list(PODS))[1]


def test_pages_are_left_when_they_are_too_much(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 20)
    endless(server)
    body = json.dumps({**page(1, "x"), "padding": " " * (1 << 19)}).encode()
    server.answers["/api/v1/pods"] = lambda query: (
        200,
        body.replace(b'"x"', f'"{len(server.asked)}"'.encode()),
    )
    assert "more than 1 MiB of lists" in refusal(lambda: server.reader().list(PODS))[1]


def test_polls_of_a_watch_are_bounded_each_by_itself(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 1 << 16)
    server.says("/api/v1/pods", (200, {"metadata": {}, "items": [], "padding": " " * (1 << 15)}))
    session = server.session()
    for _ in range(4):
        assert Reader(session).list(PODS).is_seen
    assert session.bytes_read > 1 << 16


def test_a_page_that_is_followed_by_itself_is_left_at_once(server: Server) -> None:
    server.says("/api/v1/pods", (200, page(1, "x")))
    assert "followed by itself" in refusal(lambda: server.reader().list(PODS))[1]
    assert len(server.asked) == 2


@pytest.mark.parametrize("item", [1, None, [], "x", {}, {"metadata": None}, {"metadata": {"name": ["x"]}}])
def test_items_that_are_no_objects_are_no_list(server: Server, item: Any) -> None:
    server.says("/api/v1/pods", (200, {"metadata": {}, "items": [{"metadata": {"name": "p"}}, item]}))
    code, message = refusal(lambda: server.reader().list(PODS))
    assert (code, "items that are no objects" in message) == ("cluster-answer", True)


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 70 + b"1" + b"}" * 70, b"NaN", b"-1e999", b"\xff", b"1" * 5000]
)
def test_json_that_nothing_could_be_done_with_is_no_answer(server: Server, body: bytes) -> None:
    server.says("/x", (200, body))
    assert refusal(lambda: server.session().get_json("/x"))[0] == "cluster-answer"


def test_half_of_a_character_pair_becomes_what_go_makes_of_it(server: Server) -> None:
    server.says("/x", (200, b'{"\\ud800": ["\\udc00", "\\ud83d\\ude00"]}'))
    assert server.session().get_json("/x") == (200, {"\ufffd": ["\ufffd", "\U0001f600"]})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<!DOCTYPE html><title>Sign in</title>", "an HTML page, as a proxy or a page to log in does"),
        (b"\n <HTML><body>", "an HTML page, as a proxy or a page to log in does"),
        (b"nothing", "what is not JSON"),
        (b"", "what is not JSON"),
    ],
)
def test_a_page_to_log_in_is_called_one(body: bytes, words: str) -> None:
    length = f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
    with saying(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n", length, body) as asking:
        server = asking.account.server
        assert refusal(lambda: asking.get_json("/x")) == (
            "cluster-answer",
            f"{server} answers /x with {words}",
        )


def test_no_message_names_a_class_of_python() -> None:
    with socket.socket() as deaf:
        # Its port refuses, and is nobody else's meanwhile.
        deaf.bind(("127.0.0.1", 0))
        server = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        _, message = refusal(lambda: Session(Account(name="n", server=server), {}).get_json("/x"))
    assert message.startswith(f"{server} does not answer: Failed to establish a new connection")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        asking = Session(Account(name="n", server=server), {})
        _, message = refusal(lambda: asking.lines("/x", {}, seconds=0.2).__enter__())
    # Whichever of the two clocks is first.
    assert message.removeprefix(f"{server} does not answer: ") in (
        "an answer is not complete after 0.2 s",
        "Read timed out. (read timeout=0.2)",
    )


def test_a_silent_server_is_given_up_after_the_time_that_was_asked_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = f"http://127.0.0.1:{silent.getsockname()[1]}"
        account = Account(name="test", server=server, request_timeout=0.2)
        code, message = refusal(lambda: Session(account, {}, sleep=lambda _: None).get("/x"))
    assert code == "cluster-unreachable"
    # A busy machine may notice the end of the time for the whole answer first.
    assert message.removeprefix(f"{server} does not answer: ") in (
        "an answer is not complete after 0.4 s",
        "Read timed out. (read timeout=0.2)",
    )
