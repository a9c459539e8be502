"""A small client for the Kubernetes API: plain manifests in, plain manifests out.

Kinds are named ``<apiVersion>/<Kind>``: ``v1/Pod``, ``resource.k8s.io/v1/ResourceClaim``.
"""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING, Any, Self

import httpx

from tools.cluster.connection import Connection
from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

Manifest = dict[str, Any]
Manifests = list[Manifest]

_FIELD_MANAGER = "dra-infra-tools"

PATIENCE = 120.0
"""Seconds for what takes one or two on a quiet machine. It is no claim about speed: it only ends a wait that is in vain."""


class ApiError(ToolError):
    """The API server refused a request.

    Attributes:
        status: HTTP status code.
        reason: Kubernetes' machine-readable reason, such as ``AlreadyExists`` or ``Invalid``.
        causes: Fields at fault, as the server lists them in ``details.causes``.
    """

    def __init__(self, status: int, body: Mapping[str, Any], *, request: str) -> None:
        super().__init__(f"{request}: {status} {body.get('message') or body}")
        self.status = status
        self.reason = str(body.get("reason", ""))
        self.causes: list[dict[str, str]] = (body.get("details") or {}).get("causes") or []


class WaitTimeoutError(ToolError, TimeoutError):
    """What was waited for did not happen; the message shows what was last seen."""


def kind_of(manifest: Mapping[str, Any]) -> str:
    """The name by which `Api` knows the kind of *manifest*."""
    return f"{manifest['apiVersion']}/{manifest['kind']}"


class Api:
    """One user's view of one API server; use it in a ``with`` statement or call `close`.

    ``namespace`` defaults to ``default`` where one object of a namespaced kind is meant, and to all namespaces
    where many are. Safe to use from several threads.

    Raises:
        ApiError: When the server answers with a status of 400 or more.
        ToolError: When the kind is not served.
    """

    def __init__(self, connection: Connection) -> None:
        self._client = connection.client()
        self._resources: dict[str, dict[str, tuple[str, bool]]] = {}

    @classmethod
    def from_kubeconfig(cls, path: Path) -> Self:
        """Connect as the current context of a kubeconfig says."""
        return cls(Connection.from_kubeconfig(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def request(self, method: str, path: str, **options: Any) -> Manifest:
        """Send one request and return the JSON object of the answer; options are those of httpx."""
        response = self._client.request(method, path, **options)
        if response.is_error:
            raise ApiError(response.status_code, _status(response), request=f"{method} {path}")
        answer: Manifest = response.json()
        return answer

    def get(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest:
        """Read one object."""
        return self.request("GET", self._path(kind, namespace, name))

    def find(self, kind: str, name: str, *, namespace: str | None = None) -> Manifest | None:
        """Read one object, or None when there is none of that name."""
        try:
            return self.get(kind, name, namespace=namespace)
        except ApiError as error:
            if error.status == httpx.codes.NOT_FOUND:
                return None
            raise

    def list(
        self, kind: str, *, namespace: str | None = None, label_selector: str | None = None
    ) -> Manifests:
        """Read all objects of a kind, sorted by namespace and name; each carries its apiVersion and kind."""
        selectors = _selectors(label_selector=label_selector)
        return self._list(kind, namespace, selectors)[0]

    def create(self, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Manifest:
        """Create *manifest* in the namespace that it names; unknown fields are an error."""
        metadata = manifest["metadata"]
        return self.request(
            "POST",
            self._path(kind_of(manifest), metadata.get("namespace")),
            json=dict(manifest),
            params={
                "fieldManager": _FIELD_MANAGER,
                "fieldValidation": "Strict",
                **({"dryRun": "All"} if dry_run else {}),
            },
        )

    def apply(
        self, manifest: Mapping[str, Any], *, field_manager: str = _FIELD_MANAGER, force: bool = True
    ) -> Manifest:
        """Create or change an object by server-side apply."""
        metadata = manifest["metadata"]
        return self.request(
            "PATCH",
            self._path(kind_of(manifest), metadata.get("namespace"), metadata["name"]),
            content=json.dumps(manifest),
            headers={"Content-Type": "application/apply-patch+yaml"},
            params={
                "fieldManager": field_manager,
                "force": str(force).lower(),
                "fieldValidation": "Strict",
            },
        )

    def patch(
        self,
        kind: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Manifest:
        """Change an object, or its ``status`` as *subresource*, by a JSON merge patch."""
        return self.request(
            "PATCH",
            self._path(kind, namespace, name, subresource),
            content=json.dumps(patch),
            headers={"Content-Type": "application/merge-patch+json"},
            params={"fieldManager": _FIELD_MANAGER},
        )

    def delete(
        self,
        kind: str,
        name: str,
        *,
        namespace: str | None = None,
        propagation: str = "Background",
        grace_seconds: int | None = None,
        missing_ok: bool = False,
    ) -> None:
        """Ask for the end of an object; `wait_gone` tells when it has come.

        A pod may take *grace_seconds* to end, instead of its own limit; 0 deletes the object at once. With
        *missing_ok* it may have gone: what was listed a moment ago may have been collected since.
        """
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
        }
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        try:
            self.request("DELETE", self._path(kind, namespace, name), json=options)
        except ApiError as error:
            if not (missing_ok and error.status == httpx.codes.NOT_FOUND):
                raise

    def wait_until(
        self,
        kind: str,
        name: str,
        predicate: Callable[[Manifest], object],
        *,
        namespace: str | None = None,
        timeout: float = PATIENCE,
    ) -> Manifest:
        """Return the object as soon as it exists and *predicate* holds for it.

        Raises:
            WaitTimeoutError: After *timeout* seconds.
        """
        found = self.wait_for(
            kind,
            lambda objects: bool(objects) and bool(predicate(objects[0])),
            namespace=namespace or "default",
            name=name,
            timeout=timeout,
        )
        return found[0]

    def wait_gone(
        self, kind: str, name: str, *, namespace: str | None = None, timeout: float = PATIENCE
    ) -> None:
        """Return as soon as there is no object of that name.

        Raises:
            WaitTimeoutError: After *timeout* seconds.
        """
        self.wait_for(
            kind, lambda objects: not objects, namespace=namespace or "default", name=name, timeout=timeout
        )

    def wait_for(
        self,
        kind: str,
        predicate: Callable[[Manifests], object],
        *,
        namespace: str | None = None,
        name: str | None = None,
        label_selector: str | None = None,
        timeout: float = PATIENCE,
    ) -> Manifests:
        """Return the selected objects, sorted by namespace and name, as soon as *predicate* holds for all of them.

        Reads once and then watches, so that no state is missed and nothing is polled.

        Raises:
            WaitTimeoutError: After *timeout* seconds.
        """
        selectors = _selectors(label_selector=label_selector, name=name)
        deadline = time.monotonic() + timeout
        while True:
            objects, version = self._list(kind, namespace, selectors)
            if predicate(objects):
                return objects
            current = {_key(item): item for item in objects}
            for event in self._watch(kind, namespace, {**selectors, "resourceVersion": version}, deadline):
                item = event["object"]
                if event["type"] == "DELETED":
                    current.pop(_key(item), None)
                else:
                    current[_key(item)] = item
                objects = [current[key] for key in sorted(current)]
                if predicate(objects):
                    return objects
            if time.monotonic() >= deadline:
                seen = [{"name": _key(item)[1], "status": item.get("status")} for item in objects]
                what = f"{kind} {name or label_selector or ''}".strip()
                raise WaitTimeoutError(f"{what}: waited {timeout:g} s; last seen: {json.dumps(seen)[:2000]}")

    def _watch(
        self, kind: str, namespace: str | None, params: Mapping[str, str], deadline: float
    ) -> Iterator[Manifest]:
        """Changes since a resource version; ends early whenever the caller has to list again."""
        left = deadline - time.monotonic()
        if left <= 0:
            return
        query = {**params, "watch": "true", "timeoutSeconds": str(math.ceil(left))}
        path = self._path(kind, namespace if self._is_namespaced(kind) else None, many=True)
        try:
            with self._client.stream("GET", path, params=query, timeout=left) as response:
                if response.is_error:
                    return
                for line in response.iter_lines():
                    event: Manifest = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    yield event
                    if time.monotonic() >= deadline:
                        return
        except httpx.TransportError:
            # Cut off or out of time: the next list tells which, and fails if the server is really away.
            return

    def _list(self, kind: str, namespace: str | None, selectors: Mapping[str, str]) -> tuple[Manifests, str]:
        answer = self.request("GET", self._path(kind, namespace, many=True), params=dict(selectors))
        api_version, _, name = kind.rpartition("/")
        items = [{"apiVersion": api_version, "kind": name, **item} for item in answer["items"]]
        return sorted(items, key=_key), answer["metadata"]["resourceVersion"]

    def _is_namespaced(self, kind: str) -> bool:
        return self._resource(kind)[1]

    def _path(
        self,
        kind: str,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
        *,
        many: bool = False,
    ) -> str:
        plural, namespaced = self._resource(kind)
        segments = [_root(kind.rpartition("/")[0])]
        if namespaced and (namespace or not many):
            segments += ["namespaces", namespace or "default"]
        return "/".join([*segments, plural, *filter(None, (name, subresource))])

    def _resource(self, kind: str) -> tuple[str, bool]:
        """Plural name of *kind* and whether it lives in namespaces, as the server's discovery says."""
        api_version, _, name = kind.rpartition("/")
        if name not in self._resources.get(api_version, {}):
            found = self.request("GET", _root(api_version))["resources"]
            self._resources[api_version] = {
                entry["kind"]: (entry["name"], entry["namespaced"])
                for entry in found
                if "/" not in entry["name"]
            }
        try:
            return self._resources[api_version][name]
        except KeyError:
            raise ToolError(
                f"{kind}: {api_version} serves no kind {name!r}", hint="write <apiVersion>/<Kind>"
            ) from None


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _selectors(*, label_selector: str | None = None, name: str | None = None) -> dict[str, str]:
    selectors = {}
    if label_selector:
        selectors["labelSelector"] = label_selector
    if name:
        selectors["fieldSelector"] = f"metadata.name={name}"
    return selectors


def _key(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = item["metadata"]
    return (metadata.get("namespace", ""), metadata["name"])


def _status(response: httpx.Response) -> Manifest:
    try:
        body = response.json()
    except ValueError:
        return {"message": response.text[:500]}
    return body if isinstance(body, dict) else {"message": str(body)[:500]}
