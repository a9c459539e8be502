"""Captures a cluster, read once, as one text that `load_snapshot` reads.

Of each object named fields are kept and no others, so that nothing secret comes along. Environment variables,
commands, arguments, images, files and annotations of pods are not among them; no placement reads them. Texts that are
kept go through the mask of `SecretMask` once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dra_infra.catalog.snapshot_headers import MARK, NOT_SEEN, OF_NAMESPACES, READ, SERVER
from dra_infra.client.kinds import CRD_GROUPS, DEFINITIONS, EXTRA, NODES, SLICES, SNAPSHOT
from dra_infra.client.refusals import nothing_seen
from dra_infra.cluster.reading import Listing, Reader
from dra_infra.cluster.server_version import read_server_version
from dra_infra.documents.json_texts import MAX_BYTES, without_half_pairs, write_lines
from dra_infra.documents.yaml import write_manifest
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import mapping
from dra_infra.markers import as_shown
from dra_infra.output.escaping import one_line
from dra_infra.output.secrets import SecretMask

MOST_PRETTY: Final = 2_000
"""Objects that are written for people to read; more are lines of JSON, which are read back 40 times as fast."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Capture:
    """The snapshot, as text, with what could not be read.

    Args:
        text: YAML with a document for each object, and a comment that says how new each kind is.
        counts: Objects by kind.
        problems: What could not be seen; none of it keeps the rest from being used.
    """

    text: str
    counts: dict[str, int]
    problems: tuple[Problem, ...] = ()

    @property
    def exit_code(self) -> int:
        """Always 0: a snapshot judges nothing, and what could not be seen is in `problems`."""
        return 0


def capture(
    reader: Reader, *, mask: SecretMask, made_by: str, tell: Callable[[str], None] = lambda _text: None
) -> Capture:
    """Read everything that `kinds.SNAPSHOT` names; *made_by* is the name and version of what writes the file.

    Raises:
        ClusterError: The codes of `Session`, and `cluster-forbidden` when nothing at all may be read.
    """
    listings = [reader.list(kind, names_only=kind is DEFINITIONS) for kind in SNAPSHOT]
    problems = [
        problem for each in listings for problem in each.problems if each.is_seen or each.kind not in EXTRA
    ]
    if not any(each.is_seen for each in listings):
        raise nothing_seen(problems)
    version = read_server_version(reader.session)
    tell("writing")
    objects: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    for listing in listings:
        for item in _wanted(listing):
            kept = prune(item, mask)
            if kept is not None:
                objects.append(kept)
                counts[listing.kind.name] = counts.get(listing.kind.name, 0) + 1
    # Versions are the server's word: none of them ends the comment that it stands in.
    header = "".join(f"{one_line(line)}\n" for line in _header(reader, listings, made_by, version))
    if _is_large(listings):
        text = write_lines(objects, header=header)
    else:
        text = "---\n".join([header, *map(_write, objects)])
    return Capture(text=text, counts=counts, problems=(*problems, *_size(text)))


def _write(manifest: Mapping[str, Any]) -> str:
    try:
        # What the mask hid is written as a text: nothing of a snapshot that is read back is a marker but values of Secrets.
        return write_manifest(as_shown(manifest))
    except UnicodeEncodeError:
        # JSON can hold half of a character pair, YAML cannot.
        return write_manifest(without_half_pairs(as_shown(manifest)))


def _is_large(listings: Sequence[Listing]) -> bool:
    return sum(len(each.items) for each in listings) > MOST_PRETTY


def _wanted(listing: Listing) -> Iterator[dict[str, Any]]:
    for item in listing.items:
        if listing.kind is not DEFINITIONS or str(item["metadata"].get("name")).endswith(CRD_GROUPS):
            yield item


def _header(reader: Reader, listings: Sequence[Listing], made_by: str, version: str) -> Iterator[str]:
    yield f"{MARK}, by {made_by}. Plain objects without Secrets, ConfigMaps, environments and annotations."
    if version:
        yield SERVER.format(version)
    if reader.namespaces:
        yield f"{OF_NAMESPACES}{', '.join(reader.namespaces)}"
    yield "# Each kind was read at its own moment; resourceVersion says which:"
    for each in listings:
        if each.is_seen:
            versions = ", ".join(
                f"{namespace}: {version}" if namespace else version
                for namespace, version in each.resource_versions.items()
            )
            read = "" if each.version == each.kind.versions[0] else f", read as {each.version}"
            yield READ.format(each.kind.plural, f"{versions}{read}")
    for each in listings:
        for problem in each.problems:
            yield NOT_SEEN.format(each.kind.plural, problem.code)


def _size(text: str) -> Iterator[Problem]:
    size = len(text.encode())
    if size > MAX_BYTES:
        yield Problem(
            path=f"{NODES.plural}, {SLICES.plural}",
            code="snapshot-too-large",
            message=f"the snapshot has {size >> 20} MiB, and files of up to {MAX_BYTES >> 20} MiB are read back",
            hint="read fewer namespaces: --namespace NAME, which may be repeated",
            severity="warning",
        )


Fields = Mapping[str, Any]
"""Fields that are kept: True for all of a value, a mapping for fields of it or of each item of a list."""

_OWNERS: Final = {"apiVersion": True, "kind": True, "name": True, "uid": True, "controller": True}


def _all_of(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, True)


_METADATA: Final[Fields] = {
    **_all_of("name", "namespace", "uid", "labels"),
    "ownerReferences": _OWNERS,
    **_all_of("creationTimestamp", "deletionTimestamp", "finalizers", "generation"),
}
_KEPT_ANNOTATIONS: Final = ("resource.kubernetes.io/",)
"""Annotations by which Kubernetes tells claims apart: whose pod's, for an extended resource."""

_CONDITIONS: Final[Fields] = {"type": True, "status": True, "reason": True, "lastTransitionTime": True}
_SAID: Final[Fields] = {**_CONDITIONS, "message": True}
_CONTAINERS: Final[Fields] = {
    "name": True,
    "resources": True,
    "restartPolicy": True,
    "ports": {"hostPort": True, "hostIP": True, "containerPort": True, "protocol": True},
}
_POD_SPEC: Final[Fields] = {
    **_all_of("nodeName", "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints"),
    **_all_of("schedulerName", "schedulingGates", "schedulingGroup", "priority", "priorityClassName"),
    **_all_of("preemptionPolicy", "restartPolicy", "hostNetwork", "overhead", "resources", "resourceClaims"),
    "containers": _CONTAINERS,
    "initContainers": _CONTAINERS,
    "volumes": {"name": True, "persistentVolumeClaim": {"claimName": True}},
}
_TEMPLATE: Final[Fields] = {"metadata": {"labels": True}, "spec": _POD_SPEC}

_WORKLOAD: Final[Fields] = {
    "spec": _all_of(
        "replicas",
        "selector",
        "strategy",
        "updateStrategy",
        "podManagementPolicy",
        "serviceName",
        "minReadySeconds",
        "parallelism",
        "completions",
        "completionMode",
        "backoffLimit",
        "suspend",
        "schedule",
        "concurrencyPolicy",
    )
    | {
        "template": _TEMPLATE,
        "jobTemplate": {"spec": {"parallelism": True, "completions": True, "template": _TEMPLATE}},
    },
    "status": _all_of(
        "replicas",
        "readyReplicas",
        "availableReplicas",
        "updatedReplicas",
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "active",
        "ready",
        "succeeded",
        "failed",
    )
    | {"conditions": _CONDITIONS},
}

_SPECS: Final = (
    "ResourceSlice",
    "DeviceClass",
    "ResourceClaimTemplate",
    "LimitRange",
    "PodDisruptionBudget",
    "ClusterQueue",
    "LocalQueue",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
"""Kinds of which the whole spec is kept, and nothing else."""

_KEPT: Final[Mapping[str, Fields]] = {
    **{kind: {"spec": True} for kind in _SPECS},
    "Node": {
        "spec": {"taints": True, "unschedulable": True},
        "status": {
            "allocatable": True,
            "capacity": True,
            "conditions": _CONDITIONS,
            "declaredFeatures": True,
            "nodeInfo": {"kubeletVersion": True, "architecture": True, "operatingSystem": True},
        },
    },
    "DeviceTaintRule": {"spec": True, "status": {"conditions": _CONDITIONS}},
    "ResourceClaim": {
        "spec": True,
        "status": {
            "allocation": True,
            "reservedFor": True,
            "devices": {"driver": True, "pool": True, "device": True, "shareID": True, "conditions": _SAID},
        },
    },
    "Pod": {
        "spec": _POD_SPEC,
        "status": _all_of(
            "phase",
            "reason",
            "nominatedNodeName",
            "resourceClaimStatuses",
            "extendedResourceClaimStatus",
            "nodeAllocatableResourceClaimStatuses",
        ),
    },
    "Namespace": {},
    "ResourceQuota": {"spec": True, "status": True},
    "PriorityClass": {"value": True, "globalDefault": True, "preemptionPolicy": True},
    "CustomResourceDefinition": {},
}


def prune(item: Mapping[str, Any], mask: SecretMask) -> dict[str, Any] | None:
    """Cut *item* down to what a snapshot keeps; None for an object that says nothing about what runs."""
    kind = str(item.get("kind"))
    if kind == "ReplicaSet" and not _runs(item):
        # Deployments keep ten old ones each.
        return None
    fields = _KEPT.get(kind, _WORKLOAD)
    kept = _keep(item, {"apiVersion": True, "kind": True, "metadata": _METADATA, **fields})
    annotations = mapping(mapping(item.get("metadata")).get("annotations"))
    known = {name: text for name, text in annotations.items() if name.startswith(_KEPT_ANNOTATIONS)}
    if known:
        kept["metadata"]["annotations"] = known
    if kind == "Pod":
        _keep_why_it_waits(item, kept)
    return dict(mask.values(_without_parameters(kept, mask)))


def _keep(value: Any, fields: Fields) -> Any:
    if isinstance(value, list):
        return [_keep(each, fields) for each in value if isinstance(each, Mapping)]
    if not isinstance(value, Mapping):
        return None
    kept = {}
    for name, wanted in fields.items():
        if value.get(name) is None:
            continue
        found = value[name] if wanted is True else _keep(value[name], wanted)
        if found not in ({}, [], None):
            kept[name] = found
    return kept


def _keep_why_it_waits(item: Mapping[str, Any], kept: dict[str, Any]) -> None:
    conditions = mapping(item.get("status")).get("conditions")
    waits = [
        _keep(each, _SAID)
        for each in (conditions if isinstance(conditions, list) else ())
        if isinstance(each, Mapping) and each.get("type") == "PodScheduled"
    ]
    if waits:
        kept.setdefault("status", {})["conditions"] = waits


def _without_parameters(value: Any, mask: SecretMask) -> Any:
    """Texts of opaque configs are hidden where their names say that they are secret."""
    return _replace(value, "parameters", lambda found: mask.values(found, by_name=True))


def _replace(value: Any, name: str, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, Mapping):
        return {
            key: change(each) if key == name and isinstance(each, Mapping) else _replace(each, name, change)
            for key, each in value.items()
        }
    return [_replace(each, name, change) for each in value] if isinstance(value, list) else value


def _runs(item: Mapping[str, Any]) -> bool:
    return bool(mapping(item.get("spec")).get("replicas") or mapping(item.get("status")).get("replicas"))
