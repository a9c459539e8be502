"""Files of NVIDIA's kernel driver that a container needs, for nodes without NVIDIA's toolkit.

Less than the toolkit gives; docs/node-plugin.md says what. Names of files are those that it looks for
(pkg/nvcdi/driver-nvml.go and common-nvml.go in github.com/NVIDIA/nvidia-container-toolkit).
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.back_ends.nvml_library import LIBRARY_FOLDERS, loaded_from, resolve
from dra_infra.plugin.claims import DeviceNode, Edits, Mount

VISIBLE_NONE: Final = "NVIDIA_VISIBLE_DEVICES=void"
"""Keeps the runtime hook of NVIDIA's toolkit from giving the container GPUs besides."""

_OPTIONS: Final = ("ro", "nosuid", "nodev", "rbind", "rprivate")
_NEEDED: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm")
_USEFUL: Final = ("/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
_PROGRAMS: Final = ("nvidia-smi", "nvidia-debugdump")
_PROGRAM_FOLDERS: Final = ("opt/bin", "usr/bin", "usr/sbin", "bin", "sbin")


@dataclass(frozen=True, kw_only=True, slots=True)
class DriverRoot:
    """Folders of the driver's files.

    Args:
        here: As this process sees it.
        on_host: The same folder on the node, for the runtime, which mounts from there.
        system: Folder of /proc and /dev.
    """

    here: Path = Path("/")
    on_host: Path = Path("/")
    system: Path = Path("/")

    def of_host(self, path: Path) -> str:
        """The path on the node of a file under the driver's folder."""
        return str(self.on_host / path.relative_to(self.here))

    @property
    def has_devices(self) -> bool:
        """True where the driver's folder has device files of its own; else they are the system's.

        isDevRoot of NVIDIA's driver asks for a folder /dev alone. An unpacked driver may have an empty one.
        """
        return self.here != Path("/") and _is_device(self.here / "dev/nvidiactl")

    def node(self, path: str) -> DeviceNode:
        """A device file, from the driver's folder where that has device files.

        Raises:
            PluginError: `driver-files-missing`.
        """
        own = self.has_devices
        place = (self.here if own else self.system) / path.lstrip("/")
        if not _is_device(place):
            # Its issue 1380: files are made by the first program that uses the GPU as root.
            hint = "run `nvidia-modprobe -u -c 0` or `nvidia-smi` on the node at each boot, which make device files"
            raise PluginError([missing(path, f"{place} is no device file", hint)])
        on_host = str((self.on_host if own else Path("/")) / path.lstrip("/"))
        return DeviceNode(path=path, host_path="" if on_host == path else on_host)


def common_files(root: DriverRoot, version: str) -> Edits:
    """Edits that every GPU of the node needs: control devices, libraries and programs, at their paths on the node.

    Args:
        root: Where to look.
        version: The driver's, as it is part of the names of its libraries.

    Raises:
        PluginError: `driver-files-missing`.
    """
    nodes = [root.node(path) for path in _NEEDED]
    for path in _USEFUL:
        try:
            nodes.append(root.node(path))
        except PluginError:
            continue
    libraries = tuple(_libraries(root, version))
    if not any("/libcuda.so" in mount.container_path for mount in libraries):
        folders = ", ".join(str(root.here / folder) for folder in LIBRARY_FOLDERS)
        raise PluginError([missing("libcuda.so", f"no libcuda.so.{version} is in {folders}", _other_root())])
    return Edits(env=(VISIBLE_NONE,), device_nodes=tuple(nodes), mounts=(*libraries, *_programs(root)))


def capability_nodes(
    root: DriverRoot, minor: int, gpu_instance: int, compute_instance: int
) -> tuple[DeviceNode, ...]:
    """The two device files that open a MIG device: of its GPU instance, and of its compute instance.

    They are made in the container by their numbers, for the node need not have them (GetDevNodesForMigDevice of NVIDIA's driver).

    Raises:
        PluginError: `driver-files-missing`.
    """
    folder = root.system / f"proc/driver/nvidia/capabilities/gpu{minor}/mig/gi{gpu_instance}"
    major = _major(root)
    return tuple(_capability(folder / place / "access", major) for place in ("", f"ci{compute_instance}"))


def missing(what: str, why: str, hint: str) -> Problem:
    """A file of the driver that a container needs."""
    return Problem(path=what, code="driver-files-missing", message=why, hint=hint)


def _other_root() -> str:
    """What to do where the libraries are elsewhere: the loader found NVML nevertheless, by its own cache or variables."""
    folder = loaded_from()
    for known in LIBRARY_FOLDERS if folder else ():
        if folder and (root := str(folder).removesuffix(f"/{known}")) != str(folder):
            return f"NVML was loaded from {folder}: set --driver-root {root or '/'}"
    return "install NVIDIA's toolkit (nvidia-ctk), which looks at more places, or set --driver-root"


def _libraries(root: DriverRoot, version: str) -> Iterator[Mount]:
    """Files with the driver's version in their name, and each link to one: loaders ask for libcuda.so.1, which is a link."""
    seen = set()
    for folder in LIBRARY_FOLDERS:
        for sub in ("", "vdpau"):
            place = root.here / folder / sub
            real = resolve(place, root.here)
            if real is None or not real.is_dir() or real in seen:
                continue
            seen.add(real)
            for name in sorted(each.name for each in real.iterdir() if ".so" in each.name):
                file = resolve(real / name, root.here)
                if file is not None and file.name.endswith(f".so.{version}") and file.is_file():
                    yield _mount(root, file, at=place / name)


def _programs(root: DriverRoot) -> Iterator[Mount]:
    for name in _PROGRAMS:
        for folder in _PROGRAM_FOLDERS:
            place = root.here / folder / name
            file = resolve(place, root.here)
            if file is not None and file.is_file():
                yield _mount(root, file, at=place)
                break


def _mount(root: DriverRoot, file: Path, *, at: Path) -> Mount:
    container_path = "/" + str(at.relative_to(root.here))
    return Mount(host_path=root.of_host(file), container_path=container_path, options=_OPTIONS)


def _is_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


def _major(root: DriverRoot) -> int:
    """The number that the kernel gave to all of the driver's capabilities (GetDeviceMajor of NVIDIA's driver)."""
    path = root.system / "proc/devices"
    try:
        characters = path.read_text().partition("Block devices:")[0]
    except OSError as error:
        characters = str(error)
    found = re.search(r"^ *(\d+) nvidia-caps$", characters, re.MULTILINE)
    if not found:
        raise PluginError(
            [missing("nvidia-caps", f"{path} does not name it", "load the driver's kernel module")]
        )
    return int(found[1])


def _capability(path: Path, major: int) -> DeviceNode:
    try:
        written = dict(re.findall(r"^(\w+): *(\d+)$", path.read_text(), re.MULTILINE))
        minor, mode = int(written["DeviceFileMinor"]), int(written["DeviceFileMode"])
    except (OSError, KeyError) as error:
        hint = "the plugin has to see the node's /proc/driver/nvidia; was the MIG device removed meanwhile?"
        raise PluginError([missing(str(path), f"does not tell the device file: {error}", hint)]) from error
    return DeviceNode(
        path=f"/dev/nvidia-caps/nvidia-cap{minor}", type="c", major=major, minor=minor, file_mode=mode
    )
