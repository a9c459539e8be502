"""Parts of plain objects that a server sent, of whatever shape they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Manifest = Mapping[str, Any]


def mapping(value: Any) -> Manifest:
    """*value* where it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def mappings(value: Any) -> list[Manifest]:
    """The mappings of a list."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def text(value: Any) -> str:
    """*value* where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def name_of(item: Manifest) -> str:
    """The name of an object."""
    return text(mapping(item.get("metadata")).get("name"))


def namespace_of(item: Manifest) -> str:
    """The namespace of an object; empty where it is in none."""
    return text(mapping(item.get("metadata")).get("namespace"))


def uid_of(item: Manifest) -> str:
    """What tells an object from another one of its name."""
    return text(mapping(item.get("metadata")).get("uid"))


def full_name(item: Manifest) -> str:
    """`namespace/name`, or the name of an object without a namespace."""
    namespace = namespace_of(item)
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


def labels_of(item: Manifest) -> Manifest:
    """The labels of an object."""
    return mapping(mapping(item.get("metadata")).get("labels"))
