"""What a real node changes on this machine outside of its namespaces, and how that is undone.

Run as a program of its own (``machine.py undo``) by the supervisor of the node; it imports only the standard
library. The journal is written before anything is changed and removed when all is undone, so that what a killed
supervisor could not undo is undone by the next node.

A kubelet sets three kernel settings and the bridge plugin one, for which there are no namespaces; the control groups of
pods and the bridge are the machine's too.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOCK = Path("/run/dra-infra-node.lock")
JOURNAL = Path("/run/dra-infra-node.json")

BRIDGE = "dra-infra0"

PRIVATE_FOLDERS = (
    "/var/lib/kubelet",
    "/run/containerd",
    "/var/lib/cni",
    "/run/netns",
    "/var/log/pods",
    "/var/log/containers",
)
"""Paths that kubelet, containerd and the plugins write to whatever their settings say. The node has its own there."""

_SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
)
_PROC = Path("/proc/sys")
_CGROUPS = Path("/sys/fs/cgroup")
_PODS = "kubepods"
_EMPTY_SECONDS = 10.0
_CHECK_SECONDS = 0.02


@contextlib.contextmanager
def alone(on_wait: Callable[[], None]) -> Iterator[int]:
    """Hold the machine's lock of nodes; *on_wait* is called when another process has it.

    Yields:
        The file descriptor that holds it. Whoever inherits that keeps the lock as well.
    """
    with LOCK.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def prepare(*, addresses: list[str]) -> None:
    """Undo what an earlier node left, note what is now, and make the bridge with its addresses.

    Raises:
        OSError: When this process may not change the machine.
        RuntimeError: When a kubelet of somebody else runs here, or the bridge cannot be made.
    """
    undo()
    if busy := [folder for folder in _pod_groups() if _has_processes(folder)]:
        raise RuntimeError(f"pods of another kubelet run on this machine: {busy[0]} has processes")
    noted = {
        "settings": {name: (_PROC / name).read_text() for name in _SETTINGS if (_PROC / name).exists()},
        "folders": [folder for folder in PRIVATE_FOLDERS if not Path(folder).exists()],
        "groups": [str(folder) for folder in _pod_groups()],
    }
    draft = JOURNAL.with_suffix(".draft")
    draft.write_text(json.dumps(noted))
    draft.replace(JOURNAL)
    for folder in noted["folders"]:
        Path(folder).mkdir()
    _ip("link", "add", BRIDGE, "type", "bridge")
    for address in addresses:
        _ip("address", "add", address, "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


def undo() -> None:
    """Put everything back as `prepare` found it; harmless where there is nothing to undo."""
    if not JOURNAL.exists():
        return
    noted = json.loads(JOURNAL.read_text())
    if Path("/sys/class/net", BRIDGE).exists():
        _ip("link", "delete", BRIDGE)
    for folder in _pod_groups():
        if str(folder) not in noted["groups"]:
            _remove_group(folder)
    for name, value in noted["settings"].items():
        if (_PROC / name).read_text() != value:
            (_PROC / name).write_text(value)
    for folder in noted["folders"]:
        # What is not empty is somebody else's by now.
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    JOURNAL.unlink()


def _pod_groups() -> list[Path]:
    """Control groups of pods: one in each hierarchy of version 1, or the one of version 2."""
    return [folder for folder in (_CGROUPS / _PODS, *_CGROUPS.glob(f"*/{_PODS}")) if folder.is_dir()]


def _has_processes(group: Path) -> bool:
    return any(file.read_text().strip() for file in group.rglob("cgroup.procs"))


def _remove_group(group: Path) -> None:
    """Remove a control group and those below it; the last processes in it may take a moment to end."""
    deadline = time.monotonic() + _EMPTY_SECONDS
    for folder, _, _ in os.walk(group, topdown=False):
        while Path(folder).exists():
            try:
                Path(folder).rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_CHECK_SECONDS)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"`ip {' '.join(arguments)}` failed: {done.stderr.strip()}")


if __name__ == "__main__":
    if sys.argv[1:] != ["undo"]:
        sys.exit("usage: machine.py undo")
    undo()
