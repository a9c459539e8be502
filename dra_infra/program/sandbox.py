"""Kernel restrictions of a process that runs a stranger's program, and of all that it starts.

Three things of Linux that need no rights, hold for every descendant, and cannot be taken back:

- Landlock (Documentation/userspace-api/landlock.rst): files are opened below named folders only, and no process
  outside can be looked into (its environment and memory, by `/proc` or ptrace) nor, from ABI 6 on, be signalled.
- seccomp (Documentation/userspace-api/seccomp_filter.rst): no socket is made, so neither a network, nor the metadata
  address of a cloud, nor a daemon such as Docker's can be asked. Pairs of streams inside a process work. Modes,
  owners and times of files stay as they are, keys of the user are not read, and limits of other processes are not
  set.
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
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

NO_NEW_PRIVILEGES: Final = "no new privileges"
FILES: Final = "no files but those that are named"
PROCESSES: Final = "no sight of other processes"
SIGNALS: Final = "no signals to other processes"
NETWORK: Final = "no network"
ALL: Final = (FILES, PROCESSES, SIGNALS, NETWORK, NO_NEW_PRIVILEGES)
"""What can be in force, in the order in which it is told."""

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
_SECCOMP_MODE_FILTER: Final = 2

# include/uapi/linux/landlock.h; the numbers of the calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_RIGHTS_OF_ABI: Final = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights on files an ABI knows; from 5 on there are 16."""
_ABI_OF_TRUNCATE, _ABI_OF_SCOPES = 3, 6
_SCOPES: Final = 0b11
"""Abstract sockets, and signals."""

# include/uapi/linux/audit.h, and the tables of system calls (arch/x86/entry/syscalls/syscall_64.tbl, unistd.h of asm-generic).
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED: Final[Mapping[str, tuple[int, ...]]] = {
    # add_key, request_key, keyctl, io_uring_setup: keys of the user, and sockets without the calls for them.
    "x86_64": (248, 249, 250, 425),
    "aarch64": (217, 218, 219, 425),
}
_IGNORED: Final[Mapping[str, tuple[int, ...]]] = {
    # What Landlock lets through on files of others: modes, owners, times and extended attributes. Told as done, for
    # libraries copy them along with files of their own.
    "x86_64": (90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, 452, 463, 466),
    "aarch64": (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 452, 463, 466),
}
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_SOCKET_PAIR: Final = {"x86_64": 53, "aarch64": 199}
_PRLIMIT: Final = {"x86_64": 302, "aarch64": 261}
_X32: Final = 0x40000000
_STREAM, _TYPES = 1, 0xF
_LOAD, _AND, _JUMP_EQUAL, _JUMP_FROM, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _SUCCEED, _REFUSE, _DENY = 0x7FFF0000, 0x00050000, 0x00050001, 0x0005000D
"""What a filter returns: go on, or an error number: none, EPERM, EACCES."""

_CAPABILITY_VERSION: Final = 0x20080522


def enter(
    *,
    read: Iterable[Path],
    write: Iterable[Path],
    unfollowed: Iterable[Path] = (),
    listed: Iterable[Path] = (),
    network: bool = False,
) -> tuple[str, ...]:
    """Confine this process and everything that it will start, for ever.

    Args:
        read: Files and folders that may be read and executed; those that do not exist are passed over.
        write: Folders that may be written to as well.
        unfollowed: As *read*, where a stranger may have put links: a rule for one would open what it points at, so there is none.
            What it points at is read through it where a rule of its own opens that.
        listed: Folders whose names may be listed.
        network: Whether sockets may be made.

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
        if _filter_calls(network=network) and not network:
            in_force.append(NETWORK)
    return tuple(each for each in ALL if each in in_force)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: none can leave by a double fork (PR_SET_CHILD_SUBREAPER)."""
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(signal_number: int) -> None:
    """Get the signal when the parent ends (PR_SET_PDEATHSIG)."""
    if sys.platform.startswith("linux"):
        _prctl(_PR_SET_PDEATHSIG, signal_number)


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


def _filter_calls(*, network: bool) -> bool:
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return False
    # By offset into the record of a call: 4 is the architecture, 0 the number, 16 and 24 the first two arguments. A jump counts the
    # instructions that it skips.
    steps = [
        _instruction(_LOAD, 0, 0, 4),
        _instruction(_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        _instruction(_RETURN, 0, 0, _REFUSE),
        _instruction(_LOAD, 0, 0, 0),
        # Calls of x32 have other numbers for the same things.
        _instruction(_JUMP_FROM, 0, 1, _X32),
        _instruction(_RETURN, 0, 0, _REFUSE),
    ]
    answers = [(call, _REFUSE) for call in _REFUSED[machine]]
    answers += [(call, _SUCCEED) for call in _IGNORED[machine]]
    answers += [] if network else [(_SOCKET[machine], _DENY)]
    for call, answer in answers:
        steps += [_instruction(_JUMP_EQUAL, 0, 1, call), _instruction(_RETURN, 0, 0, answer)]
    # Limits of other processes: without a descriptor left, one of ours could not answer.
    steps += [
        _instruction(_JUMP_EQUAL, 0, 4, _PRLIMIT[machine]),
        _instruction(_LOAD, 0, 0, 16),
        _instruction(_JUMP_EQUAL, 0, 1, 0),
        _instruction(_RETURN, 0, 0, _ALLOW),
        _instruction(_RETURN, 0, 0, _REFUSE),
    ]
    # A pair of streams is inside a process; one of datagrams can be connected to the socket of a daemon.
    steps += [
        _instruction(_JUMP_EQUAL, 0, 5, _SOCKET_PAIR[machine]),
        _instruction(_LOAD, 0, 0, 24),
        _instruction(_AND, 0, 0, _TYPES),
        _instruction(_JUMP_EQUAL, 0, 1, _STREAM),
        _instruction(_RETURN, 0, 0, _ALLOW),
        _instruction(_RETURN, 0, 0, _ALLOW if network else _DENY),
        _instruction(_RETURN, 0, 0, _ALLOW),
    ]
    filter_ = b"".join(steps)
    instructions = ctypes.create_string_buffer(filter_, len(filter_))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = Program(len(steps), ctypes.addressof(instructions))
    return _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def _instruction(code: int, if_true: int, if_false: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _call(number: int, *arguments: object) -> int:
    return int(_libc().syscall(ctypes.c_long(number), *arguments))
