"""The few requests that the plugin makes to the API server, on the connections of `dra_infra.cluster`.

Objects go in and come out in the shape of resource.k8s.io/v1, whichever version the server has.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_infra.cluster.accounts import Account
from dra_infra.cluster.kinds import RESOURCE_GROUP, Kind
from dra_infra.cluster.objects import mapping, mappings, text
from dra_infra.cluster.wire import BUSY, Wire, pause_of
from dra_infra.errors import ClusterError, Problem
from dra_infra.plugin.api_server.refusals import ApiError, not_served, of_cluster, refused
from dra_infra.plugin.api_server.watch import Watching

Object = dict[str, Any]

_READ: Final = 10.0
"""Seconds of silence after which an answer is given up: the kubelet waits for 45 s for all that it asked."""

_BUDGET: Final = 15.0
"""Seconds in which a request is made again."""

_LARGEST: Final = 64 * 1024 * 1024
_PAGE: Final = 500
_TOO_MANY: Final = 429
_WATCH: Final = 290
"""Seconds for which a watch is asked; proxies end silent connections after five minutes."""


class Api:
    """One API server, asked as one account; safe to use from several threads.

    Every request raises `ApiError` (`api-unreachable`, `api-unauthorized`, `api-forbidden`, `api-refused`,
    `kind-not-served`), with what was asked as the path.

    Args:
        account: From `dra_infra.cluster.kubeconfig.find_account`: of a kubeconfig, or of the pod.
        environment: May name proxies.
    """

    def __init__(self, account: Account, environment: Mapping[str, str] = os.environ) -> None:
        try:
            self._wire = Wire(account, environment, largest=_LARGEST, agent="dra-infra-plugin")
        except ClusterError as error:
            raise of_cluster(f"connect to {account.server}", error) from error
        self._closed = threading.Event()
        self._version = ""
        self._minor = 0

    def close(self) -> None:
        """Have nobody wait for a busy server any more."""
        self._closed.set()

    def forget(self) -> None:
        """Find out anew what the server is: it may be another release since it was away."""
        self._version, self._minor = "", 0

    def version(self, kind: Kind) -> str:
        """The best version of a kind that the server has; of resource.k8s.io it is asked for once."""
        if kind.group != RESOURCE_GROUP:
            return kind.versions[0]
        if not self._version:
            for version in kind.versions:
                path = f"/apis/{RESOURCE_GROUP}/{version}"
                status, body, reason = self._call("GET", path, asked=f"get {path}")
                if status not in (200, 404):
                    raise refused(f"get {path}", kind, "get", status, str(body), reason)
                served = {text(each.get("name")) for each in mappings(mapping(body).get("resources"))}
                # Versions are served that hold other kinds alone.
                if status == 200 and {"resourceslices", "resourceclaims"} <= served:
                    self._version = version
                    break
            else:
                raise not_served(kind)
        return self._version

    def minor(self) -> int:
        """The minor release that the server behaves like, 37 for 1.37, asked for once."""
        if not self._minor:
            status, body, _ = self._call("GET", "/version", asked="get /version")
            said = mapping(body)
            # An emulated one decides what is accepted; clouds write `34+`.
            number = text(said.get("emulationMinor")) or text(said.get("minor"))
            digits = number.rstrip("+")
            if status != 200 or not digits.isdigit():
                raise of_cluster("get /version", ClusterError([_no_version(body)]))
            self._minor = int(digits)
        return self._minor

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """An object, or None where there is none of that name."""
        asked = f"get {kind.name} {_full(namespace, name)}"
        status, body, reason = self._call("GET", self._path(kind, namespace, name), asked=asked)
        if status == 404 and reason == "NotFound":
            return None
        return self._object(kind, "get", asked, status, body, reason)

    def list(
        self, kind: Kind, *, field_selector: str = "", keep: Callable[[Object], bool] = lambda _: True
    ) -> tuple[list[Object], str]:
        """Objects of a kind, and the resource version to watch them from.

        Args:
            kind: Theirs.
            field_selector: What the server leaves out.
            keep: What else is left out, page by page: a cluster may have more claims than the plugin has memory.
        """
        asked = f"list {kind.plural}"
        items: list[Object] = []
        more: dict[str, str] = {"fieldSelector": field_selector} if field_selector else {}
        while True:
            query = {**more, "limit": str(_PAGE)}
            status, body, reason = self._call("GET", self._path(kind), query, asked=asked)
            if status != 200:
                raise self._refusal(kind, "list", asked, status, body, reason)
            page = (self._shaped(kind, each) for each in mappings(mapping(body).get("items")))
            items.extend(filter(keep, page))
            metadata = mapping(mapping(body).get("metadata"))
            if not text(metadata.get("continue")):
                return items, text(metadata.get("resourceVersion"))
            more["continue"] = text(metadata.get("continue"))

    def watch(self, kind: Kind, since: str, *, field_selector: str = "") -> Watching:
        """What happens to objects of a kind after *since*."""
        query = {
            "watch": "true",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH),
            **({"fieldSelector": field_selector} if field_selector else {}),
        }
        path = self._path(kind)
        return Watching(
            self._wire,
            path,
            query,
            kind=kind,
            seconds=_WATCH + 10.0,
            shape=lambda each: self._shaped(kind, each),
        )

    def create(self, kind: Kind, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Make an object.

        Args:
            kind: Its kind.
            manifest: It; with `generateName`, a request that got no answer may have made one.
            dry_run: Only say what would be made.
        """
        metadata = mapping(manifest.get("metadata"))
        name = text(metadata.get("name")) or text(metadata.get("generateName"))
        namespace = text(metadata.get("namespace"))
        asked = f"create {kind.name} {_full(namespace, name)}"
        query = {"dryRun": "All"} if dry_run else {}
        body = self._unshaped(kind, manifest)
        return self._object(
            kind, "create", asked, *self._call("POST", self._path(kind, namespace), query, body, asked=asked)
        )

    def update(self, kind: Kind, manifest: Mapping[str, Any]) -> Object:
        """Put an object in the place of the one that it was read from: its `resourceVersion` has to be the last."""
        metadata = mapping(manifest.get("metadata"))
        namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
        asked = f"update {kind.name} {_full(namespace, name)}"
        path = self._path(kind, namespace, name)
        body = self._unshaped(kind, manifest)
        return self._object(kind, "update", asked, *self._call("PUT", path, {}, body, asked=asked))

    def apply_status(self, kind: Kind, manifest: Mapping[str, Any], *, manager: str) -> Object:
        """Say, as *manager*, what of an object's status is so (server-side apply); what others say stays."""
        metadata = mapping(manifest.get("metadata"))
        namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
        asked = f"patch {kind.name} {_full(namespace, name)} status"
        path = f"{self._path(kind, namespace, name)}/status"
        query = {"fieldManager": manager, "force": "true"}
        body = self._unshaped(kind, manifest)
        call = self._call(
            "PATCH", path, query, body, asked=asked, content_type="application/apply-patch+yaml"
        )
        return self._object(kind, "patch", asked, *call)

    def delete(self, kind: Kind, item: Mapping[str, Any]) -> None:
        """Delete the very object that *item* is, unchanged; one that is gone is no error."""
        metadata = mapping(item.get("metadata"))
        namespace, name = text(metadata.get("namespace")), text(metadata.get("name"))
        asked = f"delete {kind.name} {_full(namespace, name)}"
        conditions = {"uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        path = self._path(kind, namespace, name)
        status, said, reason = self._call("DELETE", path, {}, body, asked=asked)
        if status not in (200, 202, 404):
            raise self._refusal(kind, "delete", asked, status, said, reason)

    def _path(self, kind: Kind, namespace: str = "", name: str = "") -> str:
        path = kind.path(self.version(kind), namespace)
        return f"{path}/{name}" if name else path

    def _object(self, kind: Kind, verb: str, asked: str, status: int, body: Any, reason: str) -> Object:
        if status not in (200, 201):
            raise self._refusal(kind, verb, asked, status, body, reason)
        return self._shaped(kind, mapping(body))

    def _refusal(self, kind: Kind, verb: str, asked: str, status: int, said: Any, reason: str) -> ApiError:
        if status == 404 and reason != "NotFound":
            # No such path: the server has other versions than it had.
            self.forget()
        return refused(asked, kind, verb, status, str(said), reason)

    def _shaped(self, kind: Kind, item: Mapping[str, Any]) -> Object:
        return _in_version(kind, self.version(kind), item, "v1")

    def _unshaped(self, kind: Kind, item: Mapping[str, Any]) -> Object:
        return _in_version(kind, "v1", item, self.version(kind))

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        asked: str,
        content_type: str = "application/json",
    ) -> tuple[int, Any, str]:
        """Status, the body or the server's words, and its reason for a refusal."""
        content = json.dumps(body).encode() if body is not None else None
        until = time.monotonic() + _BUDGET
        number = 0
        while True:
            try:
                with self._wire.ask(
                    method, path, query or {}, read=_READ, body=content, content_type=content_type
                ) as response:
                    status, pause = response.status, pause_of(response.headers.get("Retry-After"), number)
                    answer = self._wire.body(response, path)
            except ClusterError as error:
                failure = of_cluster(asked, error)
                if method != "GET" or failure.status:
                    raise failure from error
                status, pause, answer = 0, pause_of(None, number), b""
            # What was written may be there though the answer says that the server failed: who wrote looks first.
            again = status in BUSY or not status if method == "GET" else status == _TOO_MANY
            if not again or time.monotonic() + pause > until or self._closed.wait(pause):
                if not status:
                    raise failure
                return status, *_read(answer, status)
            number += 1


def _read(answer: bytes, status: int) -> tuple[Any, str]:
    try:
        body = json.loads(answer)
    except (ValueError, RecursionError):
        return answer[:200].decode("utf-8", "replace"), ""
    if status < 400:
        return body, ""
    return text(mapping(body).get("message")) or str(body)[:200], text(mapping(body).get("reason"))


def _in_version(kind: Kind, source: str, item: Mapping[str, Any], target: str) -> Object:
    whole = {**item, "apiVersion": kind.api_version(source), "kind": kind.name}
    if source == target or kind.group != RESOURCE_GROUP:
        return whole
    # Not at the top: servers of 1.34 and newer have v1, and the plugin starts faster without.
    from dra_infra.model.versions import convert

    return convert(whole, target).manifest


def _full(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name


def _no_version(said: object) -> Problem:
    return Problem(path="/version", code="cluster-answer", message=f"it says no version: {str(said)[:100]}")
