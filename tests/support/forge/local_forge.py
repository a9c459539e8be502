"""A server on loopback that speaks the few calls of GitHub's and GitLab's APIs that we use, and fails as told."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Reply:
    """What is answered instead; a `text` that is a function writes to the connection itself."""

    status: int
    text: str | Callable[[Any], None] = "{}"
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    """Whether the request is carried out all the same."""


@dataclass
class LocalForge:
    """State of one repository: what tests look at, and what they put there."""

    repository: str = "team/infra"
    number: int = 42
    # token: name of the account, and whether it is a program's
    accounts: dict[str, tuple[str, bool]] = field(default_factory=dict)
    comments: list[dict[str, Any]] = field(default_factory=list)
    # open pull requests as GitHub lists them, and states of commits: (commit, state, context)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    statuses: list[tuple[str, str, str]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    replies: list[tuple[str, str, Reply, int]] = field(default_factory=list)
    before: Callable[[Asked], None] = lambda _: None
    address: str = ""
    next_id: int = 1000
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def github(self) -> str:
        return f"{self.address}/api/v3"

    @property
    def gitlab(self) -> str:
        return f"{self.address}/api/v4"

    def fail(self, method: str, path: str, reply: Reply, *, times: int = 1_000_000) -> None:
        """Answer *reply* to the next requests of *method* whose path holds *path*."""
        self.replies.append((method, path, reply, times))

    def put(self, body: str, *, author: str, program: bool = False) -> dict[str, Any]:
        with self.lock:
            self.next_id += 1
            comment = {
                "id": self.next_id,
                "body": body,
                "user": {"login": author, "type": "Bot" if program else "User"},
                "author": {"username": author},
                "system": False,
                "html_url": f"{self.address}/{self.repository}/pull/{self.number}#issuecomment-{self.next_id}",
            }
            self.comments.append(comment)
            return comment

    def open_pull(
        self, *, head: str, merge: str | None, label: str = "team:branch", number: int | None = None
    ) -> None:
        """Open a pull request, or push to it."""
        number = number or self.number
        self.pulls = [each for each in self.pulls if each["number"] != number]
        pull = {
            "number": number,
            "merge_commit_sha": merge,
            "head": {"sha": head, "label": label},
            "base": {"ref": "main"},
        }
        self.pulls.append({"id": 7000 + number, **pull})

    def bodies(self) -> list[str]:
        return [comment["body"] for comment in self.comments]

    def methods(self, *names: str) -> list[str]:
        return [
            asked.method
            for asked in self.asked
            if asked.method in (names or ("POST", "PATCH", "PUT", "DELETE"))
        ]

    # What the handler calls

    def planned(self, method: str, path: str) -> Reply | None:
        with self.lock:
            for position, (wanted, part, reply, times) in enumerate(self.replies):
                if wanted == method and part in path and times > 0:
                    self.replies[position] = (wanted, part, reply, times - 1)
                    return reply
        return None

    def answer(self, asked: Asked) -> tuple[int, Any, dict[str, str]]:
        account = self.accounts.get(asked.headers.get("authorization", "").removeprefix("Bearer "))
        if account is None:
            return 401, {"message": "Bad credentials"}, {}
        parts = urlsplit(asked.path)
        path = unquote(parts.path)
        if re.fullmatch(r"/api/v[34]/user", path):
            if account[1] and "/v3" in path:
                return 403, {"message": "Resource not accessible by integration"}, {}
            return 200, {"login": account[0], "username": account[0]}, {}
        lists = (
            f"/api/v3/repos/{self.repository}/issues/{self.number}/comments",
            f"/api/v4/projects/{self.repository}/merge_requests/{self.number}/notes",
        )
        single = re.fullmatch(
            rf"(?:/api/v3/repos/{self.repository}/issues/comments|{lists[1]})/([0-9]+)", path
        )
        pulls = f"/api/v3/repos/{self.repository}/pulls"
        status = re.fullmatch(rf"/api/v3/repos/{self.repository}/statuses/([0-9a-f]+)", path)
        with self.lock:
            if path == pulls:
                return 200, self.pulls if parse_qs(parts.query)["page"] == ["1"] else [], {}
            if path.startswith(f"{pulls}/"):
                return (
                    200,
                    next(each for each in self.pulls if str(each["number"]) == path[len(pulls) + 1 :]),
                    {},
                )
            if status:
                self.statuses.append((status[1], asked.body["state"], asked.body["context"]))
                return 201, {}, {}
            if path in lists:
                return self._list(asked, parse_qs(parts.query), account)
            if single:
                return self._single(asked, int(single[1]))
        return 404, {"message": "Not Found"}, {}

    def _list(self, asked: Asked, query: dict[str, list[str]], account: tuple[str, bool]):
        if asked.method == "POST":
            if len(asked.body["body"]) > 65_536:
                return 422, {"message": "Validation Failed", "errors": [{"message": "body is too long"}]}, {}
            return 201, self.put(asked.body["body"], author=account[0], program=account[1]), {}
        size, page = int(query["per_page"][0]), int(query["page"][0])
        items = self.comments[(page - 1) * size : page * size]
        more = page * size < len(self.comments)
        link = {"Link": f'<{self.address}/elsewhere?page={page + 1}>; rel="next"'} if more else {}
        return 200, items, link

    def _single(self, asked: Asked, identifier: int):
        found = next((each for each in self.comments if each["id"] == identifier), None)
        if found is None:
            return 404, {"message": "Not Found"}, {}
        if asked.method == "DELETE":
            self.comments.remove(found)
            return 204, None, {}
        found["body"] = asked.body["body"]
        return 200, found, {}


@contextmanager
def serving(forge: LocalForge) -> Iterator[LocalForge]:
    """The forge behind an address on loopback."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Or the second packet of every answer waits 40 ms.
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            raw = self.rfile.read(length)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, json.loads(raw) if raw else None)
            with forge.lock:
                forge.asked.append(asked)
            forge.before(asked)
            reply = forge.planned(self.command, self.path)
            status = 0
            data = None
            extra = {}
            if reply is None or reply.after:
                status, data, extra = forge.answer(asked)
            text = "" if data is None else json.dumps(data)
            if reply is not None:
                status, text, extra = reply.status, reply.text, reply.headers
            if callable(text):
                text(self)
                self.close_connection = True
                return
            payload = text.encode()
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    for method in ("GET", "POST", "PATCH", "PUT", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    forge.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield forge
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
