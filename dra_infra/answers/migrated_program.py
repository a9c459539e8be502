"""The Pulumi program that makes what a migration made: `migrate --to components`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from dra_infra.advice.objects import reference_to
from dra_infra.components.kubernetes_object import FORCE
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, mapping
from dra_infra.markers import is_name_made_up
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.output.wording import count_of, join_words
from dra_infra.program_writing.checking import check_objects, check_program_text, is_same_object
from dra_infra.program_writing.claims import of_minor
from dra_infra.program_writing.kubernetes_classes import stem_of
from dra_infra.program_writing.program import write_program
from dra_infra.review.replacement import find_immutable_fields, find_replacing_fields
from dra_infra.sources.cluster_objects import GIVES_WAY, find_writers, managers_of, without_written
from dra_infra.target import ClusterTarget

_TAKEN_OVER: Final = ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate")
"""Kinds that components make."""

_APPLY: Final = "apply what migrate writes without --to components, and migrate what the cluster has then"


_IN_ITS_STACK: Final = (
    "resources have the names that they have in the program of the input; its parents, exports and other resources are not in this one:"
    " in its stack give what had a parent, and what is a component now, aliases=, or write the components into that program"
)


class MigratedProgram(NamedTuple):
    """A program that makes what a migration made.

    Args:
        text: Source of `__main__.py`.
        migrated: What became of each object, with remarks on those that are no components.
        notes: How many objects are components, and which of them are in the cluster.
        problems: Objects that no program makes as they are; with any, nothing is written.
    """

    text: str
    migrated: list[Migrated]
    notes: list[str]
    problems: list[Problem]


def program_of(
    migrated: Sequence[Migrated],
    before: Sequence[Mapping[str, Any]],
    running: Iterable[Mapping[str, Any]] = (),
    kubernetes: str | None = None,
    urns: Sequence[str] = (),
    target: ClusterTarget | None = None,
) -> MigratedProgram:
    """The program of what a migration made; objects that were taken out are not in it.

    Args:
        migrated: What became of each object.
        before: Each as it was: those that were read from a cluster are taken over where that can be.
        running: Objects of the cluster. Components take over those that are the same there.
        kubernetes: The minor that the program is for, where one is named.
        urns: The resource that makes each in a program of the input, whose name it keeps.
        target: The cluster that must not refuse any of them; None checks none.
    """
    rows = [
        (index, each)
        for index, done in enumerate(migrated)
        for each in (*done.added, done.manifest)
        if each is not None
    ]
    objects = [of_minor(without_written(each), kubernetes) for _, each in rows]
    if problems := check_objects(objects):
        return MigratedProgram("", list(migrated), [], problems)
    # An object whose namespace is left open is none of the cluster.
    importable = {ObjectRef.of(each): each for each in running if each.get("kind") in _TAKEN_OVER}
    existing = {
        index: importable[ref]
        for index, each in enumerate(objects)
        if (ref := ObjectRef.of(each)) in importable
    }
    imported = {index for index, each in existing.items() if is_same_object(objects[index], each)}
    read = {
        number: before[index]
        for number, (index, each) in enumerate(rows)
        if each is migrated[index].manifest and without_written(before[index]) is not before[index]
    }
    changed = {number: was for number, was in read.items() if rows[number][1] is not was}
    obstacles = {number: _find_obstacle(was, objects[number]) for number, was in changed.items()}
    taken = [number for number, obstacle in obstacles.items() if not obstacle]
    imported |= read.keys() - changed.keys() | set(taken)
    for number in taken:
        objects[number] = _forced(objects[number])
    names = {
        number: urns[index].split("::", 3)[-1]
        for number, (index, each) in enumerate(rows)
        if urns and urns[index] and each is migrated[index].manifest
    }
    program = write_program(objects, imported=imported, changed=taken, kubernetes=kubernetes, names=names)
    result = list(migrated)
    for (index, was), now, remarks in zip(rows, objects, program.remarks, strict=True):
        version = was.get("apiVersion")
        new = now["apiVersion"]
        message = f"{version} is {new}, which Kubernetes {kubernetes} serves"
        rewritten = [Remark("apiVersion", "changed", "old-version", message)] if version != new else []
        if told := (*remarks, *rewritten):
            result[index] = replace(result[index], remarks=(*result[index].remarks, *told))
    for number in sorted((existing.keys() | changed.keys()) - imported):
        (index, _), each = rows[number], objects[number]
        way = "leave object_name= out" if each["kind"] in _TAKEN_OVER else _APPLY
        message = f"{reference_to(each)} is in the cluster with another spec, which no import takes over{obstacles.get(number, '')}"
        stopped = Remark("", "decide", "not-taken-over", message, f"{way}, or delete it there before")
        result[index] = replace(result[index], remarks=(*result[index].remarks, stopped))
    held = {index: read.get(index) or existing[index] for index in sorted(imported)}
    notes = _find_notes(program.components, objects, taken, held)
    notes += [_IN_ITS_STACK] if names else []
    return MigratedProgram(program.text, result, notes, check_program_text(program.text, objects, target))


def _forced(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that Pulumi applies although other field managers have its fields."""
    metadata = mapping(manifest.get("metadata"))
    annotations = {**mapping(metadata.get("annotations")), FORCE: "true"}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _find_notes(
    components: int,
    objects: Sequence[Mapping[str, Any]],
    taken: Sequence[int],
    held: Mapping[int, Mapping[str, Any]],
) -> list[str]:
    """Return lines on the program as a whole.

    Args:
        components: How many objects are components.
        objects: What the program makes.
        taken: The positions of objects that are taken over and changed.
        held: What is taken over, by the position of its object, as it is in the cluster.
    """
    rest = len(objects) - components
    as_they_are = f"{count_of(rest, 'object')} as {'it is' if rest == 1 else 'they are'}"
    notes = [f"the program makes {count_of(components, 'component')}, and {as_they_are}"]
    notes += [
        f"{reference_to(objects[number])} is taken over and changed: `pulumi up` imports it, and updates it in place"
        for number in taken
    ]
    writers: dict[str, list[str]] = {}
    for index, each in held.items():
        for who in sorted(find_writers(each)):
            writers.setdefault(who, []).append(str(reference_to(objects[index])))
    notes += [
        f"{who} has what is taken over too, and what one of the two deletes is gone; leave to one: {join_words(names)}"
        for who, names in writers.items()
    ]
    if drawn := [reference_to(each) for each in objects if stem_of(each) and not is_name_made_up(each)]:
        why = "server-side apply takes none, so Pulumi makes the name up"
        notes.append(f"metadata.generateName of {join_words(drawn)} is not in the program: {why}")
    return notes


def _find_obstacle(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Says why an update of Pulumi does not make an object of a cluster what it is to be; empty where it does.

    Fields that go are those of whoever wrote them. The provider makes the fields of kubectl its own, and leaves the others where
    they are (`fixCSAFieldManagers` of pulumi-kubernetes): a GPU would be asked for beside the claim.
    """
    if find_replacing_fields(before, after) or find_immutable_fields(before, after):
        return ", for it cannot change in place"
    if not mapping(before.get("metadata")).get("managedFields"):
        return ", for nothing says who wrote its fields; --context, or --show-managed-fields of kubectl, does"
    others = {each for each in managers_of(before) if not each.startswith(GIVES_WAY)}
    return f", for fields of {join_words(sorted(others))} would stay" if others else ""
