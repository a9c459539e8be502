"""Load modules once, then run each script that is asked for in a fork.

Started by path with the path of its socket and the names of the modules; ends when its standard input does.
"""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]


class Asked(NamedTuple):
    """A script, from the process that stands for it."""

    caller: socket.socket
    streams: list[int]
    arguments: list[str]
    folder: str
    environment: dict[str, str]


def main(path: str, *modules: str) -> None:
    """Serve at *path* until the standard input ends; a fork returns from its script."""
    load(modules)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        asked = serve(listener)
    if asked is not None:
        become(asked)
        run(asked)


def load(modules: tuple[str, ...]) -> None:
    """Import what scripts would import themselves."""
    # Loading makes no garbage, and looking for it takes a fifth of the time.
    gc.disable()
    # The HTTP client's own command line, which loads a library for terminals; without it the client works as well.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    sys.path.insert(0, str(ROOT))
    for name in modules:
        importlib.import_module(name)
    sys.path.remove(str(ROOT))
    # Copies share these pages for as long as no collection writes to them.
    gc.freeze()
    gc.enable()


def serve(listener: socket.socket) -> Asked | None:
    """Fork for each script. Returns what was asked in the fork, and None in the server at its end."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    # A terminal sends it to all of its processes: the tests end first, and this one with them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    callers: dict[int, socket.socket] = {}
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener.fileno(), ended, 0], [], [])
        if ended in ready:
            os.read(ended, 1 << 12)
            tell_ends(callers)
        if 0 in ready:
            return None
        if listener.fileno() not in ready:
            continue
        asked = read(listener.accept()[0])
        if asked is None:
            continue
        child = os.fork()
        if not child:
            break
        callers[child] = asked.caller
        for stream in asked.streams:
            os.close(stream)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in (ended, wake):
        os.close(descriptor)
    for caller in callers.values():
        caller.close()
    return asked


def read(caller: socket.socket) -> Asked | None:
    """Take what *caller* asks for; None where it was killed before it had said it."""
    length, streams, _, _ = socket.recv_fds(caller, 4, 3)
    with caller.makefile("rb") as stream:
        said = stream.read(int.from_bytes(length))
    if len(length) == 4 and len(said) == int.from_bytes(length):
        return Asked(caller, streams, *json.loads(said))
    for descriptor in streams:
        os.close(descriptor)
    caller.close()
    return None


def tell_ends(callers: dict[int, socket.socket]) -> None:
    """Tell those whose script has ended how it ended."""
    while callers:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with callers.pop(child) as caller:
            try:
                caller.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
            except OSError:
                # Killed, and its script with it.
                continue


def become(asked: Asked) -> None:
    """Be the process that the caller would have started."""
    for number, stream in enumerate(asked.streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(asked.folder)
    os.environ.clear()
    os.environ.update(asked.environment)
    time.tzset()
    random.seed()
    threading.Thread(target=obey, args=(asked.caller,), daemon=True).start()


def obey(caller: socket.socket) -> None:
    """Take the signals of the process that stands for this one, and do not outlive it."""
    while said := caller.recv(1):
        os.kill(os.getpid(), said[0])
    os.kill(os.getpid(), signal.SIGKILL)


def run(asked: Asked) -> None:
    """Run the script as `python` does."""
    flags = list(itertools.takewhile(lambda each: each in ("-u", "-P"), asked.arguments))
    sys.argv = asked.arguments[len(flags) :]
    if "-P" not in flags:
        sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    else:
        # A program may have a folder of this repository's name.
        for name in [each for each in sys.modules if each.partition(".")[0] == "tools"]:
            del sys.modules[name]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
