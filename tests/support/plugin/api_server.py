"""A small API server in memory: what a real one does with slices, claims and nodes, as far as the plugin can see it.

`Store` is asked directly by tests that stop the plugin at any request; `ApiServer` serves it on loopback.
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from dra_infra.client.kubeconfig import Account, User
from dra_infra.plugin.api_server.client import Api

Object = dict[str, Any]


class RefusalError(Exception):
    def __init__(self, status: int, message: str, reason: str = "", retry_after: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.retry_after = retry_after


class Clock:
    """Seconds that pass when somebody waits for them, and how long these waits were."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.now += seconds
        return False


class Store:
    """Objects by plural, namespace and name, with what happened to them. `changed` is held while something happens."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.events: list[tuple[int, str, str, Object]] = []
        self.version = 1
        self.forgotten = 0
        self.dropped: set[str] = set()
        self.times = itertools.count()
        self.changed = threading.Condition()
        self.applying = threading.Lock()
        self._random = random.Random(1)  # noqa: S311

    def get(self, plural: str, namespace: str, name: str) -> Object:
        found = self.objects.get((plural, namespace, name))
        if found is None:
            raise RefusalError(404, f'{plural} "{name}" not found', "NotFound")
        return copy.deepcopy(found)

    def list(
        self, plural: str, namespace: str = "", selector: Mapping[str, str] | None = None
    ) -> list[Object]:
        with self.changed:
            return [
                copy.deepcopy(item)
                for (kind, where, _), item in sorted(self.objects.items())
                if kind == plural and where == (namespace or where) and selects(selector or {}, item)
            ]

    def create(self, plural: str, namespace: str, item: Object, *, dry_run: bool = False) -> Object:
        made = self._stored(copy.deepcopy(item))
        metadata = made["metadata"]
        if "generateName" in metadata:
            suffix = "".join(self._random.choices("bcdfghjklmnpqrstvwxz2456789", k=5))
            metadata["name"] = metadata["generateName"][:58] + suffix
        if (plural, namespace, metadata["name"]) in self.objects:
            raise RefusalError(409, "already exists", "AlreadyExists")
        if namespace:
            metadata["namespace"] = namespace
        metadata["uid"] = metadata.get("uid") or str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        if not dry_run:
            self._put(plural, namespace, made, "ADDED")
        return copy.deepcopy(made)

    def update(self, plural: str, namespace: str, name: str, item: Object) -> Object:
        before = self.get(plural, namespace, name)
        if item["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
            raise RefusalError(409, "the object has been modified", "Conflict")
        made = self._stored(copy.deepcopy(item))
        self._put(plural, namespace, made, "MODIFIED")
        return copy.deepcopy(made)

    def delete(
        self, plural: str, namespace: str, name: str, conditions: Mapping[str, Any] | None = None
    ) -> None:
        with self.changed:
            before = self.get(plural, namespace, name)
            for key, value in (conditions or {}).items():
                if value and before["metadata"].get(key) != value:
                    raise RefusalError(409, "the precondition does not hold", "Conflict")
            del self.objects[plural, namespace, name]
            self._happened(plural, "DELETED", before)

    def change(self, plural: str, namespace: str, name: str, change: Callable[[Object], None]) -> None:
        """As a person with kubectl edit."""
        with self.changed:
            item = self.get(plural, namespace, name)
            change(item)
            self._put(plural, namespace, item, "MODIFIED")

    def apply_status(self, plural: str, namespace: str, name: str, item: Object) -> Object:
        """Server-side apply by the one manager that there is: devices that it does not say any more are gone."""
        with self.applying:
            before = self.get(plural, namespace, name)["metadata"]
            for key in ("uid", "resourceVersion"):
                if item["metadata"].get(key, before[key]) != before[key]:
                    raise RefusalError(409, "the object has been modified", "Conflict")
            self.change(plural, namespace, name, lambda found: found["status"].update(item["status"]))
            return self.get(plural, namespace, name)

    def forget(self) -> None:
        """Lose the history: watches from before are too old."""
        with self.changed:
            self.forgotten = self.version

    def _stored(self, item: Object) -> Object:
        spec = item.get("spec") or {}
        count = (spec.get("pool") or {}).get("resourceSliceCount", 1)
        if count < 1:
            raise RefusalError(422, "spec.pool.resourceSliceCount: must be greater than zero", "Invalid")
        if "sharedCounters" in self.dropped:
            spec.pop("sharedCounters", None)
        for device in spec.get("devices") or []:
            if device["name"] == "refused":
                raise RefusalError(422, "spec.devices: Invalid value", "Invalid")
            for field in self.dropped:
                device.pop(field, None)
            for taint in device.get("taints") or []:
                if "timeAdded" not in taint:
                    taint["timeAdded"] = f"2026-11-21T20:00:{next(self.times) % 60:02}Z"
            for capacity in (device.get("capacity") or {}).values():
                if capacity.get("value") == "1024Mi":
                    capacity["value"] = "1Gi"
        return item

    def _put(self, plural: str, namespace: str, item: Object, type_: str) -> None:
        with self.changed:
            self._happened(plural, type_, item)
            self.objects[plural, namespace, item["metadata"]["name"]] = item

    def _happened(self, plural: str, type_: str, item: Object) -> None:
        with self.changed:
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            self.events.append((self.version, plural, type_, copy.deepcopy(item)))
            self.changed.notify_all()


def selects(selector: Mapping[str, str], item: Object) -> bool:
    spec = item.get("spec") or {}
    return all(spec.get(key.removeprefix("spec.")) == value for key, value in selector.items())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes: the second would wait 40 ms for the client to have seen the first.
    disable_nagle_algorithm = True
    server_of_test: ApiServer

    def setup(self) -> None:
        super().setup()
        self.server_of_test.open.add(self.connection)

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ValueError):
            # The client hung up, or the server was stopped.
            return
        finally:
            self.server_of_test.open.discard(self.connection)

    def answer(self) -> None:
        parts = urlsplit(self.path)
        query = dict(parse_qsl(parts.query))
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        server = self.server_of_test
        server.asked.append((self.command, parts.path, query))
        try:
            server.admit(self.command, parts.path, self.headers.get("Authorization", ""))
            if lie := server.lie(self.command, parts.path, query):
                lie(self)
            elif query.get("watch"):
                self.stream(server.watch(parts.path, query))
            else:
                self.send(200, server.serve(self.command, parts.path, query, body))
        except RefusalError as refusal:
            said = {"kind": "Status", "message": refusal.message, "reason": refusal.reason}
            body = said if refusal.reason else b"404 page not found\n"
            self.send(refusal.status, body, refusal.retry_after)

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815  (names that the base class asks for)

    def send(self, status: int, body: Any, retry_after: str = "") -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, lines: Iterator[Object]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for each in lines:
            line = json.dumps(each).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    # See `ApiServer.hold_port`.
    allow_reuse_port = True

    def handle_error(self, *_: Any) -> None:
        pass


class ApiServer:
    """Serves a store. `refuse` may answer in its place: it gets method and path, and returns a status or None.

    So may `lie`, which gets the query too, and returns what writes an answer of its own, or None.
    """

    def __init__(self, port: int = 0, store: Store | None = None) -> None:
        self.store = store or Store()
        self.versions = ["v1"]
        self.minor = "37"
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.refuse: Callable[[str, str], int | None] = lambda _method, _path: None
        self.lie: Callable[[str, str, Mapping[str, str]], Callable[[Handler], None] | None] = (
            lambda _method, _path, _query: None
        )
        self.retry_after = ""
        self.token = ""
        self.ended = False
        self.open: set[Any] = set()
        self._http = Quiet(("127.0.0.1", port), type("Bound", (Handler,), {"server_of_test": self}))
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self._thread.start()

    def api(self, user: User | None = None, clock: Clock | None = None) -> Api:
        account = Account(name="test", server=self.url, user=user or User())
        return Api(account, {}, clock=clock, wait=clock.wait) if clock else Api(account, {})

    def writes(self) -> list[str]:
        return [
            f"{method} {path}"
            for method, path, query in self.asked
            if method != "GET" and "dryRun" not in query
        ]

    def hold_port(self) -> socket.socket:
        """Keep the port for a server that is to come: whoever asks the kernel for any port gets another one.

        Else a client that knocks there again and again may be given the port itself, and be its own answer.
        """
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", self.port))
        return holder

    def stop(self) -> None:
        self.ended = True
        with self.store.changed:
            self.store.changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self.hang_up()
        self._thread.join()

    def hang_up(self) -> None:
        """End all connections."""
        for connection in list(self.open):
            # Closing would not end what a handler reads and writes.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def admit(self, method: str, path: str, authorization: str) -> None:
        status = self.refuse(method, path)
        if status:
            raise RefusalError(status, "the test says so", "Test", self.retry_after)
        if self.token and authorization != f"Bearer {self.token}":
            raise RefusalError(401, "Unauthorized", "Unauthorized")

    def serve(self, method: str, path: str, query: Mapping[str, str], body: Any) -> Object:
        if path == "/version":
            return {"major": "1", "minor": self.minor}
        plural, namespace, name = self._split(path)
        if not plural:
            names = ("resourceslices", "resourceclaims")
            return {"resources": [{"name": each} for each in names]}
        store = self.store
        if method == "POST":
            return store.create(plural, namespace, body, dry_run="dryRun" in query)
        if method == "PATCH":
            return store.apply_status(plural, namespace, name, body)
        if method == "PUT":
            return store.update(plural, namespace, name, body)
        if method == "DELETE":
            store.delete(plural, namespace, name, (body or {}).get("preconditions"))
            return {"kind": "Status"}
        if name:
            return store.get(plural, namespace, name)
        with store.changed:
            items = store.list(plural, namespace, selector_of(query))
            version = store.version
        start = int(query.get("continue", "0"))
        most = int(query.get("limit", "500"))
        rest = {"continue": str(start + most)} if len(items) > start + most else {}
        metadata = {"resourceVersion": str(version), **rest}
        return {"items": items[start : start + most], "metadata": metadata}

    def watch(self, path: str, query: Mapping[str, str]) -> Iterator[Object]:
        plural, _, _ = self._split(path)
        since = int(query["resourceVersion"])
        selector = selector_of(query)
        if since < self.store.forgotten:
            yield {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}
            return
        while not self.ended:
            with self.store.changed:
                new = [each for each in self.store.events if each[0] > since]
                if not new:
                    self.store.changed.wait(30)
                    continue
            for version, kind, type_, item in new:
                since = version
                if kind == plural and selects(selector, item):
                    yield {"type": type_, "object": item}

    def _split(self, path: str) -> tuple[str, str, str]:
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "v1"]:
            rest = parts[2:]
        elif parts[:2] == ["apis", "resource.k8s.io"] and parts[2] in self.versions:
            rest = parts[3:]
        else:
            raise RefusalError(404, "404 page not found")
        namespace = ""
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        return (*rest[:1], "")[0], namespace, (*rest[1:2], "")[0]


def selector_of(query: Mapping[str, str]) -> dict[str, str]:
    return dict(each.split("=", 1) for each in query.get("fieldSelector", "").split(",") if each)


@contextmanager
def serving(store: Store | None = None, port: int = 0) -> Iterator[ApiServer]:
    server = ApiServer(port, store)
    try:
        yield server
    finally:
        server.stop()
