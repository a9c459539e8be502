"""Entry point of the process `dra-infra-plugin`.

Its work is in `program`, which takes a moment to load.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dra_infra.process import EXIT_INTERRUPTED, end_quietly, unwind

if TYPE_CHECKING:
    from dra_infra.plugin.disk import Disk


def main() -> None:
    """Run the program."""
    end_quietly()
    from dra_infra.plugin.command import program

    try:
        unwind()
        code = program.run(sys.argv[1:], os.environ)
        end_quietly()
    except KeyboardInterrupt:
        end_quietly()
        code = EXIT_INTERRUPTED
    sys.exit(code)


def run(words: Sequence[str], environment: Mapping[str, str], *, disk: Disk | None = None) -> int:
    """As `program.run`."""
    from dra_infra.plugin.command import program

    return program.run(words, environment, disk=disk)


if __name__ == "__main__":
    main()
