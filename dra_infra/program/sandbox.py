"""Kernel restrictions of a process that runs a stranger's program, and of all that it starts.

Three things of Linux that need no rights, hold for every descendant, and cannot be taken back:

- Landlock (Documentation/userspace-api/landlock.rst): files are opened below named folders only, and no process
  outside can be looked into (its environment and memory, by `/proc` or ptrace) nor, from ABI 6 on, be signalled.
- seccomp (Documentation/userspace-api/seccomp_filter.rst): only the system calls of a list can be made
  (`dra_infra.program.system_calls`). No socket is among them, so neither a network, nor the metadata address of a cloud, nor
  a daemon such as Docker's can be reached. Pairs of streams inside a process work.
- no_new_privs and no capabilities: `sudo` and other programs with rights of their own give none.

Where a kernel lacks one of them the others are in force all the same; `enter` says which.
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from dra_infra.program import seccomp

NO_NEW_PRIVILEGES: Final = "no new privileges"
FILES: Final = "no files but those that are named"
PROCESSES: Final = "no sight of other processes"
SIGNALS: Final = "no signals to other processes"
STAYING: Final = "no process that stays"
NETWORK: Final = "no network"
CALLS: Final = "no system calls but those of a list"
ALL: Final = (FILES, PROCESSES, SIGNALS, STAYING, NETWORK, CALLS, NO_NEW_PRIVILEGES)
"""What can be in force, in the order in which it is told."""

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38

# include/uapi/linux/landlock.h; the numbers of the calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_TRUNCATE = 1 << 14
_IOCTL = 1 << 15
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_RIGHTS_OF_ABI: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights on files an ABI knows; from 5 on there are 16."""
_ABI_OF_TRUNCATE, _ABI_OF_SCOPES = 3, 6
_SCOPE_OF_SIGNALS: Final = 0b10
_SCOPES: Final = 0b11
"""Abstract sockets, and signals."""

_CAPABILITY_VERSION: Final = 0x20080522


def enter(
    *,
    read: Iterable[Path],
    write: Iterable[Path],
    unfollowed: Iterable[Path] = (),
    listed: Iterable[Path] = (),
    network: bool = False,
    loopback: bool = False,
) -> tuple[str, ...]:
    """Confine this process and everything that it will start, for ever.

    Args:
        read: Files and folders that may be read and executed; those that do not exist are passed over.
        write: Folders that may be written to as well.
        unfollowed: As *read*, where a stranger may have put links: a rule for one would open what it points at, so there is none.
            What it points at is read through it where a rule of its own opens that.
        listed: Folders whose names may be listed.
        network: Whether sockets may be made.
        loopback: Whether sockets of TCP may be made, for a process whose network has nothing but the loopback device.

    Returns:
        What is in force now, of `ALL`.
    """
    if not sys.platform.startswith("linux"):
        return ()
    in_force: list[str] = []
    if _prctl(_PR_SET_NO_NEW_PRIVS, 1):
        in_force.append(NO_NEW_PRIVILEGES)
        _drop_capabilities()
        in_force += _restrict_files(read, write, unfollowed, listed)
        if seccomp.install(platform.machine(), network=network, loopback=loopback):
            in_force += [CALLS] if network else [CALLS, NETWORK]
    return tuple(each for each in ALL if each in in_force)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: none can leave by a double fork (PR_SET_CHILD_SUBREAPER)."""
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(signal_number: int) -> None:
    """Get the signal when the parent ends (PR_SET_PDEATHSIG)."""
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_PDEATHSIG, signal_number)


def hold_signals() -> bool:
    """Let this process, and all that it starts, send signals only to each other. True where the kernel does so (Linux 6.12).

    `kill(-1, ...)` then reaches all of them at once, and nobody else. No process escapes it by a fork.
    """
    if not sys.platform.startswith("linux") or _version() < _ABI_OF_SCOPES:
        return False
    parent = os.getppid()
    attributes = struct.pack("=QQQ", 0, 0, _SCOPE_OF_SIGNALS)
    try:
        os.kill(parent, 0)
    except OSError:
        # Whether the kernel holds signals back could not be tried.
        return False
    if not _prctl(_PR_SET_NO_NEW_PRIVS, 1) or not _restrict_self(attributes):
        return False
    try:
        os.kill(parent, 0)
    except PermissionError:
        return True
    return False


def _restrict_self(attributes: bytes) -> bool:
    """Enter a Landlock domain without rules."""
    pointer = ctypes.create_string_buffer(attributes, len(attributes))
    size = ctypes.c_size_t(len(attributes))
    ruleset = _call(_CREATE_RULESET, pointer, size, ctypes.c_uint32(0))
    if ruleset < 0:
        return False
    try:
        return _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int, pointer: object = 0) -> bool:
    return bool(_libc().prctl(option, ctypes.c_ulong(value), pointer, 0, 0) == 0)


def _drop_capabilities() -> None:
    """Give up what root may beside its files, such as loading modules (capset(2), version 3)."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION, 0), 8)
    nothing = ctypes.create_string_buffer(24)
    _libc().capset(header, nothing)


def _restrict_files(
    read: Iterable[Path], write: Iterable[Path], unfollowed: Iterable[Path], listed: Iterable[Path]
) -> list[str]:
    abi = _version()
    if abi < 1:
        return []
    handled = (1 << _RIGHTS_OF_ABI.get(abi, 16)) - 1
    scopes = _SCOPES if abi >= _ABI_OF_SCOPES else 0
    # An older kernel refuses fields that it does not know.
    attributes = struct.pack("=QQQ", handled, 0, scopes) if scopes else struct.pack("=Q", handled)
    ruleset = _call(
        _CREATE_RULESET,
        ctypes.create_string_buffer(attributes, len(attributes)),
        ctypes.c_size_t(len(attributes)),
        ctypes.c_uint32(0),
    )
    if ruleset < 0:
        return []
    try:
        for paths, rights in ((read, _READ), (write, handled & ~_IOCTL), (listed, _READ_DIR)):
            for path in paths:
                _add_rule(ruleset, path, rights & handled)
        for path in unfollowed:
            _add_rule(ruleset, path, _READ & handled, os.O_NOFOLLOW)
        if _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) < 0:
            return []
    finally:
        os.close(ruleset)
    # Before ABI 3 any file could be emptied (truncate(2)): what is not whole is not told.
    return [*([FILES] if abi >= _ABI_OF_TRUNCATE else []), PROCESSES, *([SIGNALS] if scopes else [])]


def _version() -> int:
    """The ABI of Landlock; below 1 where there is none."""
    return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))


def _add_rule(ruleset: int, path: Path, rights: int, flags: int = 0) -> None:
    try:
        # With O_NOFOLLOW a link itself is opened, which leads nowhere.
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC | flags)
    except OSError:
        # What does not exist, or may not be seen, needs no rule.
        return
    try:
        mode = os.fstat(opened).st_mode
        if stat.S_ISLNK(mode):
            return
        if not stat.S_ISDIR(mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, opened)
        _call(
            _ADD_RULE,
            ctypes.c_int(ruleset),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.create_string_buffer(rule, len(rule)),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(opened)


def _call(number: int, *arguments: object) -> int:
    return int(_libc().syscall(ctypes.c_long(number), *arguments))
