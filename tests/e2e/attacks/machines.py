"""Run a command as on other machines: where no namespace is given, where there is no Landlock either, and as a plain user.

    python machines.py WORD,WORD COMMAND ARGUMENT...

The words: `plain-user` (needs root), `no-namespaces`, which refuses them as Docker's default profile does, and
`old-kernel`, on which there is no Landlock, as before Linux 5.13.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

PLAIN_USER: Final = 65534
_UNSHARE: Final = {"x86_64": 272, "aarch64": 97}
_LANDLOCK: Final = 444
_NEW_MOUNTS: Final = 0x20000
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_EQUAL, _RETURN, _ALLOW, _ERROR = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000


def main() -> None:
    """Change this process as the words say, and become the command."""
    words, *command = sys.argv[1:]
    asked = words.split(",")
    if "plain-user" in asked:
        become_plain()
    answers = {}
    if "no-namespaces" in asked:
        answers[_UNSHARE[platform.machine()]] = errno.EPERM
    if "old-kernel" in asked:
        answers[_LANDLOCK] = errno.ENOSYS
    if answers:
        refuse(answers)
    os.execv(command[0], command)  # noqa: S606


def become_plain() -> None:
    """Be a user without rights, who can still read this Python, which may lie in the home of root."""
    checked(libc().unshare(_NEW_MOUNTS))
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for path in {sys.base_prefix, sys.prefix, str(Path(__file__).parents[3])}:
        closed = [each for each in reversed(Path(path).parents) if not each.stat().st_mode & 0o001]
        if closed:
            stash = tempfile.mkdtemp()
            subprocess.run(["mount", "--bind", path, stash], check=True)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", closed[0]], check=True)
            Path(path).mkdir(parents=True)
            subprocess.run(["mount", "--bind", stash, path], check=True)
            subprocess.run(["umount", stash], check=True)
            Path(stash).rmdir()
    os.setgroups([])
    os.setgid(PLAIN_USER)
    os.setuid(PLAIN_USER)


def refuse(answers: dict[int, int]) -> None:
    """Have system calls return errors, for this process and all that it starts."""
    steps = [struct.pack("=HBBI", _LOAD, 0, 0, 0)]
    for call, error in answers.items():
        steps += [
            struct.pack("=HBBI", _JUMP_EQUAL, 0, 1, call),
            struct.pack("=HBBI", _RETURN, 0, 0, _ERROR | error),
        ]
    steps.append(struct.pack("=HBBI", _RETURN, 0, 0, _ALLOW))
    code = ctypes.create_string_buffer(b"".join(steps))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    program = Program(len(steps), ctypes.addressof(code))
    checked(libc().prctl(_NO_NEW_PRIVILEGES, ctypes.c_ulong(1), 0, 0, 0))
    checked(libc().prctl(_SECCOMP, ctypes.c_ulong(_FILTER), ctypes.byref(program), 0, 0))


def libc() -> ctypes.CDLL:
    """The C library."""
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> None:
    """Raise what the call set as its error."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


if __name__ == "__main__":
    main()
