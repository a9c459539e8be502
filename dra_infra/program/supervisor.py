"""The processes around a reviewed program: they bound what it uses, and end everything that it starts.

The supervisor starts a keeper, and the keeper starts the process of the program. Where the kernel gives a PID namespace,
the keeper is its first process, and every other one ends with it. Elsewhere the supervisor ends all processes by one
signal that Landlock keeps from reaching others (Linux 6.12), or one after the other. The keeper takes the exit statuses of
processes whose parents have ended, because these fill the table of processes until somebody does.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NoReturn

from dra_infra.program import home_folder, namespaces, sandbox

ENDING: Final = 2.0
"""Seconds in which everything that a program started has to end."""

TOO_MANY: Final = 122
"""Exit status if the program had more processes than it may."""

TOO_MUCH: Final = 123
"""Exit status if the program wrote more to its home than it may."""

TOO_LONG: Final = 124
"""Exit status if the program ran for too long, as timeout(1) has it."""

LEFT: Final = 125
"""Exit status if a process of the program could not be ended: it may still change what is read next."""

_STOPPED: Final = 1
_ENDS: Final = (signal.SIGTERM, signal.SIGINT)
_BOUNDS: Final = (namespaces.HOME, namespaces.PROCESS_LIMIT)
_LOOK: Final = 0.1
"""Seconds between two looks at what the program uses, where the kernel holds no bound."""

_SHARE: Final = 10
"""A look takes at most one part of so many of the time."""

_PAUSE: Final = 0.0005
_BATCH: Final = 1000
"""Exit statuses that are taken between two signals."""


def enter(*, home: Path, limit: float, network: bool, everything: bool, private: int) -> tuple[str, ...]:
    """Return in a new process, in which the program may run. In this process, end when all is done, with an exit status.

    The program is also ended when standard input is at its end, which is when whoever started this process has ended.

    Args:
        home: The folder that the program may write to. It is removed at the end.
        limit: Seconds that the program may run.
        network: Whether the program keeps the network.
        everything: Whether the program is confined by nothing.
        private: A descriptor that only the process of the program keeps.

    Returns:
        What is in force, of `sandbox.ALL`, and `namespaces.LOOPBACK`.
    """
    deadline = time.monotonic() + limit
    sandbox.adopt_orphans()
    first = not everything and namespaces.start_processes()
    at_once = not everything and not first and sandbox.hold_signals()
    reader, writer = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        is_program = False
        try:
            os.close(reader)
            _prepare_keeper(first=first, at_once=at_once)
            held = (
                frozenset() if everything else namespaces.enter(home=home, network=network, processes=first)
            )
            # Fails where the supervisor ended before this process asked for the signal.
            os.write(writer, ",".join(held).encode())
            os.close(writer)
            _fork_program(private, everything=everything)
            is_program = True
        finally:
            if not is_program:
                os._exit(1)
        loopback = tuple(held & {namespaces.LOOPBACK})
        return (sandbox.STAYING, *loopback) if first or at_once else loopback
    os.close(writer)
    os.close(private)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        said = pipe.read().decode().split(",")
    missing = () if everything else tuple(each for each in _BOUNDS if each not in said)
    status = _wait(keeper, deadline, home=home, bounds=missing)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(keeper, signal.SIGKILL)
    if not _end_all(at_once=at_once):
        sys.exit(LEFT)
    home_folder.remove(home)
    sys.exit(status)


def _prepare_keeper(*, first: bool, at_once: bool) -> None:
    """Have this process, the keeper, end with the supervisor, and everything that it starts with it.

    Args:
        first: Whether it is the first of a PID namespace.
        at_once: As for `_end_all`.
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if first:
        sandbox.end_with_parent(signal.SIGKILL)
        return
    signal.signal(signal.SIGTERM, lambda *_: os._exit(_STOPPED if _end_all(at_once=at_once) else LEFT))
    sandbox.end_with_parent(signal.SIGTERM)
    sandbox.adopt_orphans()


def _fork_program(private: int, *, everything: bool) -> None:
    """Return in the process of the program. In this process, reap, and end with the program's exit status."""
    keeper = os.getpid()
    program = os.fork()
    if program != 0:
        os.close(private)
        _reap_until_it_ends(program)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sandbox.end_with_parent(signal.SIGKILL)
    if os.getppid() != keeper:
        os._exit(1)
    if not everything:
        _limit()


def _reap_until_it_ends(program: int) -> NoReturn:
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == program:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _limit() -> None:
    """Bound the size of each file that the program writes, and let it leave no core file."""
    if sys.platform != "win32":
        import resource

        for kind, bound in ((resource.RLIMIT_FSIZE, namespaces.MOST_BYTES), (resource.RLIMIT_CORE, 0)):
            _, hard = resource.getrlimit(kind)
            most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            resource.setrlimit(kind, (most, most))


def _wait(keeper: int, deadline: float, *, home: Path, bounds: tuple[str, ...]) -> int:
    """Wait for the end of the program, or for a reason to end it. Return the exit status."""
    woken, wake = os.pipe()
    for descriptor in (woken, wake):
        os.set_blocking(descriptor, False)
    for number in (signal.SIGCHLD, *_ENDS):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    caller = sys.stdin.fileno()
    next_look = time.monotonic() + _LOOK if bounds else deadline
    while True:
        ended, status = os.waitpid(keeper, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            # A program may end between two looks.
            return _excess(keeper, home, bounds) or (code if code >= 0 else 128 - code)
        now = time.monotonic()
        if now >= deadline:
            return TOO_LONG
        if now >= next_look:
            if excess := _excess(keeper, home, bounds):
                return excess
            next_look = time.monotonic() + max(_LOOK, _SHARE * (time.monotonic() - now))
        ready, _, _ = select.select(
            [woken, caller], [], [], max(0, min(deadline, next_look) - time.monotonic())
        )
        if caller in ready or (woken in ready and not {*_ENDS}.isdisjoint(os.read(woken, 2**10))):
            return _STOPPED


def _excess(keeper: int, home: Path, bounds: tuple[str, ...]) -> int:
    """The exit status that says which bound the program is above; 0 for none."""
    most_bytes, most_files = namespaces.MOST_BYTES, namespaces.MOST_FILES
    if namespaces.HOME in bounds and home_folder.is_above(home, most_bytes=most_bytes, most_files=most_files):
        return TOO_MUCH
    if namespaces.PROCESS_LIMIT in bounds and _has_more_tasks(keeper, namespaces.MOST_PROCESSES):
        return TOO_MANY
    return 0


def _end_all(*, at_once: bool) -> bool:
    """Kill all descendants of this process: when a parent ends, its children become ours. True when none is left."""
    deadline = time.monotonic() + ENDING
    while True:
        for process in (-1,) if at_once else tuple(_children(os.getpid())):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        try:
            reaped = sum(
                1 for _ in itertools.takewhile(bool, (os.waitpid(-1, os.WNOHANG)[0] for _ in range(_BATCH)))
            )
        except ChildProcessError:
            return True
        if time.monotonic() >= deadline:
            return False
        if not reaped:
            time.sleep(_PAUSE)


def _has_more_tasks(process: int, most: int) -> bool:
    """Whether *process* and its descendants are more processes and threads than *most*."""
    count = 0
    processes = [process]
    for each in processes:
        with contextlib.suppress(OSError):
            count += len(os.listdir(f"/proc/{each}/task"))  # noqa: PTH208  (it is faster)
        if count > most:
            return True
        processes += _children(each)
    return False


def _children(process: int) -> Iterator[int]:
    """Processes whose parent is *process* (proc(5), `children`). Systems without it name none."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):  # noqa: PTH208  (it is faster)
            with contextlib.suppress(OSError):
                yield from map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
