"""Entry point of the process `dra-infra-plugin`.

Its work is in `program`, which takes 0.1 s to load.
"""

from __future__ import annotations

import os
import sys

from dra_infra.process import EXIT_INTERRUPTED, end_quietly, unwind


def main() -> None:
    """Run the program."""
    end_quietly()
    # Late: Ctrl-C while it loads is to end the process quietly.
    from dra_infra.plugin.command import program

    try:
        unwind()
        code = program.run(sys.argv[1:], os.environ)
        end_quietly()
    except KeyboardInterrupt:
        end_quietly()
        code = EXIT_INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
