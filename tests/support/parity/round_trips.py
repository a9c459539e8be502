"""Objects that are stored for good and read back in every version that the server has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.support.parity import bases, generation
from tests.support.parity.cases import ADMIN, RESOURCES, Object
from tests.support.parity.kinds.taint_rule import whole_taint_rule
from tests.support.parity.kinds.whole_slices import whole_slices
from tests.support.parity.server import Server

GROUP = "resource.k8s.io"
VERSIONS: Mapping[str, tuple[str, ...]] = {
    "DeviceClass": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaim": ("v1", "v1beta2", "v1beta1"),
    "ResourceClaimTemplate": ("v1", "v1beta2", "v1beta1"),
    "ResourceSlice": ("v1", "v1beta2", "v1beta1"),
    "DeviceTaintRule": ("v1", "v1beta2"),
}
"""Versions of a kind that are converted, newest first; alphas are not."""

_PLURALS = {
    **{kind: plural for kind, (plural, _) in RESOURCES.items()},
}
_NAMESPACED = ("ResourceClaim", "ResourceClaimTemplate")


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """One object in all versions.

    Args:
        id: What it is.
        versions: The object as the server gives it out, by version.
    """

    id: str
    versions: Mapping[str, Object]


def round_trips(server: Server, count: int, *, seed: int) -> Iterator[RoundTrip]:
    """Store objects with every field and *count* generated ones, and read each back in every version."""
    for index, (name, built) in enumerate(_objects(count, seed)):
        kind = built["kind"]
        namespace = "" if kind not in _NAMESPACED else ADMIN
        path = _path(built["apiVersion"], kind, namespace)
        spec = {key: value for key, value in built.items() if key != "status"}
        metadata = {**built["metadata"], "name": f"stored-{index}"}
        created = {**spec, "metadata": metadata}
        answer = server.send("POST", path, created, field_validation="Warn", dry_run=False)
        if answer.stored is None:
            continue
        if status := built.get("status"):
            body = {**answer.stored, "status": status}
            server.send("PUT", f"{path}/stored-{index}/status", body, field_validation="Warn", dry_run=False)
        found = {}
        for version in VERSIONS[kind]:
            read = server.read(f"{_path(f'{GROUP}/{version}', kind, namespace)}/stored-{index}")
            if read is not None:
                found[version] = read
        yield RoundTrip(id=name, versions=found)


def _path(api_version: str, kind: str, namespace: str) -> str:
    root = f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{_PLURALS[kind]}" if namespace else f"{root}/{_PLURALS[kind]}"


def _objects(count: int, seed: int) -> Iterator[tuple[str, Object]]:
    yield "whole claim", bases.claim()
    yield "whole claim for every minor", bases.claim(derived=False, distinct=False)
    yield "whole template", bases.template()
    yield "whole class", bases.device_class()
    yield "allocated claim", bases.allocated_claim()
    yield from (("slice " + name, built) for name, built in whole_slices().items())
    yield from (
        ("taint rule in " + version, whole_taint_rule(version)) for version in VERSIONS["DeviceTaintRule"]
    )
    for name in generation.names(seed, count):
        case = generation.case(name)
        if case.kind in VERSIONS and isinstance(case.object.get("metadata"), dict):
            yield name, case.object
