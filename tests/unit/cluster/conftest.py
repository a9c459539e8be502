"""A server on loopback that answers as it is told, and the kubeconfig for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from dra_infra.client.kubeconfig import Account, User
from dra_infra.client.session import Session
from dra_infra.cluster.reading import Reader

Query = dict[str, str]
Reply = tuple[int, Any]


@dataclass
class Server:
    """Answers by path, or by method and path where that is not GET; what is not there is 404.

    `asked` holds paths, queries and headers in order, and `sent` the methods, paths and bodies of what changes something.
    """

    url: str = ""
    answers: dict[str, Callable[[Query], Reply]] = field(default_factory=dict)
    asked: list[tuple[str, Query, dict[str, str]]] = field(default_factory=list)
    sent: list[tuple[str, str, Any]] = field(default_factory=list)

    def says(self, path: str, *replies: Reply) -> None:
        """Each of *replies* once, and the last for ever."""
        rest = list(replies)
        self.answers[path] = lambda _query: rest.pop(0) if len(rest) > 1 else rest[0]

    def session(self, user: User | None = None) -> Session:
        return Session(Account(name="test", server=self.url, user=user or User()), {}, sleep=lambda _s: None)

    def reader(self, *namespaces: str) -> Reader:
        return Reader(self.session(), namespaces=namespaces)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            made.asked.append((parts.path, query, dict(self.headers)))
            key = parts.path
            if self.command != "GET":
                key = f"{self.command} {parts.path}"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                made.sent.append((self.command, parts.path, json.loads(body)))
            answer = made.answers.get(key)
            status, body = answer(query) if answer else (404, {"message": "not found"})
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815  (names of http.server)

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        def handle_error(self, *_: Any) -> None:
            # Clients hang up on what they do not want to read.
            pass

    http = Quiet(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield made
    http.shutdown()
    http.server_close()
    thread.join()
