"""What of an object nobody decided: fields that the server sets, the order of things without order, and secrets.

Lists that Kubernetes merges by a key (`+listType=map` and `+patchMergeKey` in k8s.io/api/core/v1/types.go) are brought
into one order, as are sets. Lists that it replaces whole, such as `args` or the requests of a claim, keep theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.model.program import SECRET

CHANGED_SECRET: Final = "[secret] (changed)"  # noqa: S105  (a marker, not a password)
"""Stands for the new value where a secret changes."""

_SERVER_SET: Final = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_SERVER_ANNOTATIONS: Final = frozenset(
    {
        "deployment.kubernetes.io/revision",
        "kubectl.kubernetes.io/last-applied-configuration",
        "pulumi.com/autonamed",
    }
)
_SECRET_FIELDS: Final = ("data", "stringData")

_MERGE_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "conditions": ("type",),
    "containers": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "ownerReferences": ("uid",),
    "resourceClaims": ("name",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_SETS: Final = frozenset({"finalizers"})


def without_noise(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The object as its author means it. What is shared with *manifest* is not copied, and nothing in it is changed."""
    plain = {key: value for key, value in manifest.items() if key != "status"}
    metadata = plain.get("metadata")
    if isinstance(metadata, Mapping):
        plain["metadata"] = _order(dict(_metadata(metadata)))
    for key in ("spec", "template", "secrets"):
        if key in plain:
            plain[key] = _order_service(plain[key]) if plain.get("kind") == "Service" else _order(plain[key])
    if plain.get("kind") == "ServiceAccount" and isinstance(plain.get("secrets"), list):
        plain["secrets"] = _sorted_by(plain["secrets"], ("name",))
    return plain


def mask_secrets(
    before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    """Both sides of a Secret without its values; a value that changes shows as changed."""
    sides = [side for side in (before, after) if side is not None]
    if not any(_is_secret(side) for side in sides):
        return before, after
    old = None if before is None else _mask(before, {})
    return old, None if after is None else _mask(after, before or {})


def _is_secret(manifest: Mapping[str, Any]) -> bool:
    return manifest.get("kind") == "Secret" and str(manifest.get("apiVersion", "v1")) == "v1"


def _mask(manifest: Mapping[str, Any], former: Mapping[str, Any]) -> dict[str, Any]:
    masked = dict(manifest)
    for name in _SECRET_FIELDS:
        values = masked.get(name)
        if isinstance(values, Mapping):
            old = former.get(name)
            known = old if isinstance(old, Mapping) else {}
            masked[name] = {key: _marker(value, known.get(key, value)) for key, value in values.items()}
        elif values is not None:
            masked[name] = _marker(values, former.get(name, values))
    return masked


def _marker(value: Any, old: Any) -> str:
    return SECRET if value == old else CHANGED_SECRET


def _metadata(metadata: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in metadata.items():
        if key in _SERVER_SET:
            continue
        if key == "annotations" and isinstance(value, Mapping) and _SERVER_ANNOTATIONS & set(value):
            kept = {name: text for name, text in value.items() if name not in _SERVER_ANNOTATIONS}
            if kept:
                yield key, kept
            continue
        yield key, value


def _order_service(spec: Any) -> Any:
    ordered = _order(spec)
    if isinstance(ordered, Mapping) and isinstance(ordered.get("ports"), list):
        return {**ordered, "ports": _sorted_by(ordered["ports"], ("port", "protocol"))}
    return ordered


def _order(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        return {name: _order(item, str(name)) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    items = [_order(item) for item in value]
    if key in _SETS:
        return sorted(items, key=str)
    if key == "containers" or key == "initContainers":
        items = [_order_container(item) for item in items]
    return _sorted_by(items, _MERGE_KEYS[key]) if key in _MERGE_KEYS else items


def _order_container(container: Any) -> Any:
    if not isinstance(container, Mapping):
        return container
    ordered = dict(container)
    env, ports, resources = (container.get(name) for name in ("env", "ports", "resources"))
    # A value with $(NAME) reads variables that stand before it.
    if isinstance(env, list) and "$(" not in json.dumps(env, default=str):
        ordered["env"] = _sorted_by(env, ("name",))
    if isinstance(ports, list):
        ordered["ports"] = _sorted_by(ports, ("containerPort", "protocol"))
    if isinstance(resources, Mapping) and isinstance(resources.get("claims"), list):
        ordered["resources"] = {**resources, "claims": _sorted_by(resources["claims"], ("name",))}
    return ordered


def _sorted_by(items: list[Any], keys: tuple[str, ...]) -> list[Any]:
    if not all(isinstance(item, Mapping) for item in items):
        return items
    return sorted(items, key=lambda item: [str(item.get(key, "")) for key in keys])
