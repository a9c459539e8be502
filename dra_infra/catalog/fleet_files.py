"""Fleets from files: groups of nodes, or plain Kubernetes objects.

Objects are those that `kubectl get nodes,resourceslices,deviceclasses -o yaml` prints. Groups of nodes are a YAML
file, `nodeGroups:` with one entry per group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from dra_infra.catalog.fleet_terms import KEYS, read_group
from dra_infra.catalog.node_groups import NodeGroup
from dra_infra.documents.yaml import MAX_BYTES, read_manifests
from dra_infra.errors import FleetError, Problem, ProblemsError
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import (
    DeviceClass,
    Node,
    NodeTaint,
    Quantity,
    Record,
    ResourceSlice,
    mapping,
    value_at,
)
from dra_infra.kubernetes.api.names import is_dns_subdomain, is_label_key, is_label_value
from dra_infra.output.wording import nearest
from dra_infra.target import NEWEST_DRIVER

TOP_KEY: Final = "nodeGroups"
POOLS_KEY: Final = "pools"
NODE_CLASS: Final = "EC2NodeClass"
"""A kind that says of the nodes of Karpenter's pools what these do not; alone it is no fleet."""
OWN_KEYS: Final = ("name", "labels", "taints", "allocatable")
"""Keys of an entry of a file that tell of its nodes, beside hardware and driver."""
_LONGEST_TERMS: Final = 2**16
"""Characters; a longer file has no list of terms."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def read_node_groups(
    entries: Any, file: str, *, driver: str = NEWEST_DRIVER
) -> tuple[list[NodeGroup], list[Problem]]:
    """Read the groups of a file.

    Args:
        entries: The list under `nodeGroups`.
        file: Path of the file, for problems.
        driver: Releases of the drivers for groups that name none.

    Returns:
        The groups, and what is wrong: `fleet-object` for what is malformed, and the codes of `read_group`.
    """
    problems: list[Problem] = []
    if not isinstance(entries, list) or not entries:
        problems.append(
            malformed(f"{file}.{TOP_KEY}", "there is no list of groups", "write - kind: hgx-h100")
        )
        entries = []
    groups = []
    for index, entry in enumerate(entries):
        path = f"{file}.{TOP_KEY}[{index}]"
        group, found = _read_entry(entry, path, driver)
        problems.extend(found)
        if group is not None:
            groups.append(group)
    return groups, problems


def _read_entry(entry: Any, path: str, driver: str) -> tuple[NodeGroup | None, list[Problem]]:
    if not isinstance(entry, Mapping) or "kind" not in entry:
        return None, [malformed(path, "a group has no kind", "write kind: hgx-h100")]
    known = (*KEYS, *OWN_KEYS)
    problems = [unknown_key(key, known, f"{path}.{key}") for key in entry if key not in known]
    group, found = read_group(entry, lambda key: f"{path}.{key}", driver=driver)
    problems.extend(found)
    described = describe_nodes(group, entry, path, problems)
    return (None, problems) if problems else (described, [])


def describe_nodes(
    group: NodeGroup | None, entry: Mapping[str, Any], path: str, problems: list[Problem]
) -> NodeGroup | None:
    """The group with the name, labels, taints and resources of its nodes that an entry of a file says.

    Args:
        group: What the entry says of hardware and driver; None where that is wrong.
        entry: Its keys; others than `OWN_KEYS` are not looked at.
        path: Where it is in the file.
        problems: Gets `fleet-object` for what is malformed.
    """
    labels = _texts(entry, "labels", path, problems)
    allocatable = _texts(entry, "allocatable", path, problems)
    problems.extend(_check_labels(labels, f"{path}.labels"))
    problems.extend(malformed_amounts(allocatable, f"{path}.allocatable"))
    taints = tuple(_read_taints(entry.get("taints", []), f"{path}.taints", problems))
    name = entry.get("name", group.name if group else "")
    # Node names become label values, and a number is put behind.
    if "name" in entry and not (isinstance(name, str) and is_dns_subdomain(name) and len(name) <= 50):
        problems.append(
            malformed(
                f"{path}.name",
                f"{str(name)[:60]!r} is no beginning of a node's name",
                "write at most 50 lower-case letters, digits, - and ., such as training",
            )
        )
    if problems or group is None:
        return None
    labelled = replace(group, name=str(name), labels=tuple(labels.items()), taints=taints)
    return replace(labelled, allocatable=tuple(allocatable.items()))


def malformed_amounts(amounts: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Problems of a node's resources that are no quantities."""
    for name, value in amounts.items():
        try:
            Quantity.parse(value)
        except ValueError as error:
            yield malformed(
                f"{path}.{name}",
                f"{value[:80]!r} is not a quantity: {error}",
                "write an amount such as 64, 500m or 512Gi",
            )


def _texts(entry: Mapping[str, Any], key: str, path: str, problems: list[Problem]) -> dict[str, str]:
    written = entry.get(key, {})
    if isinstance(written, Mapping) and not any(
        isinstance(value, (Mapping, list)) for value in written.values()
    ):
        return {
            str(name): value if isinstance(value, str) else _text(value) for name, value in written.items()
        }
    problems.append(
        malformed(f"{path}.{key}", f"{key} is no mapping of texts", f"write {key}: {{name: value}}")
    )
    return {}


def _text(value: Any) -> str:
    """A number as its text; what YAML takes for true is `true`, as it is in JSON."""
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _check_labels(labels: Mapping[str, str], path: str) -> Iterator[Problem]:
    for name, value in labels.items():
        if not (is_label_key(name) and is_label_value(value)):
            yield malformed(
                f"{path}.{name[:80]}",
                f"{name[:80]}={value[:80]} is no label",
                "write letters, digits, -, _ and ., such as pool: training",
            )


def _read_taints(written: Any, path: str, problems: list[Problem]) -> Iterator[NodeTaint]:
    for index, taint in enumerate(written if isinstance(written, list) else [None]):
        known = ("key", "value", "effect")
        if (
            not isinstance(taint, Mapping)
            or not set(taint) <= set(known)
            or not is_label_key(str(taint.get("key", "")))
            or taint.get("effect", "NoSchedule") not in _EFFECTS
            or not is_label_value(str(taint.get("value", "")))
        ):
            problems.append(
                malformed(
                    f"{path}[{index}]",
                    f"{str(taint)[:80]} is no taint",
                    "write {key: nvidia.com/gpu, value: present, effect: NoSchedule}",
                )
            )
            continue
        yield NodeTaint(
            key=str(taint["key"]),
            value=str(taint.get("value", "")),
            effect=str(taint.get("effect", "NoSchedule")),
        )


def unknown_key(key: Any, known: tuple[str, ...], path: str) -> Problem:
    """The problem `fleet-object` of a key that there is not, with the nearest one as hint."""
    near = nearest(str(key)[:60], known)
    hint = f"did you mean {near}?" if near else f"keys are {', '.join(known)}"
    return malformed(path, f"there is no {str(key)[:60]}", hint)


def malformed(path: str, message: str, hint: str) -> Problem:
    """The problem `fleet-object` of something in a fleet file that is not what it has to be."""
    return Problem(path=path, code="fleet-object", message=message, hint=hint)


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
    pools: list[Mapping[str, Any]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_fleet_file(
    path: str, is_pool: Callable[[Mapping[str, Any]], bool]
) -> tuple[Fleet, list[Mapping[str, Any]]] | dict[str, Any] | str:
    """Read a fleet from a file, once, for it may be a pipe; objects of other kinds are counted in the notes, for nothing is placed by them.

    Args:
        path: The file.
        is_pool: Which objects describe node pools, or their nodes.

    Returns:
        The fleet of a file of Kubernetes objects and those of its node pools, the document of a file with groups of
        nodes or node pools, or the terms of a file that lists these, with commas between them.

    Raises:
        FleetError: `fleet-unreadable` when the file cannot be read or is not YAML, `fleet-object` for each object that
            is malformed, of a version that is not read, or twice in the file.
    """
    text = _read(path)
    if terms := _find_terms(text):
        return terms
    documents = _parse(text, path)
    first = documents[0] if len(documents) == 1 else {}
    # eksctl calls its groups so too, in an object that has a kind.
    if "kind" not in first and not first.keys().isdisjoint((TOP_KEY, POOLS_KEY)):
        return first
    contents = _gather(_objects(documents), path, is_pool)
    has_pools = any(each.get("kind") not in (NODE_CLASS, "Deployment") for each in contents.pools)
    if not contents.nodes and not has_pools and not contents.problems:
        keys = [] if "kind" in first else list(first)
        near = next(filter(None, (nearest(str(key)[:60], (TOP_KEY, POOLS_KEY)) for key in keys)), "")
        contents.problems.append(
            Problem(
                path=path,
                code="fleet-unreadable",
                message="the file holds no Node and no node pool",
                hint=f"did you mean {near}?"
                if near
                else "write it with: kubectl get nodes,resourceslices,deviceclasses -o yaml, or as nodeGroups or pools",
            )
        )
    fleet = _as_fleet(
        contents,
        path,
        (
            f"{count} {kind} in {path} not taken into account: every node and device counts as free"
            for kind, count in sorted(contents.others.items())
        ),
    )
    return fleet, contents.pools


def gather_fleet(manifests: Iterable[Mapping[str, Any]], name: str) -> Fleet:
    """A fleet from Nodes, ResourceSlices and DeviceClasses, which may be none; other objects are passed over.

    Raises:
        FleetError: `fleet-object`.
    """
    return _as_fleet(_gather(manifests, name), name)


def _gather(
    manifests: Iterable[Mapping[str, Any]],
    path: str,
    is_pool: Callable[[Mapping[str, Any]], bool] = lambda _: False,
) -> _Contents:
    contents = _Contents()
    for index, manifest in enumerate(manifests):
        if is_pool(manifest):
            contents.pools.append(manifest)
        else:
            _take(manifest, f"{path}[{index}]", contents)
    return contents


def _as_fleet(contents: _Contents, name: str, notes: Iterable[str] = ()) -> Fleet:
    if contents.problems:
        raise FleetError(contents.problems)
    return Fleet(
        name=name,
        nodes=tuple(contents.nodes[node] for node in sorted(contents.nodes)),
        slices=tuple(contents.slices[slice_] for slice_ in sorted(contents.slices)),
        classes=tuple(contents.classes[class_] for class_ in sorted(contents.classes)),
        notes=tuple(notes),
        is_partial=not contents.nodes,
    )


def _find_terms(text: str) -> str:
    """Return the terms of a file that has one on each line, as text or as a YAML list; empty for any other file.

    Objects and described groups have colons or braces, and names begin with a letter.
    """
    if len(text) > _LONGEST_TERMS:
        return ""
    lines = [
        line.partition("#")[0].strip().removeprefix("- ").strip().strip("\"'") for line in text.splitlines()
    ]
    terms = [line.rstrip(",") for line in lines if line and line != "---"]
    are_terms = all(each[:1].isalpha() and set(":{}[]").isdisjoint(each) for each in terms)
    return ", ".join(terms) if are_terms else ""


def _read(path: str) -> str:
    try:
        with Path(path).open("rb") as stream:
            return stream.read(MAX_BYTES + 1).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FleetError.of(
            path=path[:200],
            code="fleet-unreadable",
            message=f"the fleet file cannot be read: {reason}",
            hint="name a YAML file with Nodes, ResourceSlices and DeviceClasses, or a fleet such as hgx-h100 x 4",
        ) from error


def _parse(text: str, path: str) -> tuple[dict[str, Any], ...]:
    try:
        return read_manifests(text, file=path)
    except ProblemsError as error:
        raise FleetError(error.problems) from error


def _objects(manifests: tuple[dict[str, Any], ...]) -> Iterator[dict[str, Any]]:
    """The objects, with typed lists (NodeList ...) opened: their items carry neither kind nor version."""
    for manifest in manifests:
        kind = str(manifest.get("kind", ""))
        items = manifest.get("items")
        if not (kind.endswith("List") and isinstance(items, list)):
            yield manifest
            continue
        inherited = {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List")}
        yield from ({**inherited, **item} for item in items if isinstance(item, dict))


def _take(manifest: Mapping[str, Any], path: str, contents: _Contents) -> None:
    kind = manifest.get("kind")
    version = str(manifest.get("apiVersion", ""))
    if kind == "Node" and version == "v1":
        _take_node(manifest, path, contents)
    elif kind == "ResourceSlice" and version.startswith(_RESOURCE_GROUP):
        _take_record(manifest, path, ResourceSlice, contents.slices, contents)
    elif kind == "DeviceClass" and version.startswith(_RESOURCE_GROUP):
        _take_record(manifest, path, DeviceClass, contents.classes, contents)
    elif kind == "DeviceTaintRule":
        message = "DeviceTaintRules are not applied to devices yet"
        hint = "write the taint into the device of the ResourceSlice, and leave the rule out"
        contents.problems.append(malformed(path, message, hint))
    else:
        contents.others[str(kind or "object without kind")[:80]] += 1


def _take_record(
    manifest: Mapping[str, Any], path: str, type_: type[_R], taken: dict[str, _R], contents: _Contents
) -> None:
    name = _name(manifest)
    try:
        record = type_.from_manifest({key: value for key, value in manifest.items() if key != "status"})
    except ValidationError as error:
        contents.problems.extend(_malformed_fleet(manifest, path, error))
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
    metadata, spec, status = (mapping(manifest.get(key)) for key in ("metadata", "spec", "status"))
    allocatable = mapping(status.get("allocatable") or status.get("capacity"))
    if not allocatable:
        message = f"Node {name} has no allocatable resources, so no pod fits it"
        hint = 'write them: {cpu: "64", memory: 512Gi, pods: "110"}'
        contents.problems.append(malformed(f"{path}.status.allocatable", message, hint))
    amounts = {str(key): str(value) for key, value in allocatable.items()}
    contents.problems.extend(malformed_amounts(amounts, f"{path}.status.allocatable"))
    taints = spec.get("taints")
    contents.nodes[name] = Node(
        name=name,
        labels={str(key): str(value) for key, value in mapping(metadata.get("labels")).items()},
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
        kubelet=str(mapping(status.get("nodeInfo")).get("kubeletVersion") or ""),
        is_ready=_read_ready(status.get("conditions")),
    )


def _read_ready(conditions: object) -> bool | None:
    """Return whether the condition `Ready` is True; None where there is no such condition."""
    found = (
        each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, Mapping) and each.get("type") == "Ready"
    )
    return next(found, None)


def _malformed_fleet(manifest: Mapping[str, Any], path: str, error: ValidationError) -> Iterator[Problem]:
    version = str(manifest.get("apiVersion"))
    if version != "resource.k8s.io/v1":
        resource = f"{str(manifest.get('kind')).lower()}s"
        if resource.endswith("classs"):
            resource = "deviceclasses"
        message = f"{version} is not read here, only resource.k8s.io/v1"
        hint = f"ask the server for v1: kubectl get {resource}.v1.resource.k8s.io -o yaml"
        yield malformed(f"{path}.apiVersion", message, hint)
        return
    for detail in error.errors(include_url=False, include_input=False)[:_SHOWN_ERRORS]:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in detail["loc"])
        message = f"{manifest.get('kind')} {_name(manifest) or '(no name)'}: {detail['msg']}"
        yield malformed(f"{path}{where}", message, "compare with what the API server returns")


def _missing_names(manifest: Mapping[str, Any], path: str) -> Iterator[Problem]:
    if manifest.get("kind") != "ResourceSlice" or manifest.get("apiVersion") != "resource.k8s.io/v1":
        return
    for where in ("driver", "pool.name"):
        if value_at(manifest, "spec", *where.split(".")) in (None, ""):
            message = f"ResourceSlice {_name(manifest) or '(no name)'}: the field is missing"
            yield malformed(f"{path}.spec.{where}", message, "compare with what the API server returns")


def _without_own_name(manifest: Mapping[str, Any], path: str, name: str) -> Problem:
    kind = manifest.get("kind")
    message = f"{kind} {name} is in the file twice" if name else f"a {kind} has no name"
    hint = "keep one of the two" if name else "give it a metadata.name"
    return malformed(f"{path}.metadata.name", message, hint)


def _name(manifest: Mapping[str, Any]) -> str:
    name = value_at(manifest, "metadata", "name")
    return name if isinstance(name, str) else ""
