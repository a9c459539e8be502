"""CDI specs: what container runtimes change in the containers of a claim, one file per claim.

Rules are those of the Go library that runtimes load specs with (`pkg/cdi` and `pkg/parser` of
github.com/cncf-tags/container-device-interface): it loads strictly, and refuses a file as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import DeviceNode, Edits, Record, check_uid, is_uid
from dra_infra.plugin.disk import Folder, may_be_parsed

VERSION: Final = "0.5.0"
"""The oldest that takes device names which start with a digit, as UIDs do: older runtimes refuse newer versions."""

VERSION_OF_GROUPS: Final = "0.7.0"
"""The oldest with additional groups, for specs that have some."""

_VENDOR: Final = re.compile(r"[A-Za-z]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_DEVICE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?")
_VARIABLE: Final = re.compile(r"[^=\0]+=[^\0]*")

_HOOKS: Final = ("prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop")
"""Hooks of the runtimes' library (`validHookNames`)."""


def kind_of(driver: str) -> str:
    """The kind of a driver's specs, as Kubernetes' example driver and NVIDIA's have it: `k8s.<driver>/claim`."""
    return f"k8s.{driver}/claim"


def device_names(record: Record) -> tuple[str, ...]:
    """Names for CDI of the devices of a preparation, in the claim's order: no two preparations share one.

    The kubelet takes the first id of a device for the device in a pod's health, and runtimes remember specs.
    """
    uid = record.claim.uid
    return tuple(
        f"{uid}-{record.preparation}-{place}-{each.device}" for place, each in enumerate(record.claim.devices)
    )


def device_ids(record: Record, driver: str) -> tuple[str, ...]:
    """CDI ids that the kubelet hands to the runtime: `<kind>=<name>`, one for each device."""
    return tuple(f"{kind_of(driver)}={name}" for name in device_names(record))


def make_spec(record: Record, driver: str) -> dict[str, Any]:
    """The spec of a claim whose edits are known.

    Raises:
        PluginError: `cdi-refused`, with all that a runtime would refuse.
    """
    refused = list(_check(record, driver))
    if refused:
        raise PluginError(refused)
    common, own = _split(record.edits)
    groups = any(each.additional_gids for each in record.edits)
    spec = {
        "cdiVersion": VERSION_OF_GROUPS if groups else VERSION,
        "kind": kind_of(driver),
        "devices": [
            {"name": name, "containerEdits": _edits(edits)}
            for name, edits in zip(device_names(record), own, strict=True)
        ],
    }
    return {**spec, "containerEdits": _edits(common)} if common != Edits() else spec


def _split(edits: tuple[Edits, ...]) -> tuple[Edits, tuple[Edits, ...]]:
    """Mounts and hooks that all devices of a claim have become the spec's: a hook then runs once, not for each device."""
    first = edits[0]
    common = Edits(
        mounts=tuple(mount for mount in first.mounts if all(mount in each.mounts for each in edits)),
        hooks=tuple(hook for hook in first.hooks if all(hook in each.hooks for each in edits)),
    )
    own = tuple(
        replace(
            each,
            mounts=tuple(mount for mount in each.mounts if mount not in common.mounts),
            hooks=tuple(hook for hook in each.hooks if hook not in common.hooks),
        )
        for each in edits
    )
    # Runtimes refuse a device that changes nothing by itself.
    return (common, own) if len(edits) > 1 and Edits() not in own else (Edits(), edits)


def _edits(edits: Edits) -> dict[str, Any]:
    parts = {
        "env": list(edits.env),
        "deviceNodes": [_node(each) for each in edits.device_nodes],
        "mounts": [
            {
                "hostPath": each.host_path,
                "containerPath": each.container_path,
                "options": list(each.options),
            }
            for each in edits.mounts
        ],
        "hooks": [
            {"hookName": each.name, "path": each.path, "args": list(each.arguments), "env": list(each.env)}
            for each in edits.hooks
        ],
        "additionalGids": list(edits.additional_gids),
    }
    return {key: value for key, value in parts.items() if value}


def _node(node: DeviceNode) -> dict[str, Any]:
    said = {
        "path": node.path,
        "hostPath": node.host_path,
        "type": node.type,
        "major": node.major,
        "minor": node.minor,
        "permissions": node.permissions,
    }
    owned = {"fileMode": node.file_mode, "uid": node.uid, "gid": node.gid}
    return {key: value for key, value in said.items() if value} | {
        key: value for key, value in owned.items() if value is not None
    }


def _check(record: Record, driver: str) -> Iterator[Problem]:
    claim, edits = record.claim, record.edits
    if not _VENDOR.fullmatch(f"k8s.{driver}"):
        yield _refused(
            f"{claim}: driver", f"{driver!r} is no name of a driver", "name it like gpu.example.com"
        )
    if len(edits) != len(claim.devices) or not edits:
        message = f"{len(edits)} edits for {len(claim.devices)} devices"
        yield _refused(f"{claim}: devices", message, "the back end returns edits for each device")
    for name, each in zip(device_names(record), edits, strict=False):
        yield from _check_device(f"{claim}: device {name}", name, each)


def _check_device(path: str, name: str, edits: Edits) -> Iterator[Problem]:
    if not _DEVICE.fullmatch(name):
        yield _refused(path, "the name has letters that CDI does not allow", "use a-z, 0-9 and -")
    if edits == Edits():
        yield _refused(path, "changes nothing in a container", "set a variable at least")
    for hook in edits.hooks:
        if hook.name not in _HOOKS:
            yield _refused(path, f"{hook.name!r} is no hook", f"one of {', '.join(_HOOKS)}")
    for variable in (*edits.env, *(variable for hook in edits.hooks for variable in hook.env)):
        if not _VARIABLE.fullmatch(variable):
            yield _refused(path, f"{variable!r} is no variable", "write NAME=value")
    yield from _check_nodes(path, edits)
    mounted = (place for each in edits.mounts for place in (each.host_path, each.container_path))
    nodes = (place for each in edits.device_nodes for place in (each.path, each.host_path or each.path))
    programs = (each.path for each in edits.hooks)
    for place in (*nodes, *mounted, *programs):
        if not place.startswith("/") or "\0" in place:
            yield _refused(path, f"{place!r} is no absolute path", "write the path from the root on")


def _check_nodes(path: str, edits: Edits) -> Iterator[Problem]:
    for node in edits.device_nodes:
        if node.type not in ("", "b", "c", "u", "p"):
            yield _refused(path, f"{node.type!r} is no type of a device file", "one of b, c, u, p")
        if node.permissions != "none" and node.permissions.strip("rwm"):
            yield _refused(path, f"{node.permissions!r} are no permissions", "letters of rwm, or none")


def _refused(path: str, message: str, hint: str) -> Problem:
    return Problem(path=path, code="cdi-refused", message=message, hint=hint)


class CdiFolder:
    """The specs of one driver in a folder that others write to as well.

    Args:
        folder: One that the runtime reads, such as /var/run/cdi.
    """

    def __init__(self, folder: Folder, driver: str) -> None:
        self._folder = folder
        self._driver = driver
        self._prefix = kind_of(driver).replace("/", "-") + "_"

    def write(self, record: Record) -> None:
        """Write a claim's spec; one that says the same already is left alone, for runtimes watch the folder.

        Raises:
            PluginError: `cdi-refused`, `plugin-folder-not-usable`.
        """
        name = self._name(record.claim.uid)
        content = json.dumps(make_spec(record, self._driver)).encode()
        if self._folder.read(name) != content:
            # Not settled: another boot has no use for it and undoes the claim. But runtimes look into this folder before
            # the plugin starts, and tell a file that is cut as an error.
            self._folder.replace(name, content, sync=True)

    def remove(self, uid: str) -> None:
        """Take a claim's spec away, if there is one."""
        # A spec that came back with a crash of the machine, and had no record, would keep its devices from others.
        self._folder.remove(self._name(uid), settle=True)

    def uids(self) -> frozenset[str]:
        """UIDs of the claims that have a spec, by the names of the files."""
        names = (name.removesuffix(".json") for name in self._folder.names() if name.endswith(".json"))
        uids = (name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix))
        return frozenset(uid for uid in uids if is_uid(uid))

    def names(self, uid: str) -> tuple[str, ...]:
        """The devices' names for CDI in a claim's spec; none where it is not there, or not as we write it."""
        content = self._folder.read(self._name(uid))
        if content is None or not may_be_parsed(content):
            return ()
        try:
            spec = json.loads(content)
            names = tuple(each["name"] for each in spec["devices"])
            ours = spec["kind"] == kind_of(self._driver)
        except (ValueError, KeyError, TypeError, RecursionError):
            return ()
        texts = all(isinstance(name, str) and name.startswith(f"{uid}-") for name in names)
        return names if ours and texts else ()

    def tidy(self) -> None:
        """Take away what a crash left half-written."""
        self._folder.remove_temporary(lambda name: name.startswith(self._prefix))

    def _name(self, uid: str) -> str:
        return f"{self._prefix}{check_uid(uid)}.json"
