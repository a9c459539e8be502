"""Real API servers of one minor and set of gates, and a thin client that asks them without storing anything."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.e2e.parity.cases import NAMESPACES, NO_ANSWER, RESOURCES, Answer, Case, Object, Recorded
from tests.e2e.parity.gate_sets import DEFAULT, gates_of
from tools import build
from tools.cluster.api_server import api_server

_SECONDS = 120.0
"""For one answer: expressions at their limits take long on a busy machine."""
_WARNING = re.compile(r'\d{3} \S+ "((?:[^"\\]|\\.)*)"')
_SERVER_SET = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")


class Server:
    """One running API server.

    Args:
        minor: Such as ``1.37``.
        gate_set: One of `gate_sets.GATE_SETS`.
        client: Talks to it as administrator.
    """

    def __init__(self, minor: str, gate_set: str, client: httpx.Client) -> None:
        self.minor = minor
        self.gate_set = gate_set
        self._client = client
        self._served: dict[str, frozenset[str]] = {}

    def serves(self, case: Case) -> bool:
        """Whether it has the kind of *case* in its version; taint rules come with gates, and in few versions."""
        if case.kind != "DeviceTaintRule":
            return True
        version = case.object["apiVersion"]
        if version not in self._served:
            answer = self._client.get(f"/apis/{version}")
            found = () if answer.is_error else answer.json()["resources"]
            self._served[version] = frozenset(each["kind"] for each in found)
        return case.kind in self._served[version]

    def ask(self, case: Case) -> Recorded:
        """Both answers to *case*; nothing is stored."""
        return Recorded(
            case=case,
            minor=self.minor,
            gates=self.gate_set,
            strict=self.answer(case, field_validation="Strict"),
            warn=self.answer(case, field_validation="Warn"),
        )

    def answer(self, case: Case, *, field_validation: str, dry_run: bool = True) -> Answer:
        """What the server says to the creation, or the update when there is an old object."""
        path = _path(case.object, case.namespace)
        if case.old is None:
            return self.send("POST", path, case.object, field_validation=field_validation, dry_run=dry_run)
        name = case.old["metadata"]["name"]
        return self.send(
            "PUT",
            "/".join(filter(None, (path, name, case.subresource))),
            case.object,
            field_validation=field_validation,
            dry_run=dry_run,
        )

    def send(
        self, method: str, path: str, body: Object, *, field_validation: str, dry_run: bool = True
    ) -> Answer:
        """One request; a PATCH is a server-side apply."""
        patch = {"fieldManager": "parity", "force": "true"} if method == "PATCH" else {}
        try:
            response = self._client.request(
                method,
                path,
                content=to_wire(body),
                headers={"Content-Type": "application/apply-patch+yaml" if patch else "application/json"},
                params={
                    "fieldValidation": field_validation,
                    **({"dryRun": "All"} if dry_run else {}),
                    **patch,
                },
            )
        except httpx.RemoteProtocolError as error:
            # What a server does whose validation panics; it goes on with other requests.
            return Answer(code=NO_ANSWER, reason="Disconnected", message=str(error))
        return _read(response)

    def read(self, path: str) -> Object | None:
        """What is stored at *path*, without what the server adds; None when the path is not served or has nothing."""
        response = self._client.get(path)
        return None if response.is_error else _read(response).stored

    def delete(self, case: Case) -> Object:
        """Delete what *case* stored, and return what a finalizer keeps of it."""
        path = f"{_path(case.object, case.namespace)}/{case.object['metadata']['name']}"
        self._client.request("DELETE", path).raise_for_status()
        kept = self.read(path)
        if kept is None:
            raise AssertionError(f"{case.id}: nothing is left of it")
        return kept

    def store(self, case: Case) -> Object:
        """Create *case* for good and return what is stored, without what the server adds to the metadata."""
        answer = self.answer(case, field_validation="Strict", dry_run=False)
        if answer.stored is None:
            raise AssertionError(f"{case.id} was not stored by {self.minor}: {answer.message}")
        return answer.stored


@contextlib.contextmanager
def running(
    minor: str, gate_set: str = DEFAULT, *, binaries: Callable[[str], Path] = build.binary
) -> Iterator[Server]:
    """Start the API server of a minor and give it the namespaces that cases are about."""
    plane = api_server(minor, feature_gates=gates_of(minor, gate_set), binaries=binaries)
    with plane, plane.connection.client() as client:
        client.timeout = _SECONDS
        for name, labels in NAMESPACES.items():
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
            client.post("/api/v1/namespaces", json=body).raise_for_status()
        yield Server(minor, gate_set, client)


def to_wire(body: Object) -> bytes:
    """Compact JSON: limits in bytes are about what is sent."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _path(manifest: Mapping[str, Any], namespace: str) -> str:
    api_version = manifest["apiVersion"]
    plural, namespaced = RESOURCES[manifest["kind"]]
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespaced else f"{root}/{plural}"


def _read(response: httpx.Response) -> Answer:
    body = response.json()
    warnings = tuple(
        re.sub(r"\\(.)", r"\1", text)
        for header in response.headers.get_list("warning")
        for text in _WARNING.findall(header)
    )
    if response.is_error:
        return Answer(
            code=response.status_code,
            reason=body.get("reason", ""),
            message=body.get("message", ""),
            causes=tuple((body.get("details") or {}).get("causes") or ()),
            warnings=warnings,
        )
    metadata = {key: value for key, value in body["metadata"].items() if key not in _SERVER_SET}
    return Answer(code=response.status_code, warnings=warnings, stored={**body, "metadata": metadata})
