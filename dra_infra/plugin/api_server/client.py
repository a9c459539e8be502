"""The few requests that the plugin makes to the API server, on the connections of `dra_infra.cluster`.

Objects go in and come out in the shape of resource.k8s.io/v1, whichever version the server has.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from dra_infra.cluster.accounts import Account
from dra_infra.cluster.kinds import RESOURCE_GROUP, Kind
from dra_infra.cluster.objects import mapping, mappings, text
from dra_infra.plugin.api_server.asking import Answer, Asking
from dra_infra.plugin.api_server.refusals import ApiError, refused
from dra_infra.plugin.api_server.served import Served
from dra_infra.plugin.api_server.watch import Watching

Object = dict[str, Any]

_PAGE: Final = 500
_WATCH: Final = (230, 290)
"""Seconds for which a watch is asked, at least and at most: proxies end silent connections after five minutes, and watches
that began in one moment, behind a restart, shall not all end in one."""


class Api:
    """One API server, asked as one account; safe to use from several threads.

    Every request raises `ApiError` (`api-unreachable`, `api-unauthorized`, `api-forbidden`, `api-refused`,
    `kind-not-served`), with what was asked as the path.

    Args:
        account: From `dra_infra.cluster.kubeconfig.find_account`: of a kubeconfig, or of the pod.
        environment: May name proxies.
        clock: As of `Asking`; so is *wait*.
    """

    def __init__(
        self,
        account: Account,
        environment: Mapping[str, str] = os.environ,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._asking = Asking(account, environment, clock=clock, wait=wait)
        self._served = Served(self._asking)
        # Parts of this that others do.
        self.close = self._asking.close
        self.forget = self._served.forget
        self.version = self._served.version
        self.minor = self._served.minor
        self.is_another = self._served.is_another

    def get(self, kind: Kind, name: str, namespace: str = "") -> Object | None:
        """An object, or None where there is none of that name."""
        asked = f"get {kind.name} {_full(namespace, name)}"
        answer = self._asking.ask("GET", self._path(kind, namespace, name), asked=asked)
        if answer.status == 404 and answer.reason == "NotFound":
            return None
        return self._object(kind, "get", asked, answer)

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
            answer = self._asking.ask("GET", self._path(kind), query, asked=asked)
            if answer.status != 200:
                raise self._refusal(kind, "list", asked, answer)
            page = (self._shaped(kind, each) for each in mappings(mapping(answer.body).get("items")))
            items.extend(filter(keep, page))
            metadata = mapping(mapping(answer.body).get("metadata"))
            if not text(metadata.get("continue")):
                return items, text(metadata.get("resourceVersion"))
            more["continue"] = text(metadata.get("continue"))

    def watch(self, kind: Kind, since: str, *, field_selector: str = "") -> Watching:
        """What happens to objects of a kind after *since*."""
        seconds = random.randint(*_WATCH)  # noqa: S311
        query = {
            "watch": "true",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **({"fieldSelector": field_selector} if field_selector else {}),
        }
        path = self._path(kind)
        return Watching(
            self._asking.wire,
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
        asked = f"create {kind.name} {_full(namespace, name)}"
        query = {"dryRun": "All"} if dry_run else {}
        body = self._unshaped(kind, manifest)
        answer = self._asking.ask("POST", self._path(kind, namespace), query, body, asked=asked)
        return self._object(kind, "create", asked, answer)

    def update(self, kind: Kind, manifest: Mapping[str, Any]) -> Object:
        """Put an object in the place of the one that it was read from: its `resourceVersion` has to be the last."""
        namespace, name = _names(manifest)
        asked = f"update {kind.name} {_full(namespace, name)}"
        path, body = self._path(kind, namespace, name), self._unshaped(kind, manifest)
        return self._object(kind, "update", asked, self._asking.ask("PUT", path, {}, body, asked=asked))

    def apply_status(self, kind: Kind, manifest: Mapping[str, Any], *, manager: str) -> Object:
        """Say, as *manager*, what of an object's status is so (server-side apply); what others say stays.

        All that the same manager said before and that *manifest* does not say is taken back. So it should have the
        `resourceVersion` of what it was made from: where another instance was quicker, the server says 409.
        """
        namespace, name = _names(manifest)
        asked = f"patch {kind.name} {_full(namespace, name)} status"
        path = f"{self._path(kind, namespace, name)}/status"
        query = {"fieldManager": manager, "force": "true"}
        body, form = self._unshaped(kind, manifest), "application/apply-patch+yaml"
        answer = self._asking.ask("PATCH", path, query, body, asked=asked, content_type=form)
        return self._object(kind, "patch", asked, answer)

    def delete(self, kind: Kind, item: Mapping[str, Any]) -> None:
        """Delete the very object that *item* is, unchanged; one that is gone is no error."""
        metadata = mapping(item.get("metadata"))
        namespace, name = _names(item)
        asked = f"delete {kind.name} {_full(namespace, name)}"
        conditions = {"uid": metadata.get("uid"), "resourceVersion": metadata.get("resourceVersion")}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        answer = self._asking.ask("DELETE", self._path(kind, namespace, name), {}, body, asked=asked)
        if answer.status not in (200, 202, 404):
            raise self._refusal(kind, "delete", asked, answer)

    def _path(self, kind: Kind, namespace: str = "", name: str = "") -> str:
        path = kind.path(self.version(kind), namespace)
        return f"{path}/{name}" if name else path

    def _object(self, kind: Kind, verb: str, asked: str, answer: Answer) -> Object:
        if answer.status not in (200, 201):
            raise self._refusal(kind, verb, asked, answer)
        return self._shaped(kind, mapping(answer.body))

    def _refusal(self, kind: Kind, verb: str, asked: str, answer: Answer) -> ApiError:
        status, said, reason, retry_after = answer
        if status == 404 and reason != "NotFound":
            # No such path: the server has other versions than it had.
            self.forget()
        return refused(asked, kind, verb, status, str(said), reason, retry_after=retry_after)

    def _shaped(self, kind: Kind, item: Mapping[str, Any]) -> Object:
        return _in_version(kind, self.version(kind), item, "v1")

    def _unshaped(self, kind: Kind, item: Mapping[str, Any]) -> Object:
        return _in_version(kind, "v1", item, self.version(kind))


def _in_version(kind: Kind, source: str, item: Mapping[str, Any], target: str) -> Object:
    whole = {**item, "apiVersion": kind.api_version(source), "kind": kind.name}
    if source == target or kind.group != RESOURCE_GROUP:
        return whole
    # Not at the top: servers of 1.34 and newer have v1, and the plugin starts faster without.
    from dra_infra.model.versions import convert

    return convert(whole, target).manifest


def _names(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = mapping(item.get("metadata"))
    return text(metadata.get("namespace")), text(metadata.get("name"))


def _full(namespace: str, name: str) -> str:
    return f"{namespace}/{name}" if namespace else name
