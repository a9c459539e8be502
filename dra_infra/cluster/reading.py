"""Lists of whole kinds: by pages, in the best version that is served, and what could not be seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dra_infra.cluster.kinds import RESOURCE_GROUP, Kind
from dra_infra.cluster.refusals import shorten, strange_answer
from dra_infra.cluster.session import Session
from dra_infra.errors import Problem
from dra_infra.model.decoding import can_decode
from dra_infra.model.versions import convert

PAGE: Final = 500
"""Objects of one request, as kubectl asks for them."""

_RESTARTS: Final = 2
"""Times that a list is begun again by pages; then it is asked for in one piece, which cannot run out (client-go's pager)."""

_NAMES_ONLY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.5"


@dataclass(frozen=True, kw_only=True, slots=True)
class Listing:
    """What was read of a kind.

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
        """Whether any of it could be read."""
        return bool(self.version)


class _ExpiredError(Exception):
    """410: what the pages are of is gone from the server's history."""


class Reader:
    """Lists kinds of one cluster.

    Args:
        session: Asks it.
        namespaces: Those that are read; empty for all.
        tell: Is told what is read.
    """

    def __init__(
        self,
        session: Session,
        *,
        namespaces: Sequence[str] = (),
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.session = session
        self.namespaces = tuple(dict.fromkeys(namespaces))
        self._tell = tell

    def list(self, kind: Kind, *, names_only: bool = False, field_selector: str = "") -> Listing:
        """All objects of a kind, in the first of its versions that is served.

        Args:
            kind: It.
            names_only: Leave out all but the metadata.
            field_selector: Of the server.

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
            items=tuple(sorted(items, key=_place)),
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
            items.extend(each for each in body.get("items") or [] if isinstance(each, dict))
            metadata = body.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            if not metadata.get("continue"):
                return status, items, str(metadata.get("resourceVersion", ""))
            more = {"continue": str(metadata["continue"])}


def as_object(item: Mapping[str, Any], kind: Kind, version: str) -> dict[str, Any]:
    """One item of a list or watch with its kind, in the shape of v1 where that is another."""
    whole = {**item, "apiVersion": kind.api_version(version), "kind": kind.name}
    if version != "v1" and kind.group == RESOURCE_GROUP and can_decode(whole):
        return convert(whole, "v1").manifest
    return whole


def _as_objects(
    items: Sequence[Mapping[str, Any]], kind: Kind, version: str, *, names_only: bool
) -> Iterator[dict[str, Any]]:
    for item in items:
        if names_only:
            item = {"metadata": item.get("metadata")}  # noqa: PLW2901  (a server may send whole objects all the same)
        yield as_object(item, kind, version)


def _place(item: Mapping[str, Any]) -> tuple[str, str]:
    metadata = item.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return str(metadata.get("namespace") or ""), str(metadata.get("name"))


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
