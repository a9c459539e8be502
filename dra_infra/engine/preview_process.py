"""The CLI in a session of its own, so that everything it started can be found and ended.

The engine puts its plugins into process groups of their own, which a signal to its group would miss; sessions they keep.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final

MAX_LINE: Final = 32 * 2**20
"""Bytes of one event. An object has at most 1.5 MB in etcd; an event holds it four times, in JSON."""

_GRACE: Final = 5.0
"""Seconds that a cancelled engine has to end its plugins itself."""

_SEARCHES: Final = 3
"""A process may start another while it is looked for."""


def start(
    arguments: Sequence[str], *, directory: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the CLI, without a shell and without a terminal.

    Raises:
        OSError: It is not there, or cannot be run.
    """
    return subprocess.Popen(
        list(arguments),
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Cancel the engine if it still runs, and end whatever it left behind."""
    if process.poll() is None:
        # As Ctrl-C does: the engine cancels the preview and ends its plugins.
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    for _ in range(_SEARCHES):
        left = list(_find_session(process.pid))
        for number in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not left:
            break
    if process.poll() is None:
        process.kill()
    process.wait()


def read_lines(stream: IO[bytes], take: Callable[[bytes], None], skip: Callable[[], None]) -> None:
    """Give each line of *stream* to *take*; one that is too long is read to its end and told to *skip*."""
    while line := stream.readline(MAX_LINE):
        if line.endswith(b"\n") or len(line) < MAX_LINE:
            take(line)
            continue
        skip()
        while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
            pass


def _find_session(leader: int) -> Iterator[int]:
    """Processes of the session of *leader* that still run."""
    for number in _all_processes():
        if number == os.getpid():
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(number) == leader and not _is_dead(number):
                yield number


def _all_processes() -> Iterator[int]:
    folder = Path("/proc")
    if folder.is_dir():
        yield from (int(each.name) for each in folder.iterdir() if each.name.isdigit())
        return
    # Other systems than Linux have no such folder; `ps` is part of POSIX.
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=False)
    yield from (int(each) for each in listed.stdout.split() if each.isdigit())


def _is_dead(number: int) -> bool:
    """Whether only its parent's look at its exit code is missing."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False
