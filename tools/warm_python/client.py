"""Stand for one script that a warm interpreter runs: pass on signals to it, and leave as it does.

Started as `python -I -S client.py SOCKET PYTHON ARGUMENT...` in place of `PYTHON ARGUMENT...`; knows only the standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from typing import Final

FORWARDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
PARENT_POLL_SECONDS: Final = 1.0
KILLED: Final = 128


def main() -> int:
    """Have the script run; return its exit status, or end by the signal that ended it."""
    address, python, *arguments = sys.argv[1:]
    warm = _connect(address) if _is_script(arguments) else None
    if warm is None:
        os.execv(python, [python, *arguments])  # noqa: S606 - the interpreter that was asked for, with its arguments.
    parent = os.getppid()
    for each in FORWARDED:
        signal.signal(each, lambda number, _frame: warm.send(bytes([number])))
    # pathlib takes as long to load as all else here.
    descriptors = _inherited(warm)
    asked = json.dumps([descriptors, arguments, os.getcwd(), dict(os.environ)]).encode()  # noqa: PTH109
    socket.send_fds(warm, [len(asked).to_bytes(4)], descriptors)
    warm.sendall(asked)
    warm.settimeout(PARENT_POLL_SECONDS)
    while os.getppid() == parent:
        try:
            said = warm.recv(4)
        except TimeoutError:
            continue
        if not said:
            break
        return int.from_bytes(said, signed=True)
    # Nobody is left who waits for the script, or nobody runs it: without this process it ends.
    return KILLED + signal.SIGKILL


def _is_script(arguments: list[str]) -> bool:
    """Whether these are what the engine's parts are started with, `-u`, a path and more, or our own: `-s -P -S -c` and code."""
    first = next((each for each in arguments if each not in ("-u", "-P")), "-")
    return ("-u" in arguments and not first.startswith("-")) or arguments[:4] == ["-s", "-P", "-S", "-c"]


def _inherited(warm: socket.socket) -> list[int]:
    """Descriptors that this process was started with; all of its own but the socket are closed."""
    found = []
    for number in map(int, os.listdir("/dev/fd")):  # noqa: PTH208 - pathlib takes as long to load as all else here.
        with contextlib.suppress(OSError):
            os.fstat(number)
            found.append(number)
    return [each for each in found if each != warm.fileno()]


def _connect(address: str) -> socket.socket | None:
    warm = socket.socket(socket.AF_UNIX)
    try:
        warm.connect(address)
    except OSError:
        # Its tests are over: what is still started runs, a little later.
        return None
    return warm


if __name__ == "__main__":
    status = main()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
