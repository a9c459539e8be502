"""Reads manifests of any shape: nothing in them has to be what a rule expects.

Nothing of ours is loaded with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims that were made from a template: what the pod calls it."""


def mapping(value: Any) -> Mapping[str, Any]:
    """*value* where it is an object, else an empty one."""
    # Nearly all are plain ones, and asking for the abstract class takes many times as long.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def value_at(value: Any, *steps: str | int) -> Any:
    """Returns what stands below *value* at these keys and positions, None where something on the way lacks them."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            # As in `mapping`, without a call: rules walk down every object many times.
            value = value.get(step) if type(value) is dict else mapping(value).get(step)
    return value


FieldPath = tuple[str | int, ...]
"""Keys and positions from an object down to one field."""


def find_all(value: Any, path: tuple[str, ...], above: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Places below *value* at a path whose `*` stand for all items of a list or object, with what is there or None."""
    if not path:
        yield above, value
        return
    step, rest = path[0], path[1:]
    if step != "*":
        yield from find_all(mapping(value).get(step), rest, (*above, step))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_all(item, rest, (*above, index))
    else:
        for name in sorted(map(str, mapping(value))):
            yield from find_all(value.get(name), rest, (*above, name))


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in a list; none when *value* is no list."""
    if not isinstance(value, list):
        return []
    return [item for item in value if type(item) is dict or isinstance(item, Mapping)]


def name_of(manifest: Mapping[str, Any]) -> str:
    """The name of an object; `train-*` where the server makes it up, empty where it has none."""
    metadata = mapping(manifest.get("metadata"))
    start = metadata.get("generateName")
    return str(metadata.get("name") or (f"{start}*" if start else ""))
