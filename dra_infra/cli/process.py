"""Entry point of the `dra-infra` process: sets up what holds for the whole of it, before anything else loads."""

from __future__ import annotations

import atexit
import gc
import sys
import traceback
from typing import Final

from dra_infra.process import EXIT_INTERRUPTED, end_quietly

_EXIT_NO_ANSWER: Final = 2


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
    except Exception:  # noqa: BLE001  (the exit code of Python is 1, which says that the gate is closed)
        traceback.print_exc()
        sys.exit(_EXIT_NO_ANSWER)
    finally:
        end_quietly()
