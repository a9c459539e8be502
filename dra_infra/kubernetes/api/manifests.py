"""Reads manifests of any shape, and marks values in them that are not to be had.

Those are unknown before `pulumi up`, or secret. They break no rule: what stands for a value is not the value.
Nothing of ours is loaded with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UNKNOWN = "[unknown]"
"""Stands in manifests for a value that only exists after `pulumi up`."""

SECRET = "[secret]"  # noqa: S105  (a marker, not a password)
"""Stands in manifests for a secret value."""

CHANGED_SECRET = f"{SECRET} (changed)"
"""Stands for the new value where a secret changes."""

AUTONAMED = "pulumi.com/autonamed"
"""The annotation of objects that Pulumi's provider names."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims that were made from a template: what the pod calls it."""


def mapping(value: Any) -> Mapping[str, Any]:
    """*value* where it is an object, else an empty one."""
    # Nearly all are plain ones, and asking for the abstract class takes many times as long.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def value_at(value: Any, *steps: str) -> Any:
    """Returns what stands below *value* at these keys, None where something on the way is no object or lacks the key."""
    for step in steps:
        value = mapping(value).get(step)
    return value


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in a list; none when *value* is no list."""
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def name_of(manifest: Mapping[str, Any]) -> str:
    """The name of an object; `train-*` where the server makes it up, empty where it has none."""
    metadata = mapping(manifest.get("metadata"))
    start = metadata.get("generateName")
    return str(metadata.get("name") or (f"{start}*" if start else ""))


def is_name_made_up(manifest: Mapping[str, Any]) -> bool:
    """True for an object that Pulumi names, and whose name stands as `train-*`."""
    metadata = mapping(manifest.get("metadata"))
    return AUTONAMED in mapping(metadata.get("annotations")) and "*" in str(metadata.get("name"))
