"""Starts one command from a small process and tells what it took: `python -I -S launcher.py DESCRIPTOR COMMAND...`.

Linux never gives a process less memory than the one had that started it: exec keeps the high-water mark of what it
replaces (`setmax_mm_hiwater_rss` in fs/exec.c). Started by a test run, an empty program seems to take hundreds of MiB.
This process imports nothing that is not there already and holds 9 MiB, as an interpreter does that runs nothing;
memory below that is not to be told apart.

The descriptor gets one line: the exit code, negative for a signal, then wall seconds and `ru_maxrss`, or the reason why
the command was not started.
"""

from __future__ import annotations

import os
import sys
import time

# SIGPIPE and SIGXFSZ, which Python ignores and a command should not; `signal` alone would bring 1 MiB.
_IGNORED = (13, 25)


def main() -> None:
    """Run the command to its end."""
    report = int(sys.argv[1])
    command = sys.argv[2:]
    started = time.perf_counter()
    try:
        process = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_CLOSE, report)],
            setsigdef=_IGNORED,
        )
    except OSError as error:
        os.write(report, f"cannot be started: {error.strerror}\n".encode())
        return
    # wait4 gives the memory of this child alone; getrusage would give that of the largest so far.
    _, status, usage = os.wait4(process, 0)
    seconds = time.perf_counter() - started
    os.write(report, f"{os.waitstatus_to_exitcode(status)} {seconds!r} {usage.ru_maxrss}\n".encode())


if __name__ == "__main__":
    main()
