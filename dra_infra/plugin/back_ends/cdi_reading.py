"""Reads CDI specs of others, such as that of NVIDIA's toolkit: all of it, or not at all.

What a field is and may be is that of specs-go/config.go in github.com/cncf-tags/container-device-interface.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from dra_infra.plugin.claims import DeviceNode, Edits, Hook, Mount

_Kind = TypeVar("_Kind")

_SPEC: Final = ("cdiVersion", "kind", "annotations", "devices", "containerEdits")
_DEVICE: Final = ("name", "annotations", "containerEdits")
_EDITS: Final = ("env", "deviceNodes", "mounts", "hooks", "additionalGids")
_NODE: Final = (
    "path",
    "hostPath",
    "type",
    "major",
    "minor",
    "fileMode",
    "permissions",
    "uid",
    "gid",
)
_MOUNT: Final = ("hostPath", "containerPath", "options")
_HOOK: Final = ("hookName", "path", "args", "env")


class UnreadableError(ValueError):
    """A spec is none, or has something that `Edits` cannot say; the text says where and what."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VendorSpec:
    """A spec.

    Args:
        common: What changes in a container with any of its devices.
        devices: What each changes besides, by name.
    """

    common: Edits
    devices: Mapping[str, Edits]


def read_spec(content: bytes | str) -> VendorSpec:
    """Read a spec in JSON.

    Raises:
        UnreadableError: It has another form, or fields that would be lost.
    """
    try:
        spec = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"it is no JSON: {error}") from error
    spec = _fields(spec, _SPEC, "the spec")
    devices = {}
    for number, plain in enumerate(_typed(spec.get("devices"), list, "devices")):
        device = _fields(plain, _DEVICE, f"devices[{number}]")
        name = _typed(device.get("name"), str, f"devices[{number}].name")
        devices[name] = _edits(device.get("containerEdits"), f"device {name}")
    return VendorSpec(common=_edits(spec.get("containerEdits") or {}, "containerEdits"), devices=devices)


def _edits(plain: Any, where: str) -> Edits:
    edits = _fields(plain, _EDITS, where)
    return Edits(
        env=_texts(edits.get("env"), f"{where}.env"),
        device_nodes=tuple(
            _node(each, f"{where}.deviceNodes") for each in _listed(edits.get("deviceNodes"), where)
        ),
        mounts=tuple(_mount(each, f"{where}.mounts") for each in _listed(edits.get("mounts"), where)),
        hooks=tuple(_hook(each, f"{where}.hooks") for each in _listed(edits.get("hooks"), where)),
        additional_gids=tuple(
            _typed(each, int, f"{where}.additionalGids")
            for each in _listed(edits.get("additionalGids"), where)
        ),
    )


def _node(plain: Any, where: str) -> DeviceNode:
    node = _fields(plain, _NODE, where)
    numbers = {name: node.get(name) for name in ("fileMode", "uid", "gid")}
    for name, number in numbers.items():
        if number is not None:
            _typed(number, int, f"{where}.{name}")
    return DeviceNode(
        path=_typed(node.get("path"), str, f"{where}.path"),
        host_path=_typed(node.get("hostPath", ""), str, f"{where}.hostPath"),
        type=_typed(node.get("type", ""), str, f"{where}.type"),
        major=_typed(node.get("major", 0), int, f"{where}.major"),
        minor=_typed(node.get("minor", 0), int, f"{where}.minor"),
        permissions=_typed(node.get("permissions", ""), str, f"{where}.permissions"),
        file_mode=numbers["fileMode"],
        uid=numbers["uid"],
        gid=numbers["gid"],
    )


def _mount(plain: Any, where: str) -> Mount:
    mount = _fields(plain, _MOUNT, where)
    return Mount(
        host_path=_typed(mount.get("hostPath"), str, f"{where}.hostPath"),
        container_path=_typed(mount.get("containerPath"), str, f"{where}.containerPath"),
        options=_texts(mount.get("options"), f"{where}.options"),
    )


def _hook(plain: Any, where: str) -> Hook:
    hook = _fields(plain, _HOOK, where)
    return Hook(
        name=_typed(hook.get("hookName"), str, f"{where}.hookName"),
        path=_typed(hook.get("path"), str, f"{where}.path"),
        arguments=_texts(hook.get("args"), f"{where}.args"),
        env=_texts(hook.get("env"), f"{where}.env"),
    )


def _fields(plain: Any, known: tuple[str, ...], where: str) -> Mapping[str, Any]:
    fields = _typed(plain, dict, where)
    if unknown := sorted(set(fields) - set(known)):
        raise UnreadableError(f"{where} has {', '.join(map(repr, unknown))}, which would be lost")
    return fields


def _texts(plain: Any, where: str) -> tuple[str, ...]:
    return tuple(_typed(each, str, where) for each in _listed(plain, where))


def _listed(plain: Any, where: str) -> list[Any]:
    return [] if plain is None else _typed(plain, list, where)


def _typed(plain: Any, of: type[_Kind], where: str) -> _Kind:
    # Not isinstance: JSON's true is no number.
    if type(plain) is not of:
        raise UnreadableError(f"{where} is {plain!r:.60}, and has to be of type {of.__name__}")
    return plain
