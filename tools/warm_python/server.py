"""Load modules once, then run each script that is asked for in a fork.

Started by path with the path of its socket and the names of the modules; ends when its standard input does.
A script has two forks: its own process, and one that passes signals on to it and tells its caller how it ended.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
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
import tempfile
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

ROOT: Final = Path(__file__).resolve().parents[2]
MOST_DESCRIPTORS: Final = 64
FREE: Final = 512
"""No caller has so many descriptors that one has this number."""


class Asked(NamedTuple):
    """A script, from the process that stands for it."""

    caller: socket.socket
    descriptors: dict[int, int]
    """Those of this process, by the number that each has in the caller."""

    arguments: list[str]
    folder: str
    environment: dict[str, str]

    def close(self) -> None:
        """Close the connection and the descriptors here."""
        self.caller.close()
        for descriptor in self.descriptors.values():
            os.close(descriptor)


def main(path: str, *modules: str) -> None:
    """Serve at *path* until the standard input ends; a fork returns from its script."""
    load(modules)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        asked = serve(listener)
    if asked is not None:
        become(asked)
        end(run(asked))


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
    # A terminal sends it to all of its processes: the tests end first, and this one with them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if 0 in ready:
            reap()
            return None
        asked = read(listener.accept()[0])
        if asked is None:
            continue
        if not os.fork():
            break
        asked.close()
        reap()
    listener.close()
    script = os.fork()
    if script:
        keep(script, asked)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return asked


def reap() -> None:
    """Take leave of the keepers whose scripts have ended, so that the time of all counts as the server's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def read(caller: socket.socket) -> Asked | None:
    """Take what *caller* asks for; None where it was killed before it had said it."""
    length, descriptors, _, _ = socket.recv_fds(caller, 4, MOST_DESCRIPTORS)
    with caller.makefile("rb") as stream:
        said = stream.read(int.from_bytes(length))
    if len(length) == 4 and len(said) == int.from_bytes(length):
        numbers, arguments, folder, environment = json.loads(said)
        return Asked(caller, dict(zip(numbers, descriptors, strict=True)), arguments, folder, environment)
    for descriptor in descriptors:
        os.close(descriptor)
    caller.close()
    return None


def keep(script: int, asked: Asked) -> NoReturn:
    """Pass the signals of the caller on to *script*, end it with the caller, and tell the caller how it ended."""
    nothing = os.open(os.devnull, os.O_RDWR)
    # Who reads what the script or the server writes waits until nobody has the other end.
    for descriptor in (*asked.descriptors.values(), 0, 1, 2):
        os.dup2(nothing, descriptor)
    obeying = threading.Thread(target=obey, args=(script, asked.caller), daemon=True)
    obeying.start()
    os.waitid(os.P_PID, script, os.WEXITED | os.WNOWAIT)
    # It keeps its number until nobody sends it signals any more: another process would get them.
    with contextlib.suppress(OSError):
        asked.caller.shutdown(socket.SHUT_RD)
    obeying.join()
    _, status = os.waitpid(script, 0)
    # The caller may have been killed, and the script with it.
    with contextlib.suppress(OSError):
        asked.caller.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, signed=True))
    os._exit(0)


def obey(script: int, caller: socket.socket) -> None:
    """Send *script* the signals that *caller* gets, and kill it when *caller* ends."""
    with contextlib.suppress(ProcessLookupError):
        with contextlib.suppress(ConnectionError):
            while said := caller.recv(1):
                os.kill(script, said[0])
        os.kill(script, signal.SIGKILL)


def become(asked: Asked) -> None:
    """Be the process that the caller would have started."""
    asked.caller.close()
    # Out of the way of the numbers that they get.
    apart = {number: fcntl.fcntl(each, fcntl.F_DUPFD, FREE) for number, each in asked.descriptors.items()}
    for each in asked.descriptors.values():
        os.close(each)
    for number, each in apart.items():
        os.dup2(each, number)
        os.close(each)
    os.chdir(asked.folder)
    os.environ.clear()
    os.environ.update(asked.environment)
    # A module that was loaded before may have asked for the folder of the server.
    tempfile.tempdir = None
    time.tzset()
    random.seed()


def run(asked: Asked) -> int:
    """Run the script, or the code, as `python` does, and return its exit status."""
    flags = list(itertools.takewhile(lambda each: each in ("-u", "-s", "-P", "-S"), asked.arguments))
    sys.argv = asked.arguments[len(flags) :]
    if "-P" not in flags:
        sys.path.insert(0, str(Path(sys.argv[0]).resolve().parent))
    else:
        # A program may have a folder of this repository's name.
        for name in [each for each in sys.modules if each.partition(".")[0] == "tools"]:
            del sys.modules[name]
    try:
        if sys.argv[0] != "-c":
            runpy.run_path(sys.argv[0], run_name="__main__")
            return 0
        code = sys.argv.pop(1)
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})  # noqa: S102 - what the caller would run.
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        return ended.code or 0
    return 0


def end(status: int) -> None:
    """End as the interpreter does, but leave what is loaded in memory: to take it apart takes longer than most scripts."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - in this order.
    atexit._run_exitfuncs()  # noqa: SLF001
    # Where nobody reads any more, the interpreter says so as it ends.
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


if __name__ == "__main__":
    main(*sys.argv[1:])
