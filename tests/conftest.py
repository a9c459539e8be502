"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tests.support import draws, warm_commands

# Speed is measured by `make bench`: on a busy machine a deadline or a slow generator says nothing about the code.
# Everyone draws the same cases; `make explore` draws others, and prints how to draw a failing one again. No database of earlier
# failures has a say in either: it differs between machines.
settings.register_profile(
    "dra-infra",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not draws.SEED,
    database=None,
    print_blob=bool(draws.SEED),
)
settings.load_profile("dra-infra")
draws.draw_no_source_constants()

# Under nohup, and behind `&` in a script, SIGINT is ignored, and what tests start inherits that: what they interrupt then
# would never end. A handler of Python's own is not inherited: programs begin with the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Lines of progress come when a machine is slow, and tests compare what is printed.
os.environ.setdefault("DRA_INFRA_PROGRESS", "off")

# Looking for garbage every 700 objects takes a seventh of the time of loading the tests, which stay until the end.
gc.set_threshold(50_000, 20, 100)


def pytest_sessionfinish() -> None:
    """End the process that commands of tests were forked from."""
    warm_commands.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how to repeat the draws of `make explore` that failed, and what to do with them."""
    failed = [report.nodeid for report in terminalreporter.stats.get("failed", ())]
    if not draws.SEED or not failed:
        return
    terminalreporter.section(f"draws of seed {draws.SEED} that failed")
    for test in failed:
        terminalreporter.line(
            f"DRA_INFRA_EXPLORE={draws.SEED} .venv/bin/pytest -n0 --hypothesis-seed={draws.SEED} '{test}'"
        )
    terminalreporter.line(
        "Mend the answer, and freeze the draw: the arguments below `Falsifying example` go into an @example(...) above the test."
    )
