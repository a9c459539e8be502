"""Compare with all servers and write docs/parity.md: ``python -m tests.support.parity`` or ``make parity``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tests.support.parity import report
from tests.support.parity.differential import SEED, run
from tests.support.parity.gate_sets import GATE_SETS
from tests.support.parity.plan import counts
from tests.support.parity.server import running
from tools.errors import ToolError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.parity")
    parser.add_argument(
        "--minor", action="append", choices=SUPPORTED_MINORS, help="only this one; may be repeated"
    )
    parser.add_argument("--gates", action="append", choices=GATE_SETS, help="only these; may be repeated")
    parser.add_argument("--count", type=int, help="generated objects with the default gates (1500)")
    parser.add_argument("--seed", type=int, default=SEED, help="other objects")
    options = parser.parse_args(arguments)
    differing = 0
    for minor in options.minor or SUPPORTED_MINORS:
        for gate_set, count in counts(options.count).items():
            if options.gates and gate_set not in options.gates:
                continue
            try:
                with running(minor, gate_set) as server:
                    tally = run(server, count, seed=options.seed)
            except ToolError as error:
                print(f"error: {error}", file=sys.stderr)
                return 2
            tally.write()
            print(
                f"{minor} {gate_set}: {sum(tally.asked.values()):,} objects, {tally.count} differences",
                flush=True,
            )
            if not tally.is_clean:
                differing += 1
                print(tally.report())
    print(f"wrote {report.write().name}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
