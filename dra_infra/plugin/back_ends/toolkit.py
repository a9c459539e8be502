"""NVIDIA's container toolkit: its container changes for a GPU, as the CDI spec of `nvidia-ctk cdi generate`.

It knows more of the driver's files than we do, and its hooks update the container's cache of libraries.

CDI specs of others, such as that of NVIDIA's toolkit, are read as a whole, or not at all. What a field is and may be
is that of specs-go/config.go in github.com/cncf-tags/container-device-interface.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from pydantic.alias_generators import to_camel

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_ends.driver_files import DriverRoot
from dra_infra.plugin.claims import DeviceNode, Edits, Hook, Mount

_Kind = TypeVar("_Kind")

_SPEC: Final = ("cdiVersion", "kind", "annotations", "devices", "containerEdits")
_DEVICE: Final = ("name", "annotations", "containerEdits")
_KEYS: Final = {(Hook, "name"): "hookName", (Hook, "arguments"): "args"}
"""Fields of a spec that are not called as ours are."""


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
        devices[name] = _read(Edits, device.get("containerEdits"), f"device {name}")
    common = _read(Edits, spec.get("containerEdits") or {}, "containerEdits")
    return VendorSpec(common=common, devices=devices)


def _read(of: Any, plain: Any, where: str) -> Any:
    """Edits, or a part of them. What is missing has its default, and a list that is missing has nothing."""
    types = get_type_hints(of)
    known = {_KEYS.get((of, name)) or to_camel(name): name for name in types}
    values = _fields(plain, known, where)
    defaults = {
        each.name: each.default
        for each in fields(of)
        if each.default is not MISSING and get_origin(types[each.name]) is not tuple
    }
    return of(
        **{
            name: _value(types[name], values.get(key, defaults.get(name)), f"{where}.{key}")
            for key, name in known.items()
        }
    )


def _value(of: Any, plain: Any, where: str) -> Any:
    if is_dataclass(of):
        return _read(of, plain, where)
    if get_origin(of) is tuple:
        listed = [] if plain is None else _typed(plain, list, where)
        return tuple(_value(get_args(of)[0], each, where) for each in listed)
    if of == int | None:
        return None if plain is None else _typed(plain, int, where)
    return _typed(plain, of, where)


def _fields(plain: Any, known: Iterable[str], where: str) -> Mapping[str, Any]:
    there = _typed(plain, dict, where)
    if unknown := sorted(set(there) - set(known)):
        raise UnreadableError(f"{where} has {', '.join(map(repr, unknown))}, which would be lost")
    return there


def _typed(plain: Any, of: type[_Kind], where: str) -> _Kind:
    # Not isinstance: JSON's true is no number.
    if type(plain) is not of:
        raise UnreadableError(f"{where} is {plain!r:.60}, and has to be of type {of.__name__}")
    return plain


_PLACES: Final = (
    "usr/bin/nvidia-ctk",
    # NVIDIA's operator installs it here, under the shorter name a script for a shell, which our image lacks.
    "usr/local/nvidia/toolkit/nvidia-ctk.real",
    "usr/local/nvidia/toolkit/nvidia-ctk",
)
_HOOKS: Final = "nvidia-cdi-hook"
"""The program of the hooks, beside the toolkit from its release 1.16 on."""

_SECONDS: Final = 20.0
"""Longest run: the kubelet waits for the preparation meanwhile."""

_FRESH_S: Final = 300.0
"""Seconds that a spec is used again, as in NVIDIA's driver (cdi.go)."""


def find_toolkit(root: DriverRoot) -> str | None:
    """The program, on PATH or where packages put it; None where it is not installed."""
    found = shutil.which("nvidia-ctk")
    places = (root.here / place for place in _PLACES)
    return found or next((str(place) for place in places if place.is_file()), None)


class Toolkit:
    """Specs of the toolkit, kept for a while."""

    def __init__(
        self, program: str, root: DriverRoot, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.program = program
        self._root = root
        self._clock = clock
        self._spec: VendorSpec | None = None
        self._made = 0.0

    def edits(self, uuid: str) -> Edits:
        """Edits for a container with a device, those common to all devices included.

        Raises:
            PluginError: `toolkit-failed`, also where the toolkit does not name the device.
        """
        edits, is_named = self.edits_or_common(uuid)
        if not is_named:
            raise PluginError([self._failed(f"says nothing of {uuid}")])
        return edits

    def edits_or_common(self, uuid: str) -> tuple[Edits, bool]:
        """Edits as of `edits`, and True; for a device that is not named those common to all, and False.

        Raises:
            PluginError: `toolkit-failed`.
        """
        spec = self._with(uuid)
        named = uuid in spec.devices
        return (joined(spec.common, spec.devices[uuid]) if named else spec.common), named

    def _with(self, uuid: str) -> VendorSpec:
        """A spec that names the device, or was just made."""
        spec = self._kept()
        if spec is None or uuid not in spec.devices:
            spec = self._spec = self._generate()
            self._made = self._clock()
        return spec

    def _kept(self) -> VendorSpec | None:
        """The last spec, where it is fresh and the driver was not replaced under it (issue 1144 of NVIDIA's driver)."""
        spec = self._spec
        if spec is None or self._clock() - self._made > _FRESH_S:
            return None
        return spec if all(Path(mount.host_path).exists() for mount in self._seen(spec)) else None

    def _seen(self, spec: VendorSpec) -> tuple[Mount, ...]:
        """Mounts whose files this process sees under the same path."""
        return spec.common.mounts if self._root.here == self._root.on_host else ()

    def _generate(self) -> VendorSpec:
        command = [
            self.program,
            "cdi",
            "generate",
            "--format=json",
            "--mode=nvml",
            "--device-name-strategy=uuid",
            f"--driver-root={self._root.here}",
            *self._places(),
        ]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PluginError([self._failed(f"does not run: {error}")]) from error
        if done.returncode:
            told = done.stderr.decode("utf-8", "replace").strip().splitlines()
            last = told[-1][-300:] if told else "without a word"
            raise PluginError([self._failed(f"ends with {done.returncode}: {last}")])
        try:
            spec = read_spec(done.stdout)
        except UnreadableError as error:
            raise PluginError([self._failed(f"writes a spec that cannot be taken over: {error}")]) from error
        return VendorSpec(
            common=self._on_host(spec.common),
            devices={name: self._on_host(edits) for name, edits in spec.devices.items()},
        )

    def _places(self) -> list[str]:
        """Paths that it would guess from its own PATH, which in a container is not that of the node."""
        given = []
        if self._root.here != Path("/") and not self._root.has_devices:
            # Else it looks for device files in the driver's folder, and leaves out those that are not there.
            given.append(f"--dev-root={self._root.system}")
        hooks = Path(self.program).with_name(_HOOKS)
        if hooks.is_absolute() and hooks.is_file():
            given.append(f"--nvidia-cdi-hook-path={self._path(str(hooks))}")
        return given

    def _on_host(self, edits: Edits) -> Edits:
        """Edits with the paths of the node, from which the runtime mounts."""
        return replace(
            edits,
            mounts=tuple(replace(each, host_path=self._path(each.host_path)) for each in edits.mounts),
            device_nodes=tuple(self._node(each) for each in edits.device_nodes),
        )

    def _node(self, node: DeviceNode) -> DeviceNode:
        path = self._path(node.host_path or node.path)
        return replace(node, host_path="" if path == node.path else path)

    def _path(self, path: str) -> str:
        if self._root.here != self._root.on_host and Path(path).is_relative_to(self._root.here):
            return self._root.of_host(Path(path))
        return path

    def _failed(self, message: str) -> Problem:
        return Problem(
            path=f"{self.program} cdi generate",
            code="toolkit-failed",
            message=message,
            hint="run it on the node, or do without it: --toolkit /dev/null",
        )


def joined(first: Edits, second: Edits) -> Edits:
    """Both, and what both say once; of device files and variables of one name the second decides."""
    nodes = {each.path: each for each in (*first.device_nodes, *second.device_nodes)}
    variables = {each.partition("=")[0]: each for each in (*first.env, *second.env)}
    return Edits(
        env=tuple(variables.values()),
        device_nodes=tuple(nodes.values()),
        mounts=tuple(dict.fromkeys((*first.mounts, *second.mounts))),
        hooks=tuple(dict.fromkeys((*first.hooks, *second.hooks))),
        additional_gids=tuple(dict.fromkeys((*first.additional_gids, *second.additional_gids))),
    )
