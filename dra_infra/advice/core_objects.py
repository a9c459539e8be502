"""Kinds of Kubernetes itself, and their fields, that an API server refuses, with what was meant."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import PodTemplate, Release, json_type
from dra_infra.kubernetes.apiserver import (
    CoreSchemas,
    FieldFault,
    FieldType,
    find_faults,
    read_core_schemas,
    read_fields,
)
from dra_infra.output.wording import join_words, nearest

POD_SPEC: Final = "core.v1.PodSpec"

_EXPECTED: Final = {
    "string": "a text",
    "boolean": "true or false",
    "int32": "a whole number of 32 bits",
    "int64": "a whole number",
    "double": "a number",
    "byte": "a text in base64",
    "quantity": "a quantity such as 500m or 2Gi",
    "time": "a time such as 2026-01-02T03:04:05Z",
    "micro-time": "a time such as 2026-01-02T03:04:05.000000Z",
    "int-or-string": "a whole number or a text",
    "list": "a list",
    "map": "a mapping",
    "object": "a mapping",
}

_GONE_GROUPS: Final = frozenset({"extensions"})
"""Groups that Kubernetes had, and no supported minor has."""

_ONE_ENTRY: Final = (
    "leave request out to use all requests of the claim, or put one of them into a claim of its own"
)

_NUMBERS: Final = ("int32", "int64")


def check_core_fields(
    manifest: Mapping[str, Any], releases: Sequence[Release]
) -> list[tuple[Release, tuple[Problem, ...]]]:
    """Return what each release refuses in the fields of an object of Kubernetes' own kinds; nothing of another object."""
    by_minor = {release.minor: release for release in releases}
    return [
        (by_minor[minor], tuple(_problems(manifest, faults, by_minor[minor])))
        for minor, faults in find_faults(manifest, list(by_minor))
    ]


def check_kind(manifest: Mapping[str, Any], release: Release) -> Iterator[Problem]:
    """Yield that a group of Kubernetes itself has no such version, or no such kind in it."""
    api_version = str(manifest.get("apiVersion") or "")
    kind = str(manifest.get("kind") or "")
    kinds = read_core_schemas(release.minor).kinds
    if kind in kinds.get(api_version, {}) or _is_no_object(kind):
        return
    group = api_version.rpartition("/")[0]
    if group not in _GONE_GROUPS and all(each.rpartition("/")[0] != group for each in kinds):
        return
    others = sorted((each for each in kinds if kind in kinds[each]), key=_version_order)
    if others or api_version not in kinds:
        versions = others or [each for each in kinds if each.rpartition("/")[0] == group]
        yield Problem(
            path="apiVersion",
            code="unknown-version",
            message=f"Kubernetes {release.minor} has no {kind} in {api_version}",
            hint=f"write apiVersion: {others[0]}"
            if others
            else f"it has {join_words(versions) or 'no such group'}",
        )
    else:
        near = nearest(kind, kinds[api_version])
        yield Problem(
            path="kind",
            code="unknown-kind",
            message=f"{kind!r} is no kind of {api_version}",
            hint=f"did you mean {near!r}?" if near else "see what there is: kubectl api-resources",
        )


def _is_no_object(kind: str) -> bool:
    """Return True for lists, for what no server stores, and for the kubeconfig, which is of v1 too and sent to none."""
    return kind.endswith("List") or kind in ("", "Binding", "ComponentStatus", "Config")


def _version_order(api_version: str) -> tuple[bool, bool, str]:
    """Return the key by which stable versions come before beta and alpha ones."""
    return "alpha" in api_version, "beta" in api_version, api_version


def check_pod_fields(
    templates: Iterable[PodTemplate], manifest: Mapping[str, Any], release: Release
) -> Iterator[Problem]:
    """Yield the fields of pods that no server has, in templates of kinds that other projects define."""
    kind = workload_kinds().find(manifest)
    if kind is None or any(part.is_spec or part.composed for part in kind.parts):
        # Kinds such as InferenceService and VirtualMachine have fields of their own among those of a pod spec.
        return
    schemas = read_core_schemas(release.minor)
    for template in templates:
        faults = read_fields(template.spec, POD_SPEC, schemas, template.path)
        # What is missing the controller may fill in, and how lists are applied the kind's definition says.
        kept = (each for each in faults if each.fault not in ("missing", "twice"))
        yield from _problems(manifest, kept, release)


def _problems(
    manifest: Mapping[str, Any], faults: Iterable[FieldFault], release: Release
) -> Iterator[Problem]:
    for fault in faults:
        if fault.type is not None:
            yield _of_value(fault, fault.type)
        elif not _name(fault).startswith("$"):
            # What starts with $ is a directive of a strategic merge patch, which is a part of an object.
            yield Problem(
                path=fault.path,
                code="unknown-field",
                message=f"Kubernetes {release.minor} has no such field; kubectl refuses it, other clients lose it silently",
                hint=_meant(fault, manifest, read_core_schemas(release.minor)),
            )


def _of_value(fault: FieldFault, type_: FieldType) -> Problem:
    """Return the problem of a field that the server has: without a value, or with one that it refuses."""
    expected = _EXPECTED[type_.name]
    if fault.fault == "missing":
        return Problem(
            path=fault.path,
            code="missing-field",
            message="Required value: servers refuse the object without it",
            hint=f"write {fault.path.rpartition('.')[2]}: with {expected}",
        )
    if fault.fault == "twice":
        return Problem(
            path=fault.path,
            code="duplicate-item",
            message=f"server-side apply refuses a second item with {fault.value}; pulumi up and kubectl apply --server-side use it",
            hint=_ONE_ENTRY
            if fault.path.rpartition("[")[0].endswith("resources.claims")
            else "write it once",
            severity="warning",
        )
    if fault.fault == "choice":
        choices = type_.choices
        near = nearest(fault.value, choices) or nearest(fault.value.title(), choices)
        supported = ", ".join(map(json.dumps, choices))
        return Problem(
            path=fault.path,
            code="unsupported-value",
            message=f"Unsupported value: {json.dumps(fault.value)}: supported values: {supported}",
            hint=f"did you mean {near!r}?" if near else "write one of these words",
        )
    return Problem(
        path=fault.path,
        code="wrong-type",
        # The value is not quoted: it may be secret.
        message=f"{expected} belongs here, and servers refuse the {json_type(fault.value)}",
        hint=_mend(fault, type_),
    )


def _mend(fault: FieldFault, type_: FieldType) -> str:
    name = re.sub(r"\[\d+\]$", "", fault.path.rpartition(".")[2])
    value = fault.value
    if value == "None":
        return f"YAML has null for None: leave {name} out"
    if type_.name == "string" and isinstance(value, (bool, int, float)):
        return "put it in quotes"
    if type_.name in _NUMBERS and isinstance(value, str):
        number = value.strip()
        is_number = re.fullmatch(r"-?[0-9]{1,18}", number, re.ASCII)
        return f"write {name}: {number if is_number else 'with a number'}, without quotes"
    if type_.name == "boolean" and isinstance(value, str):
        return f"write {name}: true or {name}: false, without quotes"
    if type_.name == "list":
        return "begin each item with -"
    return f"write {_EXPECTED[type_.name]}"


def _meant(fault: FieldFault, manifest: Mapping[str, Any], schemas: CoreSchemas) -> str:
    """Return what to write in place of an unknown field: the name that is like it, or the place that has it."""
    at, holder = fault.around[-1]
    name = _name(fault)
    known = sorted(schemas.fields(holder))
    same = [each for each in known if each.lower() == name.lower()]
    if near := next(iter(same), "") or nearest(name, known, cutoff=0.7):
        return f"did you mean {near!r}?"
    for above, type_name in reversed(fault.around[:-1]):
        if name in schemas.fields(type_name):
            return f"it is a field of {above or manifest.get('kind')}: write it there"
    inner = [
        field
        for field, type_ in schemas.fields(holder).items()
        if field != "status" and name in schemas.fields(_object_of(type_))
    ]
    if inner:
        return f"it is a field of {join_words(sorted(inner))}: write it there"
    steps = ".".join([str(manifest.get("kind")).lower(), *re.sub(r"\[\d+\]", "", at).split(".")]).rstrip(".")
    return f"see its fields: kubectl explain {steps}"


def _name(fault: FieldFault) -> str:
    """Return the name of an unknown field, which may have dots in it."""
    return fault.path[len(fault.around[-1][0]) :].removeprefix(".")


def _object_of(type_: FieldType) -> str:
    while type_.item is not None:
        type_ = type_.item
    return type_.fields_of
