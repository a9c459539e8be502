"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal

from hypothesis import HealthCheck, settings

from tests import warm_commands

# Speed is measured by `make bench`: on a busy machine a deadline or a slow generator says nothing about the code.
# Whoever runs the tests looks at other cases each time; CI asks of a commit what it asked before.
settings.register_profile(
    "dra-infra",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("DRA_INFRA_REPEATABLE")),
)
settings.load_profile("dra-infra")

# Under nohup, and behind `&` in a script, SIGINT is ignored, and what tests start inherits that: what they interrupt then
# would never end. A handler of Python's own is not inherited: programs begin with the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Looking for garbage every 700 objects takes a seventh of the time of loading the tests, which stay until the end.
gc.set_threshold(50_000, 20, 100)


def pytest_sessionfinish() -> None:
    """End the process that commands of tests were forked from."""
    warm_commands.stop()
