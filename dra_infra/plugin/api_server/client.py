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
from functools import partial
from typing import Any, Final, Literal, TypeVar

import urllib3

from dra_infra.client.kinds import RESOURCE_GROUP, Kind
from dra_infra.client.kubeconfig import Account
from dra_infra.client.objects import text
from dra_infra.client.transport import Transport, read_retry_after
from dra_infra.errors import ClusterError
from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.plugin.api_server.refusals import ApiError, from_cluster_error, not_served, refused, too_long
from dra_infra.plugin.api_server.requests import (
    LARGEST,
    MOST_PARTS,
    Answer,
    Contact,
    LargeAnswers,
    RequestSender,
    count_parts,
)

_RELEASE: Final = (
    "major",
    "minor",
    "emulationMajor",
    "emulationMinor",
    "gitVersion",
    "gitCommit",
    "platform",
)
"""Fields of `/version` by which a server of another release is known."""


def _release(body: object) -> Mapping[str, str]:
    return {key: text(mapping(body).get(key))[:200] for key in _RELEASE}


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
        large_answers: LargeAnswers,
        path: str,
        query: Mapping[str, str],
        *,
        kind: Kind,
        seconds: float,
        shape: Callable[[Mapping[str, Any]], dict[str, Any]],
    ) -> None:
        self._transport = transport
        self._contact = contact
        self._large_answers = large_answers
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
                    status = response.status
                    words = _message(said)
                    raise refused(request, self._kind, "watch", status, words, retry_after=pause)
                self._contact.answered()
                for line in self._transport.lines(response, self._path):
                    if self._stopped:
                        return
                    # Until the event was dealt with.
                    with self._large_answers.turn() as grew:
                        grew(len(line))
                        yield self._event(request, line)
        except ClusterError as error:
            failure = from_cluster_error(request, error)
            self._contact.failed(failure.problems[0].message, ours=failure.may_be_ours)
            raise failure from error
        finally:
            self._response = None

    def _event(self, request: str, line: bytes) -> Event:
        try:
            event = {} if count_parts(line) > MOST_PARTS else mapping(json.loads(line))
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

_Taken = TypeVar("_Taken")

_PAGE: Final = 100
"""Objects of a page: fewer where such a page is too large, down to one, which no API server stores too large."""

_MOST_PAGES: Final = 10_000
_WATCH: Final = (230, 290)
"""Seconds for which a watch is asked for, at least and at most: proxies end silent connections after five minutes, and watches
that began in one moment, behind a restart, shall not all end in one."""


class _Kept:
    """Objects of a list that are kept, as long as they do not take too much memory."""

    def __init__(self, keep: Callable[[Object], bool]) -> None:
        self.items: list[Object] = []
        self.too_much = False
        self._keep = keep
        self._bytes = self._parts = 0

    def add(self, item: Object) -> None:
        """Keep an object, if that is wanted."""
        if not self._keep(item):
            return
        written = json.dumps(item).encode()
        self._bytes += len(written)
        self._parts += count_parts(written)
        self.too_much = self._bytes > 2 * LARGEST or self._parts > MOST_PARTS
        self.items.append(item)


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
        self._version = ""
        self._release = {}

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
            release = self._release = self._sender.send(
                "GET", "/version", request="get /version", take=self._take_release
            )
        return _minor(release)

    def _take_release(self, answer: Answer) -> Mapping[str, str]:
        release = _release(answer.body)
        if answer.status != 200 or not _minor(release):
            message = f"it says no version: {str(answer.body)[:100]}"
            error = ClusterError.of(path="/version", code="cluster-answer", message=message)
            raise from_cluster_error("get /version", error)
        return release

    def is_another(self) -> bool:
        """Ask for the version again; true where it is another release, and what was known of the last one is forgotten.

        One small question; a server that does not answer it is none that changed.
        """
        before = self._release
        if not before:
            return False
        try:
            is_same = self._sender.send(
                "GET",
                "/version",
                request="get /version",
                take=lambda answer: answer.status != 200 or _release(answer.body) == before,
                once=True,
            )
        except ApiError:
            return False
        if is_same:
            return False
        self.forget()
        return True

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """An object, or None where there is none of that name."""
        return self.read(kind, name, namespace, take=lambda item: item)

    def read(
        self, kind: Kind, name: str, namespace: str = "", *, take: Callable[[Object], _Taken]
    ) -> _Taken | None:
        """What *take* returns of an object, which is dropped then; None where there is none of that name.

        An object may take much memory, and several threads read at the same time.
        """
        request = f"get {kind.name} {_full(namespace, name)}"

        def found(answer: Answer) -> _Taken | None:
            if answer.status == 404 and answer.reason == "NotFound":
                return None
            return take(self._object(kind, "get", request, answer))

        return self._sender.send("GET", self._path(kind, namespace, name), request=request, take=found)

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
        kept = _Kept(keep)
        query: dict[str, str] = {"fieldSelector": field_selector} if field_selector else {}
        most = _PAGE
        path = self._path(kind)

        def take(answer: Answer) -> tuple[str, str]:
            if answer.status != 200:
                raise self._refusal(kind, "list", request, answer)
            for each in mappings(mapping(answer.body).get("items")):
                kept.add(self._shaped(kind, each))
                if kept.too_much:
                    raise too_long(request)
            metadata = mapping(mapping(answer.body).get("metadata"))
            return text(metadata.get("continue")), text(metadata.get("resourceVersion"))

        for _ in range(_MOST_PAGES):
            try:
                more, version = self._sender.send(
                    "GET", path, {**query, "limit": str(most)}, request=request, take=take
                )
            except ApiError as error:
                if not error.too_large or most == 1:
                    raise
                most = max(1, most // 10)
                continue
            if not more:
                return kept.items, version
            query["continue"] = more
        raise too_long(request)

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
            self._sender.large_answers,
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
        take = partial(self._object, kind, "create", request)
        return self._sender.send("POST", self._path(kind, namespace), query, body, request=request, take=take)

    def update(self, kind: Kind, manifest: Mapping[str, Any]) -> Object:
        """Put an object in the place of the one that it was read from: its `resourceVersion` has to be the last."""
        namespace, name = _names(manifest)
        request = f"update {kind.name} {_full(namespace, name)}"
        path = self._path(kind, namespace, name)
        body = self._unshaped(kind, manifest)
        take = partial(self._object, kind, "update", request)
        return self._sender.send("PUT", path, {}, body, request=request, take=take)

    def apply_status(self, kind: Kind, manifest: Mapping[str, Any], *, manager: str) -> Object:
        """Say, as *manager*, what of an object's status is so (server-side apply); what others say stays.

        All that the same manager said before and that *manifest* does not say is taken back. So it should have the
        `resourceVersion` of what it was made from: where another instance was quicker, the server says 409.
        """
        namespace, name = _names(manifest)
        request = f"patch {kind.name} {_full(namespace, name)} status"
        path = f"{self._path(kind, namespace, name)}/status"
        query = {"fieldManager": manager, "force": "true"}
        body = self._unshaped(kind, manifest)
        form = "application/apply-patch+yaml"
        take = partial(self._object, kind, "patch", request)
        return self._sender.send("PATCH", path, query, body, request=request, take=take, content_type=form)

    def delete(self, kind: Kind, item: Mapping[str, Any]) -> None:
        """Delete the very object that *item* is, unchanged; one that is gone is no error."""
        metadata = mapping(item.get("metadata"))
        namespace, name = _names(item)
        request = f"delete {kind.name} {_full(namespace, name)}"
        conditions = {"uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}

        def take(answer: Answer) -> None:
            if answer.status not in (200, 202, 404):
                raise self._refusal(kind, "delete", request, answer)

        self._sender.send("DELETE", self._path(kind, namespace, name), {}, body, request=request, take=take)

    def _find_version(self, kind: Kind) -> str:
        for version in kind.versions:
            path = f"/apis/{RESOURCE_GROUP}/{version}"
            request = f"get {path}"
            if self._sender.send("GET", path, request=request, take=partial(self._serves, kind, request)):
                return version
        raise not_served(kind)

    def _serves(self, kind: Kind, request: str, answer: Answer) -> bool:
        if answer.status not in (200, 404):
            raise self._refusal(kind, "get", request, answer)
        served = {text(each.get("name")) for each in mappings(mapping(answer.body).get("resources"))}
        # A version may be served that has other kinds alone.
        return answer.status == 200 and {"resourceslices", "resourceclaims"} <= served

    def _path(self, kind: Kind, namespace: str = "", name: str = "") -> str:
        path = kind.path(self.version(kind), namespace)
        return f"{path}/{name}" if name else path

    def _object(self, kind: Kind, verb: str, request: str, answer: Answer) -> Object:
        if answer.status not in (200, 201):
            raise self._refusal(kind, verb, request, answer)
        return self._shaped(kind, mapping(answer.body))

    def _refusal(self, kind: Kind, verb: str, request: str, answer: Answer) -> ApiError:
        status, said, reason, retry_after, _ = answer
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
    from dra_infra.kubernetes.api import convert

    return convert(whole, target)


def _names(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _full(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
