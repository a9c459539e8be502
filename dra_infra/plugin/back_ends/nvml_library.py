"""NVIDIA's management library, NVML: how it is found and started, and what to do where it cannot be.

It is asked through the module `pynvml` of nvidia-ml-py, whose functions have NVML's names and raise `NVMLError`.
Links are resolved below a folder that is the root of another system, as a node's is in a container.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import PluginError, Problem

_MOST_LINKS: Final = 40
"""Links that the kernel follows at most."""


def resolve(path: Path, root: Path) -> Path | None:
    """Follow links as a process whose root is *root*; the file or folder as we see it, None where there is none."""
    left = list(path.relative_to(root).parts)
    here = root
    links = 0
    while left:
        part = left.pop(0)
        if part == "..":
            here = here.parent if here != root else root
            continue
        here = here / part
        try:
            target = here.readlink()
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        here = root if target.is_absolute() else here.parent
        left = [each for each in target.parts if each != "/"] + left
    return here if os.path.lexists(here) else None


LIBRARY: Final = "libnvidia-ml.so.1"

LIBRARY_FOLDERS: Final = (
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
)
"""Folders of the driver's libraries, as NVIDIA's DRA driver looks for them (librarySearchPaths in its root.go)."""

_MAPS: Final = Path("/proc/self/maps")


def loaded_from() -> Path | None:
    """The folder of the library that this process has loaded, with links followed; None where it has none."""
    try:
        found = re.search(
            rf" (/\S*)/{re.escape(LIBRARY.removesuffix('.1'))}[^/\s]*$", _MAPS.read_text(), re.MULTILINE
        )
    except OSError:
        return None
    return Path(found[1]) if found else None


_NODES: Final = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/nvidia-uvm")
_MODULE: Final = "proc/driver/nvidia/version"
_INSTALL: Final = "install NVIDIA's GPU driver on the node"


class Nvml:
    """A session with NVML. It is kept: NVML remembers what an own session is told to watch.

    Args:
        driver_root: Folder of the driver's files as this process sees it.
        pynvml: NVML's bindings; None for those of nvidia-ml-py.
        system: Folder of /proc and /dev.
    """

    def __init__(self, driver_root: str, *, pynvml: Any, system: Path = Path("/")) -> None:
        self._pynvml = pynvml
        self._root = Path(driver_root)
        self._system = system
        self._started = False
        self._lock = threading.Lock()

    @property
    def pynvml(self) -> Any:
        """The bindings. They are loaded by the first question: sockets are served before that."""
        if self._pynvml is None:
            import pynvml

            self._pynvml = pynvml
        return self._pynvml

    def start(self) -> None:
        """Load and initialise NVML, once.

        Raises:
            PluginError: `nvml-not-usable`, with what was tried.
        """
        with self._lock:
            if self._started:
                return
            self._load()
            try:
                # Without a GPU too, as NVIDIA's driver does it: what is not there is told in our own words.
                self.pynvml.nvmlInitWithFlags(self.pynvml.NVML_INIT_FLAG_NO_GPUS)
            except self.pynvml.NVMLError as error:
                raise PluginError([self._explain(error)]) from error
            self._started = True

    def stop(self) -> None:
        """End the session; again is no error."""
        with self._lock:
            if self._started:
                self._started = False
                self.quietly("nvmlShutdown")

    def count(self) -> int:
        """Count the GPUs that NVML sees.

        Raises:
            PluginError: `nvml-not-usable`, also where it sees none.
        """
        try:
            count = int(self.pynvml.nvmlDeviceGetCount())
        except self.pynvml.NVMLError as error:
            raise PluginError([self._explain(error)]) from error
        if not count:
            message = "the driver runs, and sees no GPU"
            hint = "see `nvidia-smi -L` and `lspci -d 10de:` on the node; GPUs that are bound to vfio-pci are not seen"
            raise PluginError([_problem(f"{message}{self._seen()}", hint)])
        return count

    def maybe(self, function: str, *arguments: Any) -> Any:
        """Call a function; None where it fails, for whatever reason but a lost GPU.

        Raises:
            NVMLError_GpuIsLost: It is the bindings' own.
        """
        try:
            return getattr(self.pynvml, function)(*arguments)
        except self.pynvml.NVMLError as error:
            if error.value == self.pynvml.NVML_ERROR_GPU_IS_LOST:
                raise
            return None
        except UnicodeDecodeError:
            return None

    def quietly(self, function: str, *arguments: Any) -> None:
        """Call a function that gives something back; what it says against it helps nobody."""
        with suppress(self.pynvml.NVMLError):
            getattr(self.pynvml, function)(*arguments)

    def _load(self) -> None:
        """Load the library from the driver's folder; where it is not there, the bindings leave it to the loader."""
        if getattr(self.pynvml, "nvmlLib", None) is not None:
            return
        for path in self._candidates():
            # Packages of Debian link by way of /etc/alternatives, which in a container is another folder.
            file = resolve(path, self._root)
            if file is not None and file.is_file():
                try:
                    # The bindings take what is there already in place of looking for it by themselves.
                    self.pynvml.nvmlLib = ctypes.CDLL(str(file))
                except OSError as error:
                    hint = "the library has to fit the C library of the plugin's image"
                    raise PluginError([_problem(f"{path} cannot be loaded: {error}", hint)]) from error
                return

    def _candidates(self) -> Iterator[Path]:
        for folder in ("", *LIBRARY_FOLDERS):
            yield self._root / folder / LIBRARY

    def _explain(self, error: Any) -> Problem:
        value = error.value
        known = self.pynvml
        if value == known.NVML_ERROR_LIBRARY_NOT_FOUND:
            tried = ", ".join(map(str, self._candidates()))
            return _problem(
                f"{LIBRARY} was not found: tried {tried} and the loader's own folders{self._seen()}",
                f"{_INSTALL}, and say where its files are (--driver-root) if they are not at /",
            )
        if value == known.NVML_ERROR_DRIVER_NOT_LOADED:
            hint = (
                "load the kernel module: `modprobe nvidia`, or `nvidia-smi`, which makes the device files too"
            )
            return _problem(f"the kernel module nvidia is not loaded{self._seen()}", hint)
        if value == known.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            hint = "after an update of the driver: drain and restart the node, or load the module anew"
            return _problem(f"{LIBRARY} and the kernel module are of different versions{self._seen()}", hint)
        if value == known.NVML_ERROR_NO_PERMISSION:
            hint = "run the plugin as root with the device files of /dev in its container"
            return _problem(f"the kernel module may not be asked{self._seen()}", hint)
        return _problem(f"NVML says {error}{self._seen()}", "see `nvidia-smi` and `dmesg` on the node")

    def _seen(self) -> str:
        """Names the parts of the driver that are there, for a person to read behind the reason."""
        nodes = [
            f"{path} {'is there' if (self._system / path[1:]).exists() else 'is not there'}"
            for path in _NODES
        ]
        try:
            text = (self._system / _MODULE).read_text(encoding="utf-8", errors="replace")
            found = re.search(r"\d+\.\d+(\.\d+)?", text)
            module = f"/{_MODULE} says {found[0] if found else 'no version'}"
        except OSError:
            module = f"/{_MODULE} is not there"
        return f"; {', '.join([*nodes, module])}"


def left_out(what: str, why: str, hint: str = "see `nvidia-smi` and `dmesg` on the node") -> Problem:
    """A GPU or MIG device that is not offered; a warning, for the others are."""
    hint = f"{hint}; then restart the plugin"
    return Problem(path=what, code="gpu-left-out", message=why, hint=hint, severity="warning")


def _problem(message: str, hint: str) -> Problem:
    return Problem(path="nvml", code="nvml-not-usable", message=message, hint=hint)
