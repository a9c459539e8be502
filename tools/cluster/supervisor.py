"""Own the processes and the folder of one cluster, and outlive whoever asked for them.

Run as a program of its own by `supervision.Supervision`; it imports only the standard library, so that it starts
in milliseconds. It makes the state folder, starts processes on request, and ends everything and removes the folder
when it is asked to, when its standard input ends, or when the process that started it is gone, however that died.
A process that only set a parent-death signal on itself would not do: the signal fires when the *thread* that
started it ends, and nobody would be left to remove the folder.

A supervisor that is killed itself leaves its folder. The next one removes it: each holds a lock on a file in its folder, and so do
the processes that it starts, so that a lock that can be had is nobody's any more.

Protocol, one JSON object per line. In: ``{"name": ..., "argv": [...], "environment": {...}}`` starts a process, ``{"at_end": argv}``
names a program that is run when all processes are gone, with the folder still there. Out: ``{"folder": ...}`` once, then
``{"started": name, "pid": ...}``, ``{"refused": name, "reason": ...}``, ``{"noted": argv}`` and
``{"exited": name, "code": ...}``.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
AT_END_SECONDS = 60.0
PREFIX = "dra-infra-cluster-"
OWNED = ".owned"


class _StopError(Exception):
    """A signal asked for the end."""


def _die_with_supervisor(supervisor: int) -> None:
    """Have the kernel kill this process if the supervisor itself is killed; runs between fork and exec."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor:
        os._exit(1)


def _make_folder() -> tuple[Path, int]:
    """A folder of ours alone, and the handle that holds its lock."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    draft = folder / f"{OWNED}.draft"
    handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    # It gets its name when it is locked: nobody finds a file there that only seems to be nobody's.
    draft.rename(folder / OWNED)
    return folder, handle


def _remove_left_overs() -> None:
    """Remove the folders of supervisors that were killed, with all that they had started. Those without a lock are left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(folder / OWNED, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid == os.geteuid() and folder.name not in _mounted():
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)
            finally:
                os.close(handle)


def _remove(folder: Path) -> None:
    """The lock's file goes last: what cannot be removed now is tried again by the next one."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        elif entry.name != OWNED:
            entry.unlink()
    (folder / OWNED).unlink()
    folder.rmdir()


def _mounted() -> set[str]:
    """The names of all folders on the way to a place where something is mounted: files there are not ours to remove."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return {part for line in lines for part in line.split()[4].split("/")}


class _Supervisor:
    def __init__(self, folder: Path, lock: int) -> None:
        self.folder = folder
        self.lock = lock
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.at_end: list[list[str]] = []
        self.selector = selectors.DefaultSelector()
        self.buffer = b""

    def say(self, **event: object) -> None:
        # Nobody reads any more when the starter is gone; that end is noticed by the selector.
        with contextlib.suppress(OSError):
            os.write(1, json.dumps(event).encode() + b"\n")

    def start(self, name: str, argv: list[str], environment: dict[str, str]) -> None:
        me = os.getpid()
        try:
            # Appended to: one that is started again goes on with its log.
            with (self.folder / f"{name}.log").open("ab") as log:
                process = subprocess.Popen(
                    argv,
                    cwd=self.folder,
                    # Settings of the user's shell (ETCD_*, proxies) must not leak into a cluster.
                    env={"HOME": str(self.folder), "PATH": os.defpath, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(self.lock,),
                    preexec_fn=lambda: _die_with_supervisor(me),  # noqa: PLW1509 - this process has one thread.
                )
        except OSError as error:
            self.say(refused=name, reason=str(error))
            return
        self.processes[name] = process
        self.selector.register(os.pidfd_open(process.pid), selectors.EVENT_READ, name)
        self.say(started=name, pid=process.pid)

    def read_requests(self) -> bool:
        """Serve the lines that have arrived; false when the other end is closed."""
        chunk = os.read(0, 65536)
        *lines, self.buffer = (self.buffer + chunk).split(b"\n")
        for line in lines:
            request = json.loads(line)
            if "at_end" in request:
                self.at_end.append(request["at_end"])
                self.say(noted=request["at_end"])
            else:
                self.start(request["name"], request["argv"], request["environment"])
        return bool(chunk)

    def serve(self, starter: int) -> None:
        self.selector.register(0, selectors.EVENT_READ, None)
        # The pipe alone would not tell of a starter that forked a copy of itself which still holds the other end.
        with contextlib.suppress(ProcessLookupError):
            self.selector.register(os.pidfd_open(starter), selectors.EVENT_READ, starter)
        while os.getppid() == starter:
            for key, _ in self.selector.select():
                if key.data is None and not self.read_requests():
                    return
                if isinstance(key.data, str):
                    self.selector.unregister(key.fd)
                    os.close(key.fd)
                    self.say(exited=key.data, code=self.processes[key.data].wait())

    def stop(self) -> None:
        # State is thrown away, so nothing is gained by letting the servers drain.
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
        for process in self.processes.values():
            process.wait()
        self.end_adopted()
        for argv in reversed(self.at_end):
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    argv, cwd=self.folder, stdin=subprocess.DEVNULL, timeout=AT_END_SECONDS, check=False
                )
        shutil.rmtree(self.folder, ignore_errors=True)

    def end_adopted(self) -> None:
        """End the processes whose parent, one of ours, is gone.

        The first process of a pid namespace is one. All others of that namespace are gone when it is.
        """
        me = os.getpid()
        while True:
            for child in Path(f"/proc/{me}/task/{me}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _stop_on_signal(*_: object) -> NoReturn:
    raise _StopError


def main() -> None:
    """Serve until the end; the only argument is the process id of the starter."""
    stops = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    for number in stops:
        signal.signal(number, _stop_on_signal)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    supervisor = _Supervisor(*_make_folder())
    try:
        supervisor.say(folder=str(supervisor.folder))
        _remove_left_overs()
        supervisor.serve(int(sys.argv[1]))
    except _StopError:
        pass
    finally:
        for number in stops:
            signal.signal(number, signal.SIG_IGN)
        supervisor.stop()


if __name__ == "__main__":
    main()
