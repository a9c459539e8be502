"""Entry point of the `dra-infra` process: sets up what holds for the whole of it, before anything else loads."""

from __future__ import annotations

import atexit
import gc
import sys

from dra_infra.process import EXIT_INTERRUPTED, end_quietly


def main() -> None:
    """Run the program."""
    end_quietly()
    # Almost all that a command makes stays until its end: looking for garbage every 700 objects takes a third of its
    # time, and once more at the end a tenth of a short one's.
    gc.set_threshold(100_000, 20, 100)
    atexit.register(gc.freeze)
    from dra_infra.cli.app import main as run

    try:
        run()
    except KeyboardInterrupt:
        end_quietly()
        sys.exit(EXIT_INTERRUPTED)
    finally:
        end_quietly()
