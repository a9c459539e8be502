"""A cluster that is really upgraded: the API servers of several minors, one after the other, on one etcd.

Each minor stores objects of its own. Every later minor is asked what became of them, and the answers are compared with what
`dra_infra.upgrades` predicts.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dra_infra.kubernetes.api import ObjectRef, Release
from dra_infra.target import ClusterTarget
from dra_infra.upgrades.objects import ComparedObject, Fate, find_fate, find_stored_fate, is_judged
from tests.support.parity import generation
from tests.support.parity.cases import NAMESPACES, RESOURCES, Case, Object
from tests.support.parity.server import Server
from tools.cluster import components as parts
from tools.cluster.api_server import WHOLE_CONTROL_PLANE
from tools.cluster.control_plane import ControlPlane

_OPAQUE: Final = ("parameters", "data")
_SERVER_SET: Final = (
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "uid",
)
_REF: Final = ObjectRef("object", "drawn")


@dataclass(frozen=True, kw_only=True)
class StoredCase:
    """An object that a minor was asked to store.

    Args:
        case: The object, under a name of its own.
        minor: The minor.
        is_stored: Whether the server accepted it.
        stored: As the server returned it; None where it refused it.
        is_applied: Whether the server accepts the same manifest once more.
    """

    case: Case
    minor: str
    is_stored: bool
    stored: Object | None
    is_applied: bool


class UpgradedCluster:
    """One etcd, and the API server of the minor that the cluster has at the moment.

    Args:
        minor: The first minor.
        binaries: Finds an executable by its name.
    """

    def __init__(self, minor: str, binaries: Callable[[str], Path]) -> None:
        self.minor = minor
        self._binaries = binaries
        self._plane = ControlPlane(components=(parts.ETCD, parts.APISERVER), binaries=self._find)
        self._closing = contextlib.ExitStack()
        self.server: Server

    def __enter__(self) -> UpgradedCluster:
        self._closing.enter_context(self._plane)
        self._connect()
        for name, labels in NAMESPACES.items():
            self.server.make_namespace(name, labels)
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def upgrade(self, minor: str) -> None:
        """Replace the API server by that of a newer minor."""
        self.server.close()
        with self._plane.without(parts.APISERVER):
            self.minor = minor
        self._connect()

    def _connect(self) -> None:
        self.server = Server(self.minor, "default", self._plane.connection)
        self._closing.callback(self.server.close)

    def _find(self, name: str) -> Path:
        is_plain = name == parts.ETCD or self.minor == WHOLE_CONTROL_PLANE
        return self._binaries(name if is_plain else f"{name}-{self.minor}")

    def read_storage_hashes(self, version: str) -> dict[str, str]:
        """Return the hash of the version in etcd by plural, as discovery has it."""
        listed = self.server.read_raw(f"/apis/resource.k8s.io/{version}") or {}
        return {
            each["name"]: each["storageVersionHash"]
            for each in listed.get("resources", ())
            if "/" not in each["name"]
        }


def storage_hash(kind: str, version: str) -> str:
    """Return what discovery shows for a version in etcd (`StorageVersionHash` in k8s.io/apiserver)."""
    text = f"resource.k8s.io/{version}/{kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def release_of(minor: str) -> Release:
    """Return a minor with the gates that it ships with."""
    return ClusterTarget(kubernetes=minor).releases[0]


def draw_cases(count: int, seed: int, prefix: str) -> Iterator[Case]:
    """Yield generated objects, each under a name of its own."""
    for index, name in enumerate(generation.names(seed, count)):
        case = generation.case(name)
        metadata = case.object.get("metadata")
        if isinstance(metadata, dict):
            # Nobody writes what the server sets, and a manifest that has it cannot be applied twice to any release.
            own = {key: value for key, value in metadata.items() if key not in _SERVER_SET}
            named = {**own, "name": f"{prefix}-{index}"}
            yield Case(id=name, object={**case.object, "metadata": named}, namespace=case.namespace)


def store(server: Server, case: Case) -> StoredCase:
    """Ask a server to store an object, and whether it would take the same manifest once more."""
    if case.kind not in _STORED_KINDS:
        answer = server.answer(case, field_validation="Strict")
        return StoredCase(
            case=case, minor=server.minor, is_stored=answer.is_accepted, stored=None, is_applied=False
        )
    answer = server.answer(case, field_validation="Strict", dry_run=False)
    is_applied = False
    if answer.stored is not None:
        update = Case(id=case.id, object=case.object, namespace=case.namespace, old=answer.stored)
        is_applied = server.answer(update, field_validation="Strict").is_accepted
    return StoredCase(
        case=case,
        minor=server.minor,
        is_stored=answer.is_accepted,
        stored=answer.stored,
        is_applied=is_applied,
    )


_STORED_KINDS: Final = (
    "DeviceClass",
    "DeviceTaintRule",
    "ResourceClaim",
    "ResourceClaimTemplate",
    "ResourceSlice",
)


def compare(server: Server, kept: Sequence[StoredCase]) -> tuple[list[str], dict[str, int]]:
    """Compare what a newer server does with the objects of an older one with what is predicted.

    Returns:
        A line for each difference, and how often each outcome came up.
    """
    found: list[str] = []
    counts: dict[str, int] = {}
    for each in kept:
        older, newer = release_of(each.minor), release_of(server.minor)
        if each.case.kind in _STORED_KINDS and not is_judged(each.case.object, older, newer):
            continue
        if not server.serves(each.case):
            continue
        item = ComparedObject(
            manifest=each.case.object,
            ref=_REF,
            namespace_labels=each.case.namespace_labels,
        )
        fate = find_fate(item, older, newer)
        expected = _predict(fate)
        observed = _observe(server, each)
        if expected != observed:
            found.append(f"{each.case.id} {each.minor} → {server.minor}: predicted {expected}, is {observed}")
        if each.stored is not None:
            # Of what the older server returned, which writes quantities and times in its own way.
            kept = _plain(find_stored_fate(each.stored, newer).kept)
            read = _plain(server.read(_path(each)))
            if read != kept:
                found.append(f"{each.case.id} {each.minor} → {server.minor}: kept {kept}, is {read}")
        for name, value in observed.items():
            counts[f"{name}={value}"] = counts.get(f"{name}={value}", 0) + 1
    return found, counts


def _predict(fate: Fate) -> dict[str, bool]:
    predicted = {"before": fate.before.status == "accepted", "after": fate.after.status == "accepted"}
    if fate.touched is None or fate.applied is None or fate.applied_before is None:
        return predicted
    return {
        **predicted,
        "touched": fate.touched.status == "accepted",
        "applied": fate.applied.status == "accepted",
        "applied before": fate.applied_before.status == "accepted",
    }


def _observe(server: Server, each: StoredCase) -> dict[str, bool]:
    case = each.case
    other = {
        **case.object,
        "metadata": {**case.object["metadata"], "name": f"{case.object['metadata']['name']}-b"},
    }
    created = Case(id=case.id, object=other, namespace=case.namespace)
    observed = {
        "before": each.is_stored,
        "after": server.answer(created, field_validation="Strict").is_accepted,
    }
    if each.stored is None:
        return observed
    read = server.read(_path(each)) or {}
    metadata = read.get("metadata", {})
    touched = {**read, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), "touched": "true"}}}
    answers = {
        name: server.answer(
            Case(id=case.id, object=written, namespace=case.namespace, old=read), field_validation="Strict"
        ).is_accepted
        for name, written in (("touched", touched), ("applied", case.object))
    }
    return {**observed, **answers, "applied before": each.is_applied}


def _path(each: StoredCase) -> str:
    plural, is_namespaced = RESOURCES[each.case.kind]
    root = f"/apis/{each.case.object['apiVersion']}"
    name = each.case.object["metadata"]["name"]
    return (
        f"{root}/namespaces/{each.case.namespace}/{plural}/{name}"
        if is_namespaced
        else f"{root}/{plural}/{name}"
    )


def _plain(value: Any) -> Any:
    """Return an object without what servers write although it is not there, and without its status and server-set metadata."""
    if isinstance(value, dict) and "kind" in value and "metadata" in value:
        metadata = {
            key: item
            for key, item in value["metadata"].items()
            if key in ("labels", "annotations", "name", "finalizers")
        }
        return {
            "apiVersion": value["apiVersion"],
            "kind": value["kind"],
            "metadata": _without_nothing(metadata),
            "spec": _without_nothing(value.get("spec")),
        }
    return _without_nothing(value)


def _without_nothing(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nothing(item) for item in value]
    if not isinstance(value, dict):
        return value
    cleaned = {key: item if key in _OPAQUE else _without_nothing(item) for key, item in value.items()}
    return {key: item for key, item in cleaned.items() if key in _OPAQUE or item not in (None, "", {}, [])}
