"""Linux namespaces for a reviewed program: processes, mounts, IPC and network of its own (namespaces(7)).

The kernel ends every process of a PID namespace when the first one ends, and removes what only a namespace had: its
mounts, so also the files of a tmpfs, and its System V objects. Root with CAP_SYS_ADMIN may make namespaces. Others may
where the system lets them make a user namespace. Ubuntu's AppArmor rules and Docker's default profile refuse that. Each
namespace that is refused is left out, and the functions return what is in force.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
from pathlib import Path
from typing import Final

MOST_PROCESSES: Final = 1024
"""Processes and threads that a program may have at a time."""

MOST_BYTES: Final = 2**30
"""Bytes that a program may write to its home, and to one file anywhere."""

MOST_FILES: Final = 2**14
"""Files and folders that a program may have in its home."""

PROCESS_LIMIT: Final = "process limit"
"""The kernel refuses more than `MOST_PROCESSES` or a few hundred more."""

HOME: Final = "home"
"""The home is a tmpfs of `MOST_BYTES` and `MOST_FILES`, which goes with its mount namespace."""

LOOPBACK: Final = "loopback"
"""The program has a network of its own, with nothing but the loopback device."""

# include/uapi/linux/sockios.h and if.h
_SET_FLAGS, _IS_UP = 0x8914, 1

# include/uapi/linux/sched.h and mount.h
_NEW_MOUNTS, _NEW_IPC, _NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = (
    0x20000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
_NO_SET_USER_ID, _NO_DEVICES, _NO_EXECUTION, _RECURSIVE, _FOLLOWS = 2, 4, 8, 0x4000, 0x80000
_RESERVED_PROCESSES: Final = 300
"""Numbers below this one are given out only once (kernel/pid.c)."""


def start_processes() -> bool:
    """Have the next process that this one forks be the first of a new PID namespace. True where the kernel does so.

    Without CAP_SYS_ADMIN this process enters a user namespace, in which it is the same user. Only a process without
    threads can.
    """
    if not sys.platform.startswith("linux"):
        return False
    if _unshare(_NEW_PROCESSES):
        return True
    # A user namespace without a mapping would make this process a user that nobody knows, and there is no way back.
    if _succeeds_in_a_copy():
        _enter_user_namespace()
        return _unshare(_NEW_PROCESSES)
    return False


def enter(*, home: Path, network: bool, processes: bool) -> frozenset[str]:
    """Leave the mounts, the IPC objects and the network of the machine.

    Args:
        home: The folder that gets a tmpfs.
        network: Whether to keep the network.
        processes: Whether this is the first process of a PID namespace.

    Returns:
        What is in force now, of `PROCESS_LIMIT`, `HOME` and `LOOPBACK`.
    """
    if not sys.platform.startswith("linux"):
        return frozenset()
    held = set()
    _unshare(_NEW_IPC)
    if not network and _unshare(_NEW_NETWORK) and _start_loopback():
        held.add(LOOPBACK)
    if _unshare(_NEW_MOUNTS) and _mount(None, "/", None, _RECURSIVE | _FOLLOWS):
        if processes:
            # Refused to a user namespace where parts of /proc are hidden, as in containers: the old one stays.
            _mount("proc", "/proc", "proc", _NO_SET_USER_ID | _NO_DEVICES | _NO_EXECUTION)
        options = f"size={MOST_BYTES},nr_inodes={MOST_FILES},mode=0700"
        if _mount("tmpfs", str(home), "tmpfs", _NO_SET_USER_ID | _NO_DEVICES, options):
            held.add(HOME)
    if processes and _limit_processes():
        held.add(PROCESS_LIMIT)
    return frozenset(held)


def _start_loopback() -> bool:
    """Bring the loopback device of a new network up, which starts down (netdevice(7))."""
    if sys.platform == "win32":
        return False
    import fcntl

    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        fcntl.ioctl(opened, _SET_FLAGS, struct.pack("16sh22x", b"lo", _IS_UP))
        return True
    return False


def _succeeds_in_a_copy() -> bool:
    """Whether a process like this one gets a user namespace with the rights that it should have."""
    copy = os.fork()
    if copy == 0:
        code = 1
        try:
            code = 0 if _enter_user_namespace() and _unshare(_NEW_MOUNTS) else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(copy, 0)
    return status == 0


def _enter_user_namespace() -> bool:
    user = os.geteuid()
    group = os.getegid()
    if not _unshare(_NEW_USER):
        return False
    try:
        for file, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            Path("/proc/self", file).write_text(text)
    except OSError:
        return False
    return True


def _limit_processes() -> bool:
    """Bound the numbers of this PID namespace, so also how many processes it has (Linux 6.14)."""
    file = Path("/proc/sys/kernel/pid_max")
    try:
        # Before 6.14 there is one limit for the whole machine.
        if _version() < (6, 14):
            return False
        file.write_text(str(MOST_PROCESSES + _RESERVED_PROCESSES))
    except OSError:
        return False
    return True


def _version() -> tuple[int, ...]:
    return tuple(int("".join(filter(str.isdigit, part)) or 0) for part in os.uname().release.split(".")[:2])


def _unshare(flags: int) -> bool:
    return bool(_libc().unshare(ctypes.c_int(flags)) == 0)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> bool:
    texts = [each if each is None else os.fsencode(each) for each in (source, target, kind, options)]
    return bool(_libc().mount(*texts[:3], ctypes.c_ulong(flags), texts[3]) == 0)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
