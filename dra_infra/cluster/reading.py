"""Lists of whole kinds: by pages, in the best version that is served, and what could not be seen.

The cluster is the one that `--kubeconfig` and `--context` mean.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from dra_infra.client.kinds import RESOURCE_GROUP, Kind
from dra_infra.client.kubeconfig import REQUEST_TIMEOUT, find_account
from dra_infra.client.objects import is_object, namespaced_name, text
from dra_infra.client.refusals import shorten, strange_answer
from dra_infra.client.session import Session
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import can_decode, convert, mapping, mappings, value_at

PAGE: Final = 500
"""Objects of one request, as kubectl asks for them."""

MOST_PAGES: Final = 20_000
"""Pages of everything that one reader lists: ten million objects."""

MOST_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Likewise, of bodies: a snapshot of 40,000 GPUs takes a hundredth."""

MOST_SECONDS: Final = 1_800.0
"""Likewise, from the first list on: a server that has not told everything by then never will."""

_RESTARTS: Final = 2
"""Times that a list is begun again by pages; then it is asked for in one piece, which cannot run out (client-go's pager)."""

_WORD: Final = re.compile("[a-z][a-z0-9]{0,62}")
"""A version, or the plural of a kind; subresources are none."""

_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.5"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """The objects of a kind, as they were listed.

    Args:
        kind: It.
        items: Objects in the shape of the best version, by namespace and name; empty where nothing could be seen.
        version: The version that was asked for; empty where nothing could be seen.
        resource_version: How new it is, by namespace; all namespaces are "".
        problems: Why some of it, or all, could not be seen.
    """

    kind: Kind
    items: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    version: str = ""
    resource_versions: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def is_seen(self) -> bool:
        """True where any of it could be read."""
        return bool(self.version)


class _ExpiredError(Exception):
    """410: what the pages are of is gone from the server's history."""


class Reader:
    """Lists kinds of one cluster.

    Args:
        session: Asks it.
        namespaces: Those that are read; empty for all.
        request_timeout: Seconds of silence after which a request is given up.
        tell: Is told what is read.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        session: Session,
        *,
        namespaces: Sequence[str] = (),
        tell: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session = session
        self._clock = clock
        self._began: float | None = None
        self._pages = 0
        # A session lasts for all polls of a watch, and each has a reader of its own.
        self._read_before = session.bytes_read
        self.namespaces = tuple(dict.fromkeys(namespaces))
        self._tell = tell

    def list(self, kind: Kind, *, names_only: bool = False, field_selector: str = "") -> Listing:
        """All objects of a kind, in the first of its versions that is served.

        Raises:
            ClusterError: The codes of `Session`; a kind that is not served or may not be read is in `problems`.
        """
        for version in kind.versions:
            found = self._list_version(kind, version, names_only=names_only, field_selector=field_selector)
            if found is not None:
                return found
        message = (
            f"the cluster serves no {kind.plural} as {' or '.join(map(kind.api_version, kind.versions))}"
        )
        return Listing(kind=kind, problems=(_not_seen(kind, "kind-not-served", message, _served_hint(kind)),))

    def find_kinds(self, wanted: Collection[tuple[str, str]]) -> Iterator[Kind]:
        """Returns the kinds of *wanted*, by group and name, that the cluster serves, each in the version that it prefers.

        Raises:
            ClusterError: The codes of `Session`, `cluster-answer` too where it does not say what it serves.
        """
        groups = {text(each.get("name")): each for each in mappings(self._look_up("/apis").get("groups"))}
        for group in sorted({group for group, _ in wanted}):
            version = text(value_at(groups.get(group), "preferredVersion", "version")) if group else "v1"
            path = f"/apis/{group}/{version}" if group else "/api/v1"
            kind = partial(Kind, group=group, versions=(version,), needed_for="which of them ask for devices")
            for each in mappings(self._look_up(path).get("resources") if _WORD.fullmatch(version) else ()):
                name, plural = text(each.get("kind")), text(each.get("name"))
                if (group, name) in wanted and _WORD.fullmatch(plural):
                    yield kind(name=name, plural=plural, namespaced=each.get("namespaced") is True)

    def _look_up(self, path: str) -> Mapping[str, Any]:
        status, found = self.session.get_json(path)
        if status not in (200, 404):
            raise strange_answer(self.session.account.server, path, f"{status} {found}")
        return mapping(found)

    def _list_version(
        self, kind: Kind, version: str, *, names_only: bool, field_selector: str
    ) -> Listing | None:
        query = {"fieldSelector": field_selector} if field_selector else {}
        items: list[dict[str, Any]] = []
        versions: dict[str, str] = {}
        problems: list[Problem] = []
        for namespace in self.namespaces if kind.namespaced and self.namespaces else ("",):
            status, found, seen = self._list_path(
                kind, kind.path(version, namespace), query, names_only=names_only
            )
            if status == 404:
                return None
            if status == 403:
                problems.append(_forbidden(kind, namespace, str(found)))
                continue
            versions[namespace] = seen
            items.extend(_as_objects(found, kind, version, names_only=names_only))
        return Listing(
            kind=kind,
            items=tuple(sorted(items, key=namespaced_name)),
            version=version if versions else "",
            resource_versions=versions,
            problems=tuple(problems),
        )

    def _list_path(
        self, kind: Kind, path: str, query: Mapping[str, str], *, names_only: bool
    ) -> tuple[int, Any, str]:
        """Status, the items or the server's words, and the resource version."""
        for number in range(_RESTARTS + 1):
            limit = {"limit": str(PAGE)} if number < _RESTARTS else {}
            try:
                return self._list_pages(kind, path, {**query, **limit}, names_only=names_only)
            except _ExpiredError:
                continue
        raise strange_answer(self.session.account.server, path, "410 to a list of everything")

    def _list_pages(
        self, kind: Kind, path: str, query: Mapping[str, str], *, names_only: bool
    ) -> tuple[int, Any, str]:
        items: list[Any] = []
        more: dict[str, str] = {}
        while True:
            self._tell(f"reading {kind.plural}{f' ({len(items):,})' if items else ''}")
            self._count_page(path)
            accept = _NAMES_ONLY if names_only else "application/json"
            status, body = self.session.get_json(path, {**query, **more}, accept=accept)
            if status == 410:
                raise _ExpiredError
            if status in (403, 404):
                return status, body, ""
            if status != 200 or not isinstance(body, dict) or not isinstance(body.get("items") or [], list):
                raise strange_answer(
                    self.session.account.server, path, f"{status} {body if status != 200 else 'and no list'}"
                )
            page = body.get("items") or []
            if not all(map(is_object, page)):
                raise strange_answer(
                    self.session.account.server, path, "a list with items that are no objects"
                )
            items.extend(page)
            metadata = body.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            if not metadata.get("continue"):
                return status, items, str(metadata.get("resourceVersion", ""))
            following = {"continue": str(metadata["continue"])}
            if following == more:
                raise strange_answer(self.session.account.server, path, "a page that is followed by itself")
            more = following

    def _count_page(self, path: str) -> None:
        """One more page, within the bounds of everything that is read; else raises `cluster-answer`."""
        now = self._clock()
        if self._began is None:
            self._began = now
        self._pages += 1
        spent = now - self._began
        read = self.session.bytes_read - self._read_before
        for is_over, bound in (
            (self._pages > MOST_PAGES, f"more than {MOST_PAGES:,} pages"),
            (read > MOST_BYTES, f"more than {MOST_BYTES >> 20:,} MiB of lists"),
            (spent > MOST_SECONDS, f"lists that do not end in {MOST_SECONDS:g} s"),
        ):
            if is_over:
                raise strange_answer(self.session.account.server, path, bound)


def as_object(item: Mapping[str, Any], kind: Kind, version: str) -> dict[str, Any]:
    """One item of a list or watch with its kind, in the shape of v1 where that is another."""
    whole = {**item, "apiVersion": kind.api_version(version), "kind": kind.name}
    if version != "v1" and kind.group == RESOURCE_GROUP and can_decode(whole):
        return convert(whole, "v1")
    return whole


def _as_objects(
    items: Sequence[Mapping[str, Any]], kind: Kind, version: str, *, names_only: bool
) -> Iterator[dict[str, Any]]:
    for item in items:
        if names_only:
            item = {"metadata": item.get("metadata")}  # noqa: PLW2901  (a server may send whole objects all the same)
        yield as_object(item, kind, version)


def _forbidden(kind: Kind, namespace: str, said: str) -> Problem:
    where = f" in namespace {namespace}" if namespace else ""
    message = f"{kind.plural}{where} may not be listed, so {kind.needed_for} is not known: {shorten(said)}"
    scope = "Role" if namespace else "ClusterRole"
    hint = f"grant it in a {scope}: {kind.rule}"
    if kind.namespaced and not namespace:
        hint += "; or read what you may with --namespace NAME"
    return _not_seen(kind, "cluster-forbidden", message, hint)


def _served_hint(kind: Kind) -> str:
    if kind.group != RESOURCE_GROUP:
        return ""
    if kind.name == "DeviceTaintRule":
        return "nothing is missing, unless you use these rules: Kubernetes 1.37 serves them, older ones with --runtime-config"
    return "Kubernetes 1.34 and newer serve resource.k8s.io/v1; see --runtime-config of the API server"


def _not_seen(kind: Kind, code: str, message: str, hint: str) -> Problem:
    return Problem(path=kind.plural, code=code, message=message, hint=hint, severity="warning")


def open_reader(
    kubeconfig: Path | None,
    context: str | None,
    *,
    namespaces: Sequence[str] = (),
    request_timeout: float = REQUEST_TIMEOUT,
    tell: Callable[[str], None] = lambda _text: None,
) -> Reader:
    """Open a reader of the cluster's objects.

    Args:
        kubeconfig: File; else as kubectl finds it.
        context: Its context; else the current one.
        namespaces: Those that are read; empty for all.
        request_timeout: Seconds of silence after which a request is given up.
        tell: Is told what is read.

    Raises:
        ClusterError: `kubeconfig-unreadable`, `context-not-known`, `cluster-credentials`.
    """
    account = replace(find_account(kubeconfig, context, os.environ), request_timeout=request_timeout)
    return Reader(Session(account), namespaces=namespaces, tell=tell)
