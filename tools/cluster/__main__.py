"""Hold a control plane by hand: ``python -m tools.cluster`` or ``make cluster``."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from typing import TYPE_CHECKING

from tools.cluster import components
from tools.cluster.control_plane import ControlPlane
from tools.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a control plane, say how to use it, and keep it until Ctrl-C; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.cluster",
        description="A throw-away Kubernetes control plane on loopback, until Ctrl-C.",
    )
    parser.add_argument(
        "--api-only", action="store_true", help="only etcd and the API server: accepts, but places nothing"
    )
    parser.add_argument("--emulate", metavar="MINOR", help="behave like an older minor, from 1.34 on")
    options = parser.parse_args(arguments)
    chosen = (components.ETCD, components.APISERVER) if options.api_only else components.ALL
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    try:
        with ControlPlane(components=chosen, emulated_version=options.emulate) as plane:
            print(
                f"ready after {time.monotonic() - started:.1f} s: {', '.join(plane.components)} at {plane.url}"
            )
            print(f"\n  export KUBECONFIG={plane.kubeconfig}\n")
            print("It has no nodes yet. Ctrl-C ends it and removes all its files.", flush=True)
            plane.hold()
    except KeyboardInterrupt:
        print("\nstopped, nothing is left")
        return 0
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
