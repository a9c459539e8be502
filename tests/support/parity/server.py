"""Real API servers of one minor and set of gates, and a thin client that asks them without storing anything."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from tests.support.parity.cases import NAMESPACES, NO_ANSWER, RESOURCES, Answer, Case, Object, Recorded
from tests.support.parity.gate_sets import DEFAULT, gates_of
from tools import build
from tools.cluster import Connection
from tools.cluster.api_server import api_server
from tools.cluster.connection import tls_context

_SECONDS = 120.0
"""For one answer: expressions at their limits take long on a busy machine."""
_DECODED = (200, 201, 400, 422)
"""Codes of answers after which is known what decoding found."""
_STRICT = "strict decoding error"
_FIRST_ERROR = 400
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class Server:
    """One running API server.

    Args:
        minor: Such as ``1.37``.
        gate_set: One of `gate_sets.GATE_SETS`.
        connection: Of its administrator.
    """

    def __init__(self, minor: str, gate_set: str, connection: Connection) -> None:
        self.minor = minor
        self.gate_set = gate_set
        # A run is 10,000 requests: a client for people's programs takes longer over one than the server does.
        self._pool = urllib3.connection_from_url(
            connection.url, ssl_context=tls_context(connection.ca), timeout=_SECONDS, retries=False
        )
        self._headers = {"Authorization": f"Bearer {connection.token}", "Accept": "application/json"}
        self._served: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        """Close its connections."""
        self._pool.close()

    def serves(self, case: Case) -> bool:
        """Whether it has the kind of *case* in its version; taint rules come with gates, and in few versions."""
        if case.kind != "DeviceTaintRule":
            return True
        version = case.object["apiVersion"]
        if version not in self._served:
            answer = self._request("GET", f"/apis/{version}")
            found = () if _is_error(answer) else answer.json()["resources"]
            self._served[version] = frozenset(each["kind"] for each in found)
        return case.kind in self._served[version]

    def ask(self, case: Case, *, twice: bool = True) -> Recorded:
        """Both answers to *case*; nothing is stored.

        Args:
            case: The question.
            twice: Ask again under `Warn` even where the answer cannot be another one: field validation is about
                what decoding finds, and of an object without such faults the server says the same under both.
        """
        strict = self.answer(case, field_validation="Strict")
        again = twice or strict.code not in _DECODED or _STRICT in strict.message
        warn = self.answer(case, field_validation="Warn") if again else strict
        return Recorded(case=case, minor=self.minor, gates=self.gate_set, strict=strict, warn=warn)

    def answer(self, case: Case, *, field_validation: str, dry_run: bool = True) -> Answer:
        """What the server says to the creation, or the update when there is an old object."""
        path = _path(case.object, case.namespace)
        if case.old is None:
            return self.send("POST", path, case.object, field_validation=field_validation, dry_run=dry_run)
        name = case.old["metadata"]["name"]
        return self.send(
            "PUT",
            f"{path}/{name}",
            case.object,
            field_validation=field_validation,
            dry_run=dry_run,
        )

    def send(
        self, method: str, path: str, body: Object, *, field_validation: str, dry_run: bool = True
    ) -> Answer:
        """One request; a PATCH is a server-side apply."""
        patch = {"fieldManager": "parity", "force": "true"} if method == "PATCH" else {}
        parameters = {
            "fieldValidation": field_validation,
            **({"dryRun": "All"} if dry_run else {}),
            **patch,
        }
        try:
            response = self._request(
                method,
                f"{path}?{urlencode(parameters)}",
                body=to_wire(body),
                content_type="application/apply-patch+yaml" if patch else "application/json",
            )
        except urllib3.exceptions.ProtocolError as error:
            # What a server does whose validation panics; it goes on with other requests.
            return Answer(code=NO_ANSWER, reason="Disconnected", message=str(error))
        return _read(response)

    def read(self, path: str) -> Object | None:
        """What is stored at *path*, without what the server adds; None when the path is not served or has nothing."""
        response = self._request("GET", path)
        return None if _is_error(response) else _read(response).stored

    def read_raw(self, path: str) -> Object | None:
        """What the server answers to a GET of *path*, whatever it is; None for an error."""
        response = self._request("GET", path)
        return None if _is_error(response) else dict(response.json())

    def store(self, case: Case) -> Object:
        """Create *case* for good and return what is stored, without what the server adds to the metadata."""
        answer = self.answer(case, field_validation="Strict", dry_run=False)
        if answer.stored is None:
            raise AssertionError(f"{case.id} was not stored by {self.minor}: {answer.message}")
        return answer.stored

    def make_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Make a namespace for good."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        answer = self.send("POST", "/api/v1/namespaces", body, field_validation="Strict", dry_run=False)
        if not answer.is_accepted:
            raise AssertionError(f"namespace {name} was not made: {answer.message}")

    def _request(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = ""
    ) -> urllib3.BaseHTTPResponse:
        headers = {**self._headers, "Content-Type": content_type} if content_type else self._headers
        return self._pool.urlopen(method, path, body=body, headers=headers, redirect=False)


@contextlib.contextmanager
def running(
    minor: str, gate_set: str = DEFAULT, *, binaries: Callable[[str], Path] = build.binary
) -> Iterator[Server]:
    """Start the API server of a minor and give it the namespaces that cases are about."""
    plane = api_server(minor, feature_gates=gates_of(minor, gate_set), binaries=binaries)
    with plane, contextlib.closing(Server(minor, gate_set, plane.connection)) as server:
        for name, labels in NAMESPACES.items():
            server.make_namespace(name, labels)
        yield server


def to_wire(body: Object) -> bytes:
    """Compact JSON: limits in bytes are about what is sent."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _path(manifest: Mapping[str, Any], namespace: str) -> str:
    api_version = manifest["apiVersion"]
    plural, namespaced = RESOURCES[manifest["kind"]]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"


def _is_error(response: urllib3.BaseHTTPResponse) -> bool:
    return response.status >= _FIRST_ERROR


def _read(response: urllib3.BaseHTTPResponse) -> Answer:
    body = response.json()
    warnings = tuple(
        re.sub(r"\\(.)", r"\1", text)
        for header in response.headers.getlist("warning")
        # Go writes UTF-8 where HTTP's own reading of headers is Latin-1.
        for text in _WARNING.findall(header.encode("latin-1").decode("utf-8", "surrogateescape"))
    )
    if _is_error(response):
        return Answer(
            code=response.status,
            reason=body.get("reason", ""),
            message=body.get("message", ""),
            causes=tuple((body.get("details") or {}).get("causes") or ()),
            warnings=warnings,
        )
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_SET}
    return Answer(code=response.status, warnings=warnings, stored={**body, "metadata": metadata})
