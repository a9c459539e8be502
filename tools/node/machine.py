"""What real nodes change on this machine outside of their namespaces, and how that is undone.

Run as a program of its own (``machine.py undo NUMBER``) by the supervisor of a node; it imports only the standard library.
Each node has a number, and with it a bridge, addresses and control groups of its own. What is changed is written down
first, so that what a killed supervisor could not undo is undone by the next node.

A kubelet sets three kernel settings and the bridge plugin one, for which there are no namespaces: the first node notes
them, the last one puts them back.
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST = 16
"""Nodes at a time."""

PRIVATE_FOLDERS = (
    "/var/lib/kubelet",
    "/run/containerd",
    "/var/lib/cni",
    "/run/netns",
    "/var/log/pods",
    "/var/log/containers",
)
"""Paths that kubelet, containerd and the plugins write to whatever their settings say. Each node has its own there."""

_STATE = Path("/run/dra-infra-nodes")
_SHARED = "machine.json"
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
_EMPTY_SECONDS = 40.0
_CHECK_SECONDS = 0.02


def name_of(number: int) -> str:
    """Name of a node's bridge, and of its control group in each hierarchy."""
    return f"dra-node-{number}"


def subnet_of(number: int) -> str:
    """The addresses of a node and its pods, less their last number."""
    return f"10.202.{number}"


@contextlib.contextmanager
def numbered(on_wait: Callable[[], None]) -> Iterator[tuple[int, int]]:
    """Take a number that no other node has; *on_wait* is called when all are taken.

    Yields:
        The number, and the file descriptor that holds it. Whoever inherits that keeps the number as well.
    """
    _STATE.mkdir(exist_ok=True)
    with contextlib.ExitStack() as files:
        for number in range(MOST):
            file = files.enter_context(_lock_file(number).open("w"))
            if _try_lock(file.fileno()):
                break
        else:
            on_wait()
            number = 0
            file = files.enter_context(_lock_file(0).open("w"))
            fcntl.flock(file, fcntl.LOCK_EX)
        yield number, file.fileno()


def prepare(number: int, *, service: str) -> None:
    """Undo what dead nodes left, note what is now, and make the node's bridge and control groups.

    Args:
        number: The node's, held by `numbered`.
        service: Address of the one service that the node relays.

    Raises:
        OSError: When this process may not change the machine.
        RuntimeError: When the bridge cannot be made.
    """
    with _alone():
        _undo_dead(number)
        if not any(_journal(other).exists() for other in range(MOST)):
            settings = {name: (_PROC / name).read_text() for name in _SETTINGS if (_PROC / name).exists()}
            folders = [folder for folder in PRIVATE_FOLDERS if not Path(folder).exists()]
            _write(_STATE / _SHARED, {"settings": settings, "folders": folders})
        _write(_journal(number), {})
        for folder in PRIVATE_FOLDERS:
            Path(folder).mkdir(exist_ok=True)
        for group in _groups(number):
            group.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):
                # In version 1 a group without them takes no process.
                if (group / "cpuset.cpu_exclusive").exists():
                    (group / file).write_text((group.parent / file).read_text())
        bridge = name_of(number)
        # Without an address of its own a bridge takes the lowest of its ports', which changes as pods come and go: what they
        # send to the old one is lost until they ask again. The CNI plugin gives it one only where it adds the IP address.
        _ip("link", "add", bridge, "address", f"02:64:72:61:00:{number:02x}", "type", "bridge")
        _ip("address", "add", f"{subnet_of(number)}.1/24", "dev", bridge)
        _ip("address", "add", f"{service}/32", "dev", bridge)
        _ip("link", "set", bridge, "up")


def undo(number: int) -> None:
    """Put everything back as `prepare` found it; harmless where there is nothing to undo."""
    if not _STATE.exists():
        return
    with _alone():
        if _journal(number).exists():
            _undo(number)


def undo_dead() -> None:
    """Undo what nodes left whose supervisor was killed, as the next node would; nodes that run keep what is theirs."""
    if not _STATE.exists():
        return
    with _alone():
        _undo_dead()


def _undo_dead(own: int | None = None) -> None:
    for number in range(MOST):
        if _journal(number).exists() and (number == own or _is_free(number)):
            _undo(number)


def _undo(number: int) -> None:
    if Path("/sys/class/net", name_of(number)).exists():
        _ip("link", "delete", name_of(number))
    for group in _groups(number):
        _remove_group(group)
    _journal(number).unlink()
    if any(_journal(other).exists() for other in range(MOST)):
        return
    shared = json.loads((_STATE / _SHARED).read_text())
    for name, value in shared["settings"].items():
        if (_PROC / name).read_text() != value:
            (_PROC / name).write_text(value)
    for folder in shared["folders"]:
        # What is not empty is somebody else's by now.
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
    (_STATE / _SHARED).unlink()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Nobody else changes the machine for a node meanwhile."""
    with (_STATE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_free(number: int) -> bool:
    with _lock_file(number).open("w") as file:
        return _try_lock(file.fileno())


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _lock_file(number: int) -> Path:
    return _STATE / f"{name_of(number)}.lock"


def _journal(number: int) -> Path:
    return _STATE / f"{name_of(number)}.json"


def _write(path: Path, content: dict[str, Any]) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content))
    draft.replace(path)


def _groups(number: int) -> list[Path]:
    """The node's control group in each hierarchy: in version 2 there is one, in version 1 one for each controller."""
    roots = [file.parent for file in (_CGROUPS / "cgroup.procs", *_CGROUPS.glob("*/cgroup.procs"))]
    if (_CGROUPS / "cgroup.controllers").exists():
        roots = [_CGROUPS]
    return [root / name_of(number) for root in roots if root.is_dir() and (root / "cgroup.procs").exists()]


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
    if sys.argv[1:2] != ["undo"]:
        sys.exit("usage: machine.py undo NUMBER")
    undo(int(sys.argv[2]))
