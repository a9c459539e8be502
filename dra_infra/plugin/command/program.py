"""Runs the command `dra-infra-plugin`.

SIGUSR2 shows where all threads are, for whoever sends it to a plugin that does not get on: as text, in many lines, and
the tasks of the event loop in a line of the log. A thread of its own waits for the signal, so that it does not matter
which other thread hangs.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Final

from dra_infra.errors import ClusterError, FleetError, Problem, ProblemsError
from dra_infra.output.secrets import SecretMask, secret_texts
from dra_infra.plugin.command import logs
from dra_infra.plugin.command.command_line import CommandLine, parse
from dra_infra.plugin.command.settings_reading import read_settings
from dra_infra.release import VERSION

if TYPE_CHECKING:
    from dra_infra.plugin.command.settings import Settings
    from dra_infra.plugin.disk import Disk

EXIT_NOT_WORKING: Final = 1
EXIT_MISTAKEN: Final = 2

_MISTAKES: Final = ("plugin-setting", "back-end-not-loaded", "sim-commands-malformed")
"""Prefixes of the codes of mistakes that the user made."""

_BY_SIGNAL: Final = 128


def run(words: Sequence[str], environment: Mapping[str, str], *, disk: Disk | None = None) -> int:
    """Do what the command line says; the exit code.

    Args:
        words: Behind the command's name.
        environment: Of the process.
        disk: What changes checkpoint and CDI specs; tests stop the plugin at its steps.
    """
    if words and words[0] == "sim":
        # Late: it takes 86 ms, and the plugin itself does without.
        from dra_infra.plugin.command.sim_command_line import run_sim

        return _answered(lambda: run_sim(words[1:], environment))
    line = parse(words, environment)
    if line.version:
        print(f"dra-infra-plugin {VERSION}")
        return 0
    return _answered(lambda: _run(line, environment, disk))


def _run(line: CommandLine, environment: Mapping[str, str], disk: Disk | None) -> int:
    settings, warnings = read_settings(line.flags, line.unknown, environment, line.file)
    if line.check:
        return _check(settings, line, environment)
    return _serve(settings, warnings, environment, disk)


def _answered(work: Callable[[], int]) -> int:
    try:
        return work()
    except ProblemsError as error:
        print_problems(error.problems)
        return _exit_code(error)


def print_problems(problems: Sequence[Problem]) -> None:
    """Each with its hint, on standard error."""
    mask = SecretMask(secret_texts(os.environ))
    for problem in map(mask.problem, problems):
        print(f"{'✗' if problem.severity == 'error' else '!'} {problem}", file=sys.stderr)


def _exit_code(error: ProblemsError) -> int:
    mistaken = isinstance(error, FleetError | ClusterError) or any(
        each.code.startswith(_MISTAKES) for each in error.problems
    )
    return EXIT_MISTAKEN if mistaken else EXIT_NOT_WORKING


def _serve(
    settings: Settings, warnings: Sequence[Problem], environment: Mapping[str, str], disk: Disk | None
) -> int:
    ended = threading.Event()
    _end_on_signals(ended)
    show_on_signal()
    logs.set_up(log_format=settings.log_format, level=settings.log_level, environment=environment)
    for each in warnings:
        logs.log_problem("warning", "noticed", each)
    # Late: it takes 40 MiB and 0.4 s, most of it for gRPC, and --help and mistakes in settings are told without it.
    from dra_infra.plugin.command.plugin import Plugin

    plugin = Plugin(settings, disk=disk, environment=environment)
    plugin.start()
    # What there is now stays: looking through it again and again is all that an idle plugin would do.
    gc.collect()
    gc.freeze()
    _wait_for(ended)
    logs.log("info", "stopping")
    plugin.stop()
    logs.log("info", "stopped")
    return 0


def _end_on_signals(ended: threading.Event) -> None:
    """The first asks to end, the second does not wait for it."""

    def end(number: int, _frame: FrameType | None) -> None:
        if ended.is_set():
            os._exit(_BY_SIGNAL + number)
        ended.set()

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, end)


def _wait_for(ended: threading.Event) -> None:
    """Wait for a signal. One that comes just before `ended.wait()` sleeps would be handled when that wakes: never."""
    woken, waking = socket.socketpair()
    waking.settimeout(0)
    signal.set_wakeup_fd(waking.fileno())
    while not ended.is_set():
        woken.recv(1)


def _check(settings: Settings, line: CommandLine, environment: Mapping[str, str]) -> int:
    # Late: as of `Plugin`.
    from dra_infra.plugin.command.checks import show
    from dra_infra.plugin.command.self_test import check

    return show(check(settings, environment), as_json=line.as_json, write=sys.stdout.write)


_STANDARD_ERROR: Final = 2


def show_on_signal() -> None:
    """Have the stacks of all threads written to standard error whenever SIGUSR2 comes.

    Call it before other threads are started: they inherit that the signal does not come to them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    threading.Thread(target=_show_on_signal, name="stacks", daemon=True).start()


def _show_on_signal() -> None:
    while True:
        signal.sigwait({signal.SIGUSR2})
        # Not `faulthandler.register`: its handler walks the frames of threads that go on meanwhile, which has cut its text off
        # in a test. This one holds Python's lock.
        faulthandler.dump_traceback(file=_STANDARD_ERROR, all_threads=True)
        _log_tasks()


def _log_tasks() -> None:
    # Late: it takes 20 MiB for gRPC, and the signal may come before there is a plugin.
    from dra_infra.plugin.service.serving import tasks

    # Not their stacks: those of gRPC's coroutines have no lines, which asyncio cannot print.
    # At no level that is left out: somebody has asked.
    logs.log("error", "tasks of the event loop", tasks=sorted(map(repr, tasks())))
