"""Hold a control plane by hand: ``python -m tools.cluster`` or ``make cluster``."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from typing import TYPE_CHECKING

from tools.cluster import components
from tools.cluster.control_plane import ControlPlane
from tools.errors import ToolError
from tools.node import BUSYBOX, RealNode
from tools.node.simulated_driver import SimulatedDriver

if TYPE_CHECKING:
    from collections.abc import Sequence

_NODE = "real-node"
_ABOUT_THE_NODE = """\
The node {node.name} is this machine, with namespaces of its own. It has the image {image} and asks no registry.

  kubelet's root   {node.kubelet_root}
  CDI specs        {node.cdi_folder}
  its kubeconfig   {node.kubeconfig}
  logs             {node.folder}/kubelet.log, containerd.log

Ctrl-C ends all of it, pods too, and puts the machine back as it was."""
_ABOUT_THE_DRIVER = """
It has the devices of {fleet}, simulated by dra-infra-plugin. Device classes: {classes}.

  its log          {driver.log}
  let one fail     dra-infra-plugin sim fail gpu-0 --xid 79 --file {driver.commands}

A pod that shows what it got:

  kubectl apply -f {driver.pod}
  kubectl logs one-device
"""


def _say_waiting() -> None:
    print("this machine has as many nodes as it may have: waiting for the end of one", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Start a control plane, say how to use it, and keep it until Ctrl-C; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.cluster",
        description="A throw-away Kubernetes control plane on loopback, until Ctrl-C.",
    )
    parser.add_argument(
        "--api-only", action="store_true", help="only etcd and the API server: accepts, but places nothing"
    )
    parser.add_argument(
        "--node",
        action="store_true",
        help="with a real node on this machine: kubelet and containerd (needs root)",
    )
    parser.add_argument(
        "--fleet",
        metavar="FLEET",
        help="with --node: its devices, simulated by the node plugin, such as hgx-h100",
    )
    parser.add_argument("--emulate", metavar="MINOR", help="behave like an older minor, from 1.34 on")
    options = parser.parse_args(arguments)
    if options.node and options.api_only:
        parser.error("--node needs the scheduler and the controller manager: leave out --api-only")
    if options.fleet and not options.node:
        parser.error("--fleet is what a node has: add --node")
    chosen = (components.ETCD, components.APISERVER) if options.api_only else components.ALL
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    try:
        with contextlib.ExitStack() as running:
            plane = running.enter_context(
                ControlPlane(
                    components=chosen,
                    emulated_version=options.emulate,
                    nodes=[_NODE] if options.node else [],
                )
            )
            real = (
                running.enter_context(RealNode(plane, name=_NODE, on_wait=_say_waiting))
                if options.node
                else None
            )
            print(
                f"ready after {time.monotonic() - started:.1f} s: {', '.join(plane.components)} at {plane.url}"
            )
            print(f"\n  export KUBECONFIG={plane.kubeconfig}\n")
            if real is None:
                print("It has no nodes yet. Ctrl-C ends it and removes all its files.", flush=True)
                plane.hold()
            print(_ABOUT_THE_NODE.format(node=real, image=BUSYBOX), flush=True)
            if options.fleet:
                driver = running.enter_context(SimulatedDriver(plane, real, options.fleet))
                classes = ", ".join(driver.classes)
                print(
                    _ABOUT_THE_DRIVER.format(fleet=options.fleet, driver=driver, classes=classes), flush=True
                )
            real.hold()
    except KeyboardInterrupt:
        print("\nstopped, nothing is left")
        return 0
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
