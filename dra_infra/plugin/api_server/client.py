"""The few requests that the plugin makes to the API server, on the connections of `dra_infra.client`.

Objects go in and come out in the shape of resource.k8s.io/v1, whichever version the server has. The server's release,
and the versions of resource.k8s.io that it has, are asked for once, and anew when it may be another. A watch gives what
happens to objects of one kind, until the server ends it or somebody stops it.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

import urllib3

from dra_infra.client.kinds import RESOURCE_GROUP, Kind
from dra_infra.client.kubeconfig import Account
from dra_infra.client.objects import text
from dra_infra.client.transport import Transport, read_retry_after
from dra_infra.errors import ClusterError
from dra_infra.kubernetes.api.manifests import mapping, mappings
from dra_infra.plugin.api_server.refusals import ApiError, from_cluster_error, not_served, refused
from dra_infra.plugin.api_server.requests import Answer, Contact, RequestSender


def _minor(release: Mapping[str, Any]) -> int:
    # An emulated one decides what is accepted; clouds write `34+`.
    digits = (text(release.get("emulationMinor")) or text(release.get("minor"))).rstrip("+")
    return int(digits) if digits.isdigit() else 0


EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
Event = tuple[EventType, dict[str, Any]]

_TYPES: Final[Mapping[str, EventType]] = {
    "ADDED": "ADDED",
    "MODIFIED": "MODIFIED",
    "DELETED": "DELETED",
    "BOOKMARK": "BOOKMARK",
}
_GONE: Final = 410


class Watch:
    """Iterate over it for the events; it ends without an error where the server ends it, or the connection is lost.

    Iterating raises `ApiError`; status 410 means that its beginning is too old, and that everything has to be listed.
    """

    def __init__(
        self,
        transport: Transport,
        contact: Contact,
        path: str,
        query: Mapping[str, str],
        *,
        kind: Kind,
        seconds: float,
        shape: Callable[[Mapping[str, Any]], dict[str, Any]],
    ) -> None:
        self._transport = transport
        self._contact = contact
        self._path = path
        self._query = query
        self._kind = kind
        self._seconds = seconds
        self._shape = shape
        self._response: urllib3.BaseHTTPResponse | None = None
        self._stopped = False

    def stop(self) -> None:
        """End it, from any thread."""
        self._stopped = True
        response = self._response
        if response is not None:
            try:
                response.shutdown()
            except (ValueError, OSError, RuntimeError):
                # It has ended by itself.
                return

    def __iter__(self) -> Iterator[Event]:
        """Each event as it comes."""
        request = f"watch {self._kind.plural}"
        try:
            with self._transport.request(
                "GET", self._path, self._query, read_timeout=self._seconds
            ) as response:
                self._response = response
                if self._stopped:
                    return
                if response.status != 200:
                    said = self._transport.body(response, self._path).decode("utf-8", "replace")
                    pause = read_retry_after(response.headers.get("Retry-After"))
                    status, words = response.status, _message(said)
                    raise refused(request, self._kind, "watch", status, words, retry_after=pause)
                self._contact.answered()
                for line in self._transport.lines(response, self._path):
                    if self._stopped:
                        return
                    yield self._event(request, line)
        except ClusterError as error:
            failure = from_cluster_error(request, error)
            self._contact.failed(failure.problems[0].message, ours=failure.may_be_ours)
            raise failure from error
        finally:
            self._response = None

    def _event(self, request: str, line: bytes) -> Event:
        try:
            event = mapping(json.loads(line))
        except (ValueError, RecursionError):
            event = {}
        item = mapping(event.get("object"))
        type_ = _TYPES.get(text(event.get("type")))
        if type_ is None:
            # ERROR, or what is no event at all: from here on nothing is sure.
            status = item.get("code")
            said = text(item.get("message")) or "no event"
            code = status if isinstance(status, int) else _GONE
            raise refused(request, self._kind, "watch", code, said)
        return type_, dict(item) if type_ == "BOOKMARK" else self._shape(item)


def _message(said: str) -> str:
    try:
        return text(mapping(json.loads(said)).get("message")) or said
    except (ValueError, RecursionError):
        return said


Object = dict[str, Any]

_PAGE: Final = 500
_WATCH: Final = (230, 290)
"""Seconds for which a watch is asked for, at least and at most: proxies end silent connections after five minutes, and watches
that began in one moment, behind a restart, shall not all end in one."""


class Api:
    """One API server, asked as one account; safe to use from several threads.

    Every request raises `ApiError` (`api-unreachable`, `api-untrusted`, `api-unauthorized`, `api-no-credentials`,
    `api-forbidden`, `api-refused`, `kind-not-served`), with the request as the path.

    Args:
        account: From `dra_infra.client.kubeconfig.find_account`: of a kubeconfig, or of the pod.
        environment: May name proxies.
        clock: As of `RequestSender`; so is *wait*.
    """

    def __init__(
        self,
        account: Account,
        environment: Mapping[str, str] = os.environ,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._sender = RequestSender(account, environment, clock=clock, wait=wait)
        self._version = ""
        self._release: Mapping[str, Any] = {}
        self.contact = self._sender.contact
        self.close = self._sender.close

    def forget(self) -> None:
        """Forget its version and release: it may be another one since it was away."""
        self._version, self._release = "", {}

    def version(self, kind: Kind) -> str:
        """The best version of a kind that the server has; of resource.k8s.io it is asked for once."""
        if kind.group != RESOURCE_GROUP:
            return kind.versions[0]
        # What another thread forgets meanwhile is still an answer.
        found = self._version
        if not found:
            found = self._version = self._find_version(kind)
        return found

    def minor(self) -> int:
        """The minor release that the server behaves like, 37 for 1.37, asked for once."""
        release = self._release
        if not release:
            answer = self._sender.send("GET", "/version", request="get /version")
            release = mapping(answer.body)
            if answer.status != 200 or not _minor(release):
                message = f"it says no version: {str(answer.body)[:100]}"
                error = ClusterError.of(path="/version", code="cluster-answer", message=message)
                raise from_cluster_error("get /version", error)
            self._release = release
        return _minor(release)

    def is_another(self) -> bool:
        """Ask for the version again; true where it is another release, and what was known of the last one is forgotten.

        One small question; a server that does not answer it is none that changed.
        """
        before = self._release
        if not before:
            return False
        try:
            answer = self._sender.send("GET", "/version", request="get /version", once=True)
        except ApiError:
            return False
        if answer.status != 200 or mapping(answer.body) == before:
            return False
        self.forget()
        return True

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """An object, or None where there is none of that name."""
        request = f"get {kind.name} {_full(namespace, name)}"
        answer = self._sender.send("GET", self._path(kind, namespace, name), request=request)
        if answer.status == 404 and answer.reason == "NotFound":
            return None
        return self._object(kind, "get", request, answer)

    def list(
        self, kind: Kind, *, field_selector: str = "", keep: Callable[[Object], bool] = lambda _: True
    ) -> tuple[list[Object], str]:
        """Objects of a kind, and the resource version to watch them from.

        Args:
            kind: Theirs.
            field_selector: What the server leaves out.
            keep: What else is left out, page by page: a cluster may have more claims than the plugin has memory.
        """
        request = f"list {kind.plural}"
        items: list[Object] = []
        more: dict[str, str] = {"fieldSelector": field_selector} if field_selector else {}
        while True:
            query = {**more, "limit": str(_PAGE)}
            answer = self._sender.send("GET", self._path(kind), query, request=request)
            if answer.status != 200:
                raise self._refusal(kind, "list", request, answer)
            page = (self._shaped(kind, each) for each in mappings(mapping(answer.body).get("items")))
            items.extend(filter(keep, page))
            metadata = mapping(mapping(answer.body).get("metadata"))
            if not text(metadata.get("continue")):
                return items, text(metadata.get("resourceVersion"))
            more["continue"] = text(metadata.get("continue"))

    def watch(self, kind: Kind, since: str, *, field_selector: str = "") -> Watch:
        """Watch the objects of a kind from the resource version *since*."""
        seconds = random.randint(*_WATCH)  # noqa: S311
        query = {
            "watch": "true",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **({"fieldSelector": field_selector} if field_selector else {}),
        }
        path = self._path(kind)
        return Watch(
            self._sender.transport,
            self.contact,
            path,
            query,
            kind=kind,
            seconds=seconds + 10.0,
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
        request = f"create {kind.name} {_full(namespace, name)}"
        query = {"dryRun": "All"} if dry_run else {}
        body = self._unshaped(kind, manifest)
        answer = self._sender.send("POST", self._path(kind, namespace), query, body, request=request)
        return self._object(kind, "create", request, answer)

    def update(self, kind: Kind, manifest: Mapping[str, Any]) -> Object:
        """Put an object in the place of the one that it was read from: its `resourceVersion` has to be the last."""
        namespace, name = _names(manifest)
        request = f"update {kind.name} {_full(namespace, name)}"
        path, body = self._path(kind, namespace, name), self._unshaped(kind, manifest)
        return self._object(
            kind, "update", request, self._sender.send("PUT", path, {}, body, request=request)
        )

    def apply_status(self, kind: Kind, manifest: Mapping[str, Any], *, manager: str) -> Object:
        """Say, as *manager*, what of an object's status is so (server-side apply); what others say stays.

        All that the same manager said before and that *manifest* does not say is taken back. So it should have the
        `resourceVersion` of what it was made from: where another instance was quicker, the server says 409.
        """
        namespace, name = _names(manifest)
        request = f"patch {kind.name} {_full(namespace, name)} status"
        path = f"{self._path(kind, namespace, name)}/status"
        query = {"fieldManager": manager, "force": "true"}
        body, form = self._unshaped(kind, manifest), "application/apply-patch+yaml"
        answer = self._sender.send("PATCH", path, query, body, request=request, content_type=form)
        return self._object(kind, "patch", request, answer)

    def delete(self, kind: Kind, item: Mapping[str, Any]) -> None:
        """Delete the very object that *item* is, unchanged; one that is gone is no error."""
        metadata = mapping(item.get("metadata"))
        namespace, name = _names(item)
        request = f"delete {kind.name} {_full(namespace, name)}"
        conditions = {"uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        answer = self._sender.send("DELETE", self._path(kind, namespace, name), {}, body, request=request)
        if answer.status not in (200, 202, 404):
            raise self._refusal(kind, "delete", request, answer)

    def _find_version(self, kind: Kind) -> str:
        for version in kind.versions:
            path = f"/apis/{RESOURCE_GROUP}/{version}"
            request = f"get {path}"
            answer = self._sender.send("GET", path, request=request)
            if answer.status not in (200, 404):
                raise self._refusal(kind, "get", request, answer)
            served = {text(each.get("name")) for each in mappings(mapping(answer.body).get("resources"))}
            # Versions are served that hold other kinds alone.
            if answer.status == 200 and {"resourceslices", "resourceclaims"} <= served:
                return version
        raise not_served(kind)

    def _path(self, kind: Kind, namespace: str = "", name: str = "") -> str:
        path = kind.path(self.version(kind), namespace)
        return f"{path}/{name}" if name else path

    def _object(self, kind: Kind, verb: str, request: str, answer: Answer) -> Object:
        if answer.status not in (200, 201):
            raise self._refusal(kind, verb, request, answer)
        return self._shaped(kind, mapping(answer.body))

    def _refusal(self, kind: Kind, verb: str, request: str, answer: Answer) -> ApiError:
        status, said, reason, retry_after = answer
        if status == 404 and reason != "NotFound":
            # No such path: the server has other versions than it had.
            self.forget()
        return refused(request, kind, verb, status, str(said), reason, retry_after=retry_after)

    def _shaped(self, kind: Kind, item: Mapping[str, Any]) -> Object:
        return _in_version(kind, self.version(kind), item, "v1")

    def _unshaped(self, kind: Kind, item: Mapping[str, Any]) -> Object:
        return _in_version(kind, "v1", item, self.version(kind))


def _in_version(kind: Kind, source: str, item: Mapping[str, Any], target: str) -> Object:
    whole = {**item, "apiVersion": kind.api_version(source), "kind": kind.name}
    if source == target or kind.group != RESOURCE_GROUP:
        return whole
    # Late: it takes 0.9 MiB and 21 ms, and servers of 1.34 and newer have v1.
    from dra_infra.kubernetes.api.versions import convert

    return convert(whole, target)


def _names(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _full(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
