"""Entry point of the process `dra-infra-plugin`.

Its work is in `program`, which takes 0.1 s to load.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from dra_infra.process import EXIT_INTERRUPTED, end_quietly, unwind

_EXTRA: Final = frozenset({"google", "grpc", "prometheus_client", "pydantic", "urllib3", "yaml"})
"""Modules of the extra `plugin` of pyproject.toml."""

_NOT_INSTALLED: Final = (
    "✗ dra-infra-plugin: the module {} is not installed\n"
    "  hint: pip install 'dra-infra[plugin]', or with a file: pip install 'dra_infra-VERSION-py3-none-any.whl[plugin]'"
)
_NO_ANSWER: Final = 2


def main() -> None:
    """Run the program."""
    end_quietly()
    try:
        # Late: Ctrl-C while it loads is to end the process quietly.
        from dra_infra.plugin.command import program

        unwind()
        code = program.run(sys.argv[1:], os.environ)
        end_quietly()
    except KeyboardInterrupt:
        end_quietly()
        code = EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        print(_NOT_INSTALLED.format(error.name), file=sys.stderr)
        code = _NO_ANSWER
    sys.exit(code)


if __name__ == "__main__":
    main()
