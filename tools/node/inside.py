"""Process 1 of a node's namespaces: starts what runs on the node, and takes the orphans.

Run by ``unshare``; it imports only the standard library. When it ends, the kernel ends all of the node's processes, those
of pods too, and all of the node's mounts go. It listens on a socket; a connection carries one request and its answer,
each a JSON object: ``{"start": name, "argv": [...], "env": {...}}``, ``{"end": name, "signal": number}`` (answered when
the process has ended) and ``{"state": name}``. An answer is ``{"running": bool, "code": int or null}`` or ``{"error": text}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
from pathlib import Path

MS_SHARED = 1 << 20
MS_REC = 1 << 14


def _mount(source: str, target: str, kind: str, flags: int = 0) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), f"mount on {target}: {os.strerror(ctypes.get_errno())}")


class _Node:
    def __init__(self, address: str) -> None:
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.codes: dict[str, int] = {}
        self.waiting: list[tuple[str, socket.socket]] = []
        self.listener = socket.socket(socket.AF_UNIX)
        # Under its name only when it listens: whoever sees it may connect.
        self.listener.bind(f"{address}.new")
        self.listener.listen()
        Path(f"{address}.new").rename(address)
        # Both ends are kept: a socket that is forgotten closes, and the other end could then be read without an end.
        self.deaths, self.signals = socket.socketpair()
        for end in (self.deaths, self.signals):
            end.settimeout(0.0)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self.signals.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ, self.answer)
        selector.register(self.deaths, selectors.EVENT_READ, self.reap)
        while True:
            for key, _ in selector.select():
                key.data()

    def answer(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(30.0)
        try:
            with connection.makefile("rb") as stream:
                request = json.loads(stream.readline())
        except (OSError, ValueError):
            # Whoever asked was killed meanwhile. The node, of which this is the first process, goes on.
            connection.close()
            return
        try:
            if "start" in request:
                self.start(request["start"], request["argv"], request["env"])
                self.tell(request["start"], connection)
            elif "state" in request:
                self.tell(request["state"], connection)
            else:
                self.end(request["end"], request["signal"], connection)
        except (OSError, KeyError) as error:
            self.send(connection, error=str(error))

    def start(self, name: str, argv: list[str], env: dict[str, str]) -> None:
        with Path(f"{name}.log").open("ab") as log:
            process = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.processes[name] = process
        self.codes.pop(name, None)

    def end(self, name: str, number: int, connection: socket.socket) -> None:
        if name in self.codes:
            self.tell(name, connection)
            return
        os.kill(self.processes[name].pid, number)
        self.waiting.append((name, connection))

    def reap(self) -> None:
        """Take the exit statuses of our own processes, and of the orphans of the namespace."""
        with contextlib.suppress(BlockingIOError):
            while self.deaths.recv(4096):
                pass
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                for name, process in self.processes.items():
                    if process.pid == ended[0] and name not in self.codes:
                        self.codes[name] = process.returncode = os.waitstatus_to_exitcode(ended[1])
        for name, connection in [one for one in self.waiting if one[0] in self.codes]:
            self.waiting.remove((name, connection))
            self.tell(name, connection)

    def tell(self, name: str, connection: socket.socket) -> None:
        code = self.codes.get(name)
        self.send(connection, running=name in self.processes and code is None, code=code)

    def send(self, connection: socket.socket, **answer: object) -> None:
        # Who asked may be gone.
        with contextlib.suppress(OSError), connection:
            connection.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Make the node's own file systems and serve; arguments are the socket and the folders that become private."""
    address, *folders = sys.argv[1:]
    for folder in folders:
        _mount("tmpfs", folder, "tmpfs")
    # Pods may ask for mounts that are seen on both sides.
    _mount("none", "/", "none", MS_REC | MS_SHARED)
    _Node(address).serve()


if __name__ == "__main__":
    main()
