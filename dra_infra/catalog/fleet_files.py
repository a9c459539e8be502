"""A fleet from a file: groups of nodes, or plain Kubernetes objects.

Objects are those that `kubectl get nodes,resourceslices,deviceclasses -o yaml` prints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dra_infra.catalog.node_group_files import TOP_KEY, malformed_amounts, read_node_groups
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.errors import FleetError, Problem, ProblemsError
from dra_infra.model.device_class import DeviceClass
from dra_infra.model.fleet import Fleet, Node, NodeTaint
from dra_infra.model.record import Record
from dra_infra.model.resource_slice import ResourceSlice
from dra_infra.model.yaml import MAX_BYTES, read_manifests

_RESOURCE_GROUP = "resource.k8s.io/"
_SHOWN_ERRORS = 5
_R = TypeVar("_R", bound=Record)


@dataclass(slots=True)
class _Contents:
    """Objects of a file by name, and what is wrong with it."""

    nodes: dict[str, Node] = field(default_factory=dict)
    slices: dict[str, ResourceSlice] = field(default_factory=dict)
    classes: dict[str, DeviceClass] = field(default_factory=dict)
    others: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)


def read_fleet_file(path: str) -> Fleet | list[NodeGroup]:
    """Read a fleet from a file; objects of other kinds are counted in the notes, for nothing is placed by them.

    Returns:
        The fleet of a file of Kubernetes objects, or the groups of nodes of a file that has such.

    Raises:
        FleetError: `fleet-unreadable` when the file cannot be read or is not YAML, `fleet-object` for each object that
            is malformed, of a version that is not read, or twice in the file, and the codes of `read_group`.
    """
    documents = _read(path)
    if len(documents) == 1 and TOP_KEY in documents[0]:
        return read_node_groups(documents[0], path)
    contents = _gather(_objects(documents), path)
    if not contents.nodes and not contents.problems:
        contents.problems.append(
            Problem(
                path=path,
                code="fleet-unreadable",
                message="the file holds no Node",
                hint="write it with: kubectl get nodes,resourceslices,deviceclasses -o yaml, or as nodeGroups",
            )
        )
    return _as_fleet(
        contents,
        path,
        (
            f"{count} {kind} in {path} not taken into account: every node and device counts as free"
            for kind, count in sorted(contents.others.items())
        ),
    )


def gather_fleet(manifests: Iterable[Mapping[str, Any]], name: str, *, notes: Iterable[str] = ()) -> Fleet:
    """A fleet from Nodes, ResourceSlices and DeviceClasses, which may be none.

    Args:
        manifests: The objects; others are passed over.
        name: What the fleet is called.
        notes: What its answers leave out.

    Raises:
        FleetError: `fleet-object`.
    """
    return _as_fleet(_gather(manifests, name), name, notes)


def _gather(manifests: Iterable[Mapping[str, Any]], path: str) -> _Contents:
    contents = _Contents()
    for index, manifest in enumerate(manifests):
        _take(manifest, f"{path}[{index}]", contents)
    return contents


def _as_fleet(contents: _Contents, name: str, notes: Iterable[str]) -> Fleet:
    if contents.problems:
        raise FleetError(contents.problems)
    return Fleet(
        name=name,
        nodes=tuple(contents.nodes[node] for node in sorted(contents.nodes)),
        slices=tuple(contents.slices[slice_] for slice_ in sorted(contents.slices)),
        classes=tuple(contents.classes[class_] for class_ in sorted(contents.classes)),
        notes=tuple(notes),
    )


def _read(path: str) -> tuple[dict[str, Any], ...]:
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
        return read_manifests(content.decode("utf-8"), file=path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FleetError(
            [
                Problem(
                    path=path[:200],
                    code="fleet-unreadable",
                    message=f"the fleet file cannot be read: {reason}",
                    hint="name a YAML file with Nodes, ResourceSlices and DeviceClasses, or a fleet such as hgx-h100 x 4",
                )
            ]
        ) from error
    except ProblemsError as error:
        raise FleetError(error.problems) from error


def _objects(manifests: tuple[dict[str, Any], ...]) -> Iterator[dict[str, Any]]:
    """The objects, with typed lists (NodeList ...) opened: their items carry neither kind nor version."""
    for manifest in manifests:
        kind, items = str(manifest.get("kind", "")), manifest.get("items")
        if not (kind.endswith("List") and isinstance(items, list)):
            yield manifest
            continue
        inherited = {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List")}
        yield from ({**inherited, **item} for item in items if isinstance(item, dict))


def _take(manifest: Mapping[str, Any], path: str, contents: _Contents) -> None:
    kind, version = manifest.get("kind"), str(manifest.get("apiVersion", ""))
    if kind == "Node" and version == "v1":
        _take_node(manifest, path, contents)
    elif kind == "ResourceSlice" and version.startswith(_RESOURCE_GROUP):
        _take_record(manifest, path, ResourceSlice, contents.slices, contents)
    elif kind == "DeviceClass" and version.startswith(_RESOURCE_GROUP):
        _take_record(manifest, path, DeviceClass, contents.classes, contents)
    elif kind == "DeviceTaintRule":
        contents.problems.append(
            Problem(
                path=path,
                code="fleet-object",
                message="DeviceTaintRules are not applied to devices yet",
                hint="write the taint into the device of the ResourceSlice, and leave the rule out",
            )
        )
    else:
        contents.others[str(kind or "object without kind")[:80]] += 1


def _take_record(
    manifest: Mapping[str, Any], path: str, type_: type[_R], taken: dict[str, _R], contents: _Contents
) -> None:
    name = _name(manifest)
    try:
        record = type_.from_manifest({key: value for key, value in manifest.items() if key != "status"})
    except ValidationError as error:
        contents.problems.extend(_malformed(manifest, path, error))
        contents.problems.extend(_missing_names(manifest, path))
        return
    if missing := tuple(_missing_names(manifest, path)):
        contents.problems.extend(missing)
        return
    if not name or name in taken:
        contents.problems.append(_without_own_name(manifest, path, name))
        return
    taken[name] = record


def _take_node(manifest: Mapping[str, Any], path: str, contents: _Contents) -> None:
    name = _name(manifest)
    if not name or name in contents.nodes:
        contents.problems.append(_without_own_name(manifest, path, name))
        return
    metadata, spec, status = (_mapping(manifest.get(key)) for key in ("metadata", "spec", "status"))
    allocatable = _mapping(status.get("allocatable") or status.get("capacity"))
    if not allocatable:
        contents.problems.append(
            Problem(
                path=f"{path}.status.allocatable",
                code="fleet-object",
                message=f"Node {name} has no allocatable resources, so no pod fits it",
                hint='write them: {cpu: "64", memory: 512Gi, pods: "110"}',
            )
        )
    amounts = {str(key): str(value) for key, value in allocatable.items()}
    contents.problems.extend(malformed_amounts(amounts, f"{path}.status.allocatable"))
    taints = spec.get("taints")
    contents.nodes[name] = Node(
        name=name,
        labels={str(key): str(value) for key, value in _mapping(metadata.get("labels")).items()},
        allocatable=amounts,
        taints=tuple(
            NodeTaint(
                key=str(taint.get("key", "")),
                value=str(taint.get("value") or ""),
                effect=str(taint.get("effect", "")),
            )
            for taint in (taints if isinstance(taints, list) else ())
            if isinstance(taint, Mapping)
        ),
        unschedulable=spec.get("unschedulable") is True,
    )


def _malformed(manifest: Mapping[str, Any], path: str, error: ValidationError) -> Iterator[Problem]:
    version = str(manifest.get("apiVersion"))
    if version != "resource.k8s.io/v1":
        resource = f"{str(manifest.get('kind')).lower()}s"
        if resource.endswith("classs"):
            resource = "deviceclasses"
        yield Problem(
            path=f"{path}.apiVersion",
            code="fleet-object",
            message=f"{version} is not read here, only resource.k8s.io/v1",
            hint=f"ask the server for v1: kubectl get {resource}.v1.resource.k8s.io -o yaml",
        )
        return
    for detail in error.errors(include_url=False, include_input=False)[:_SHOWN_ERRORS]:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
        yield Problem(
            path=f"{path}{where}",
            code="fleet-object",
            message=f"{manifest.get('kind')} {_name(manifest) or '(no name)'}: {detail['msg']}",
            hint="compare with what the API server returns",
        )


def _missing_names(manifest: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if manifest.get("kind") != "ResourceSlice" or manifest.get("apiVersion") != "resource.k8s.io/v1":
        return
    spec = _mapping(manifest.get("spec"))
    for where, value in (
        ("driver", spec.get("driver")),
        ("pool.name", _mapping(spec.get("pool")).get("name")),
    ):
        if value in (None, ""):
            yield Problem(
                path=f"{path}.spec.{where}",
                code="fleet-object",
                message=f"ResourceSlice {_name(manifest) or '(no name)'}: the field is missing",
                hint="compare with what the API server returns",
            )


def _without_own_name(manifest: Mapping[str, Any], path: str, name: str) -> Problem:
    kind = manifest.get("kind")
    return Problem(
        path=f"{path}.metadata.name",
        code="fleet-object",
        message=f"{kind} {name} is in the file twice" if name else f"a {kind} has no name",
        hint="keep one of the two" if name else "give it a metadata.name",
    )


def _name(manifest: Mapping[str, Any]) -> str:
    name = _mapping(manifest.get("metadata")).get("name")
    return name if isinstance(name, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
