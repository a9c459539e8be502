"""``python -m tools.cluster``: where the process begins. What it does is in `by_hand`, which takes a moment to load."""

from __future__ import annotations

import sys

from dra_infra.process import EXIT_INTERRUPTED, end_quietly, unwind


def main() -> None:
    """Run the program."""
    end_quietly()
    from tools.cluster import by_hand

    try:
        unwind()
        status = by_hand.main()
        end_quietly()
    except KeyboardInterrupt:
        end_quietly()
        status = EXIT_INTERRUPTED
    sys.exit(status)


if __name__ == "__main__":
    main()
