"""What a component makes of its arguments: objects in the order in which they are made, and what it shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.errors import Problem


@dataclass(frozen=True, kw_only=True)
class PlannedObject:
    """An object that a component makes.

    Args:
        key: Its key in `resources`: the kind, and what distinguishes it from others of the kind.
        name: Name of the resource, which is part of its URN.
        manifest: The object; values that are not known yet stand in it as they were given.
        after: Keys of the objects that have to exist before.
    """

    key: str
    name: str
    manifest: Mapping[str, Any]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ComponentPlan:
    """The result of compiling a component.

    Args:
        objects: What it makes, in order.
        attributes: What the component shows under these names.
        warnings: What stops nothing; paths are arguments.
    """

    objects: tuple[PlannedObject, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()


def metadata_of(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a component's object: `object_name`, else *name*, and what is given of namespace, labels and annotations."""
    given = {key: arguments.get(key) for key in ("namespace", "labels", "annotations")}
    object_name = arguments.get("object_name")
    return {
        "name": name if object_name is None else object_name,
        **{key: value for key, value in given.items() if value is not None},
    }
