"""Requests to a Kubernetes API server: objects in, objects or coded refusals out."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import httpx

from tools.kubernetes_provider.kubeconfig import ClusterAccess, UnreachableError
from tools.kubernetes_provider.resource_types import GroupVersionKind

CONNECT_SECONDS: Final = 20.0
"""An idle server takes milliseconds; one of tests, beside all else that runs, may take seconds."""

REQUEST_SECONDS: Final = 30.0

JSON_PATCH: Final = "application/json-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Json = dict[str, Any]


def encode(body: object) -> str:
    """Write *body* as clients in Go do, and so the vendor's provider: keys sorted, compact, safe inside HTML.

    The bytes matter. The API server keeps the opaque parameters of a claim as they came, and writes them anew for every
    strategic patch and every server-side apply. Where that gives other bytes, the spec "is immutable" from then on: not
    even a finalizer can be taken off, and the claim is never gone.
    """
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


class RefusedError(Exception):
    """The API server refused a request.

    Attributes:
        code: HTTP status.
        reason: Kubernetes' word for it: `NotFound`, `AlreadyExists`, `Conflict`, `Forbidden`, `Invalid`...
        about: The kind of object that the refusal is about, which is `namespaces` when that is missing.
    """

    def __init__(self, *, code: int, reason: str, message: str, about: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.about = about


class NotServedError(Exception):
    """The API server does not know the kind."""


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What charts see as `.Capabilities`.

    Args:
        version: Of the API server, `v1.37.1`.
        served: API versions, alone and with each of their kinds: `resource.k8s.io/v1/DeviceClass`.
    """

    version: str
    served: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """How a kind is addressed."""

    collection: str
    namespaced: bool


class ApiServer:
    """One API server; safe to use from several threads.

    Every method that sends a request raises `RefusedError` when the server says no, and `UnreachableError`
    when it says nothing. Those that take a kind raise `NotServedError` when the server does not know it.
    """

    def __init__(self, access: ClusterAccess, *, timeout: float = REQUEST_SECONDS) -> None:
        self._client = httpx.Client(
            base_url=access.server,
            verify=access.trust,
            headers=dict(access.headers),
            timeout=httpx.Timeout(timeout, connect=CONNECT_SECONDS),
            # The address is in the kubeconfig; a proxy of the environment is meant for other traffic.
            trust_env=False,
        )
        self._served: dict[str, dict[str, Resource]] = {}
        self._lock = threading.Lock()

    def check(self) -> None:
        """Make sure that somebody answers.

        Raises:
            UnreachableError: Nobody does, or not to us.
        """
        try:
            self._request("GET", "/apis")
        except (UnreachableError, RefusedError) as error:
            raise UnreachableError(
                f"unable to load schema information from the API server: {error}"
            ) from error

    def read_capabilities(self) -> Capabilities:
        """Return what charts may ask about the cluster: its version and the kinds that it serves."""
        served: set[str] = set()
        for root in ("/api", "/apis"):
            for group in self._request("GET", root, accept=DISCOVERY).get("items", ()):
                name = group.get("metadata", {}).get("name", "")
                for version in group["versions"]:
                    api_version = f"{name}/{version['version']}" if name else version["version"]
                    kinds = {entry["responseKind"]["kind"] for entry in version.get("resources", ())}
                    served |= {api_version, *(f"{api_version}/{kind}" for kind in kinds)}
        version = self._request("GET", "/version")["gitVersion"]
        return Capabilities(version=version, served=tuple(sorted(served)))

    def find_resource(self, kind: GroupVersionKind) -> Resource:
        """Return how *kind* is addressed.

        Raises:
            NotServedError: No such kind, now. Groups are asked again then: definitions can come later.
        """
        with self._lock:
            if kind.kind not in self._served.get(kind.api_version, {}):
                self._served[kind.api_version] = self._discover(kind)
            found = self._served[kind.api_version].get(kind.kind)
        if found is None:
            raise NotServedError(f'no matches for kind "{kind.kind}" in version "{kind.api_version}"')
        return found

    def _discover(self, kind: GroupVersionKind) -> dict[str, Resource]:
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        try:
            listed = self._request("GET", root).get("resources", ())
        except RefusedError as error:
            if error.code == httpx.codes.NOT_FOUND:
                return {}
            raise
        return {
            entry["kind"]: Resource(collection=f"{root}/{entry['name']}", namespaced=entry["namespaced"])
            for entry in listed
            # Subresources such as pods/eviction have kinds of their own.
            if "/" not in entry["name"]
        }

    def get(self, kind: GroupVersionKind, namespace: str, name: str) -> Json:
        """Return one object."""
        return self._request("GET", self._path(kind, namespace, name))

    def select(self, kind: GroupVersionKind, namespace: str, selector: str) -> tuple[Json, ...]:
        """Return the objects with these labels, in the server's order."""
        found = self._request("GET", self._path(kind, namespace), query={"labelSelector": selector})
        return tuple(found.get("items") or ())

    def create(self, kind: GroupVersionKind, body: Json, *, manager: str, dry_run: bool) -> Json:
        """Create an object that must not exist yet."""
        namespace = body.get("metadata", {}).get("namespace", "")
        query = {"fieldManager": manager} | ({"dryRun": "All"} if dry_run else {})
        return self._request("POST", self._path(kind, namespace), query=query, body=body)

    def apply(self, kind: GroupVersionKind, body: Json, *, manager: str, force: bool, dry_run: bool) -> Json:
        """Give an object the fields of *body* by server-side apply."""
        metadata = body["metadata"]
        query = {"fieldManager": manager, "force": str(force).lower()}
        return self._request(
            "PATCH",
            self._path(kind, metadata.get("namespace", ""), metadata["name"]),
            query=query | ({"dryRun": "All"} if dry_run else {}),
            body=body,
            content_type=APPLY_PATCH,
        )

    def patch(self, kind: GroupVersionKind, namespace: str, name: str, operations: list[Json]) -> Json:
        """Change an object by a JSON patch."""
        path = self._path(kind, namespace, name)
        return self._request("PATCH", path, body=operations, content_type=JSON_PATCH)

    def delete(self, kind: GroupVersionKind, namespace: str, name: str, *, propagation: str) -> None:
        """Begin to delete an object."""
        self._request("DELETE", self._path(kind, namespace, name), body={"propagationPolicy": propagation})

    def _path(self, kind: GroupVersionKind, namespace: str, name: str = "") -> str:
        resource = self.find_resource(kind)
        path = resource.collection
        if resource.namespaced:
            prefix, _, plural = path.rpartition("/")
            path = f"{prefix}/namespaces/{quote(namespace or 'default', safe='')}/{plural}"
        return f"{path}/{quote(name, safe='')}" if name else path

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: object = None,
        content_type: str = "application/json",
        accept: str = "*/*",
    ) -> Json:
        content = None if body is None else encode(body)
        try:
            response = self._client.request(
                method,
                path,
                params=query,
                content=content,
                headers={"Content-Type": content_type, "Accept": accept},
            )
        except httpx.HTTPError as error:
            raise UnreachableError(
                f"{self._client.base_url}: {str(error) or type(error).__name__}"
            ) from error
        try:
            answer = response.json()
        except ValueError:
            answer = {}
        if not isinstance(answer, dict):
            answer = {}
        if response.is_error:
            raise RefusedError(
                code=response.status_code,
                reason=answer.get("reason", ""),
                message=answer.get("message") or f"{method} {path}: HTTP status {response.status_code}",
                about=(answer.get("details") or {}).get("kind", ""),
            )
        return answer
