"""What both API servers do with an object: created anew, kept from the older server, written again, and applied again.

An object that the older server stored is read by the newer one as it lies in etcd. It can be refused there when it is written again, and
what its manifest says can be refused because the older server dropped a field that the newer one keeps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import (
    Dropped,
    ObjectRef,
    Release,
    can_decode,
    decode,
    holds_placeholder,
    is_same_json,
    kind_of,
    removed_in,
    stored_version,
    value_at,
    with_defaults,
)
from dra_infra.kubernetes.api import convert as convert_version
from dra_infra.kubernetes.apiserver import Verdict, judge
from dra_infra.upgrades.differences import Difference

Manifest = Mapping[str, Any]

GROUP: Final = "resource.k8s.io"
_TOLD_ELSEWHERE: Final = frozenset({"field-dropped", "field-ignored"})
"""Codes of warnings that become differences of fields."""
_TOUCHED: Final = "dra-infra.example/touched"
_PLURALS: Final = {
    "DeviceClass": "deviceclasses",
    "DeviceTaintRule": "devicetaintrules",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "ResourceSlice": "resourceslices",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedObject:
    """One object of the comparison.

    Args:
        manifest: As it is written, or as a cluster returned it.
        ref: Its name in reports.
        place: Where it is written.
        stored: As the cluster has it; None where no cluster was read, and the older server's answer stands for it.
        namespace_labels: Labels of its namespace; None where they are not known.
    """

    manifest: Manifest
    ref: ObjectRef
    place: Place | None = None
    stored: Manifest | None = None
    namespace_labels: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """What becomes of one object of resource.k8s.io.

    Args:
        before: The answer of the older server to its creation.
        after: The answer of the newer server to its creation.
        stored: The object as the older server keeps it; None where it refuses it.
        kept: The stored object as the newer server returns it.
        lost: Fields of the stored object that the newer server does not know.
        touched: The answer of the newer server when a label is added to the stored object.
        applied: The answer of the newer server when the manifest is written in the place of the stored object.
        applied_before: The same of the older server.
    """

    before: Verdict
    after: Verdict
    stored: Manifest | None = None
    kept: Manifest | None = None
    lost: tuple[str, ...] = ()
    touched: Verdict | None = None
    applied: Verdict | None = None
    applied_before: Verdict | None = None


def is_judged(manifest: Manifest, before: Release, after: Release) -> bool:
    """Return whether both releases can serve an object of resource.k8s.io in its version, and all of its values are known."""
    version = str(manifest.get("apiVersion")).rpartition("/")[2]
    kind = kind_of(manifest)
    return (
        can_decode(manifest)
        and before.knows(kind, version)
        and after.knows(kind, version)
        and not holds_placeholder(manifest)
    )


def find_fate(item: ComparedObject, before: Release, after: Release) -> Fate:
    """Return what becomes of an object that `is_judged`.

    Args:
        item: The object.
        before: The older server.
        after: The newer server.
    """
    labels = item.namespace_labels
    first = judge(item.manifest, before, namespace_labels=labels)
    second = judge(item.manifest, after, namespace_labels=labels)
    stored = item.stored if item.stored is not None else _store(item.manifest, first)
    if stored is None:
        return Fate(before=first, after=second)
    return replace(
        find_stored_fate(stored, after, namespace_labels=labels),
        before=first,
        after=second,
        applied=judge(item.manifest, after, old=stored, namespace_labels=labels),
        applied_before=judge(item.manifest, before, old=stored, namespace_labels=labels),
    )


def find_stored_fate(
    stored: Manifest, after: Release, *, namespace_labels: Mapping[str, str] | None = None
) -> Fate:
    """Return what becomes of a stored object on a newer server: read, and written again with one more label.

    Args:
        stored: As the older server returns it.
        after: The newer server.
        namespace_labels: Labels of its namespace.
    """
    decoded = decode(stored, minor=after.number)
    record = with_defaults(decoded.record, version=decoded.version)
    kept = _in_version(record.to_manifest(), stored)
    touched = judge(_touch(kept), after, old=kept, namespace_labels=namespace_labels)
    return Fate(
        before=touched, after=touched, stored=stored, kept=kept, lost=decoded.unknown_fields, touched=touched
    )


def _store(manifest: Manifest, verdict: Verdict) -> Manifest | None:
    if verdict.status != "accepted" or verdict.record is None:
        return None
    return _in_version(verdict.record.to_manifest(), manifest)


def _in_version(hub: dict[str, Any], like: Manifest) -> dict[str, Any]:
    """Return a record's v1 manifest in the version of another manifest."""
    version = str(like["apiVersion"]).rpartition("/")[2]
    headed = {**hub, "kind": like["kind"], "apiVersion": f"{GROUP}/v1"}
    if like["kind"] == "DeviceTaintRule" or version == "v1":
        return {**headed, "apiVersion": str(like["apiVersion"])}
    return convert_version(headed, version)


def _touch(manifest: Manifest) -> dict[str, Any]:
    metadata = dict(manifest.get("metadata") or {})
    return {
        **manifest,
        "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), _TOUCHED: "true"}},
    }


def compare_fate(item: ComparedObject, before: Release, after: Release) -> Iterator[Difference]:
    """Yield what differs for one object, but for its creation, which the checks of both scenes compare.

    Codes: `upgrade-write-refused`, `upgrade-apply-refused`, `upgrade-field-lost`, `upgrade-field-differs`.
    """
    fate = find_fate(item, before, after)
    yield from describe_stored(item, fate, after)
    touch_works = fate.touched is None or fate.touched.status == "accepted"
    applied, earlier = fate.applied, fate.applied_before
    if (
        touch_works
        and applied is not None
        and earlier is not None
        and applied.status != "accepted"
        and earlier.status == "accepted"
        and fate.after.status == "accepted"
    ):
        yield Difference(
            level="breaks",
            area="objects",
            code="upgrade-apply-refused",
            subject=item.ref,
            place=item.place,
            path=_first_path(applied),
            message=f"cannot be applied again to the object that {before.minor} stored",
            before="accepted, because the server drops fields before it compares",
            after=_first_error(applied),
            hint="give the object another name, or delete and create it after the upgrade",
        )
    yield from _compare_fields(item, fate)


def describe_stored(
    item: ComparedObject, fate: Fate, after: Release, *, on_the_way: bool = False
) -> Iterator[Difference]:
    """Yield what the newer server does otherwise with a stored object: fields that it loses, and writes that it refuses.

    Args:
        item: The object.
        fate: Its fate on the server.
        after: The server.
        on_the_way: Whether the server is of a minor between both.
    """
    when = f"while the API server is {after.minor}, " if on_the_way else ""
    for path in fate.lost:
        yield Difference(
            level="breaks",
            area="objects",
            code="upgrade-field-lost",
            subject=item.ref,
            place=item.place,
            path=path,
            message=f"{when}the stored field is not known to {after.minor} and is lost",
            hint="write what it meant in the fields that the newer release has, after the upgrade",
        )
    touched = fate.touched
    if touched is not None and touched.status != "accepted":
        yield Difference(
            level="breaks",
            area="objects",
            code="upgrade-write-refused",
            subject=item.ref,
            place=item.place,
            path=_first_path(touched),
            message=f"{when}the stored object stays, and each further write of it is refused, also of a label or status",
            after=_first_error(touched),
            hint="mend the object before the upgrade",
        )


def _compare_fields(item: ComparedObject, fate: Fate) -> Iterator[Difference]:
    """Yield fields that are dropped, ignored or defaulted differently when the object is created on either release."""
    if fate.before.status != "accepted" or fate.after.status != "accepted":
        return
    first = {each.path: each for each in fate.before.dropped}
    second = {each.path: each for each in fate.after.dropped}
    for path in sorted({*first, *second}):
        old, new = first.get(path), second.get(path)
        if (old is None) == (new is None) and (old is None or new is None or old.kept == new.kept):
            continue
        gate = next(each.gate for each in (old, new) if each is not None)
        yield Difference(
            level="breaks" if old is None else "changes",
            area="objects",
            code="upgrade-field-differs",
            subject=item.ref,
            place=item.place,
            path=path,
            message=f"the field needs the gate {gate}",
            before=_describe_field(old),
            after=_describe_field(new),
            hint="check that the field is still wanted"
            if new is None
            else f"turn {gate} on, or leave it out",
        )
    if fate.before.record is None or fate.after.record is None or first or second:
        return
    old_spec = fate.before.record.to_manifest().get("spec")
    new_spec = fate.after.record.to_manifest().get("spec")
    if not is_same_json(old_spec, new_spec):
        yield Difference(
            level="changes",
            area="objects",
            code="upgrade-field-differs",
            subject=item.ref,
            place=item.place,
            path="spec",
            message="the servers fill in other defaults",
        )


def _describe_field(dropped: Dropped | None) -> str:
    if dropped is None:
        return "kept, and in effect"
    return "stored and ignored" if dropped.kept else "dropped without a word"


def _first_error(verdict: Verdict) -> str:
    if verdict.type_errors:
        return verdict.type_errors[0][1]
    if verdict.errors:
        return verdict.errors[0].message
    return f"unknown field {verdict.unknown_fields[0]}" if verdict.unknown_fields else verdict.status


def _first_path(verdict: Verdict) -> str:
    return verdict.errors[0].path if verdict.errors else ""


def compare_problems(
    items: Sequence[ComparedObject],
    before: Iterable[tuple[int | None, Problem]],
    after: Iterable[tuple[int | None, Problem]],
    releases: tuple[Release, Release],
) -> Iterator[Difference]:
    """Yield what the check of the same objects finds on one of two releases only.

    Codes: `upgrade-refused`, `upgrade-accepted`, `upgrade-advice`.

    Args:
        items: The objects, by position.
        before: Problems on the older release, with the position of the object.
        after: Problems on the newer release.
        releases: Both releases.
    """
    first, second = _by_object(before), _by_object(after)
    for index in sorted({*first, *second}):
        item = items[index]
        yield from _compare_checks(item, first.get(index, {}), second.get(index, {}), releases)


_Found = dict[tuple[str, str], Problem]


def _by_object(found: Iterable[tuple[int | None, Problem]]) -> dict[int, _Found]:
    grouped: dict[int, _Found] = {}
    for index, problem in found:
        if index is not None and problem.code not in _TOLD_ELSEWHERE:
            grouped.setdefault(index, {}).setdefault((problem.path, problem.code), problem)
    return grouped


def _compare_checks(
    item: ComparedObject, first: _Found, second: _Found, releases: tuple[Release, Release]
) -> Iterator[Difference]:
    older, newer = (release.minor for release in releases)
    errors = [
        [problem for problem in found.values() if problem.severity == "error"] for found in (first, second)
    ]
    prefix = f"{item.ref}."
    if errors[1] and not errors[0]:
        problem = errors[1][0]
        yield Difference(
            level="breaks",
            area="objects",
            code="upgrade-refused",
            subject=item.ref,
            place=problem.place or item.place,
            path=problem.path.removeprefix(prefix) if problem.path.startswith(prefix) else "",
            message=f"{newer} refuses it when it is created",
            before="accepted",
            after=f"{problem.message} [{problem.code}]",
            hint=problem.hint,
        )
    elif errors[0] and not errors[1]:
        problem = errors[0][0]
        yield Difference(
            level="changes",
            area="objects",
            code="upgrade-accepted",
            subject=item.ref,
            place=problem.place or item.place,
            path=problem.path.removeprefix(prefix) if problem.path.startswith(prefix) else "",
            message=f"only {newer} accepts it",
            before=f"{problem.message} [{problem.code}]",
            after="accepted",
            hint=f"create it after the upgrade; {older} refuses it",
        )
    for found, other, minor in ((second, first, newer), (first, second, older)):
        for key, problem in found.items():
            if problem.severity != "error" and key not in other:
                yield Difference(
                    level="note",
                    area="objects",
                    code="upgrade-advice",
                    subject=item.ref,
                    place=problem.place or item.place,
                    path=problem.path.removeprefix(prefix) if problem.path.startswith(prefix) else "",
                    message=f"only for {minor}: {problem.message} [{problem.code}]",
                    hint=problem.hint,
                )


def compare_stored_versions(
    kinds: Iterable[str], before: Release, after: Release
) -> Iterator[tuple[Difference, str]]:
    """Yield what is stored in another version after the upgrade, with the plural and group of its kind.

    Objects keep their version in etcd until they are written. Code: `upgrade-stored-version`.

    Args:
        kinds: Kinds of resource.k8s.io that the cluster has objects of.
        before: The older release.
        after: The newer release.
    """
    for kind in sorted(set(kinds)):
        old, new = stored_version(kind, before), stored_version(kind, after)
        if not old or not new or old == new:
            continue
        removed = removed_in(kind, old)
        plural = f"{_PLURALS.get(kind, kind.lower())}.{GROUP}"
        until = f"; {old} ends with {removed}" if removed else ""
        yield (
            Difference(
                level="note",
                area="stored versions",
                code="upgrade-stored-version",
                path=plural,
                message=f"the version in etcd differs, once an object is written again{until}",
                before=old,
                after=new,
            ),
            plural,
        )


def find_kinds(manifests: Iterable[Manifest]) -> set[str]:
    """Return the kinds of resource.k8s.io among objects."""
    return {
        str(value_at(each, "kind"))
        for each in manifests
        if str(each.get("apiVersion")).startswith(f"{GROUP}/")
    }
