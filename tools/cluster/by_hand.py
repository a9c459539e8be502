"""Hold a control plane by hand: what ``python -m tools.cluster`` and ``make cluster`` do."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tools import build, cache
from tools.cluster import components
from tools.cluster.control_plane import ControlPlane
from tools.errors import ToolError
from tools.node import BUSYBOX, RealNode
from tools.node.simulated_driver import SimulatedDriver, first_device

if TYPE_CHECKING:
    from collections.abc import Sequence

_NODE = "real-node"
_ABOUT_THE_NODE = """\
The node {node.name} is this machine, with namespaces of its own. It has the image {image} and asks no registry.

  kubelet's root   {node.kubelet_root}
  CDI specs        {node.cdi_folder}
  its kubeconfig   {node.kubeconfig}
  logs             {node.folder}/kubelet.log, containerd.log
"""
_ABOUT_THE_DRIVER = """\
The node has the devices of {fleet}, simulated by dra-infra-plugin. Device classes: {classes}.

  its log          {driver.log}
  let one fail     dra-infra-plugin sim fail {device} --file {driver.commands}
  and heal it      dra-infra-plugin sim heal --file {driver.commands}

A pod that shows what it got:

  kubectl apply -f {driver.pod}
  kubectl wait --for=condition=Ready pod/one-device
  kubectl logs one-device
"""
_THE_END = "Ctrl-C ends all of it, pods too, and puts the machine back as it was."


def _say_waiting() -> None:
    print("this machine has as many nodes as it may have: waiting for the end of one", flush=True)


def _say(text: str) -> None:
    # Whoever reads this through a pipe waits for it as others do.
    print(text, flush=True)


def _path() -> str:
    """What has to be in PATH for the commands that are told; empty where they are found already."""
    folders = {"kubectl": cache.links(), "dra-infra-plugin": Path(sys.executable).parent.absolute()}
    return "".join(f"{folder}:" for name, folder in folders.items() if not shutil.which(name))


def _check(options: argparse.Namespace) -> str:
    """What can be known before anything is started; the first device of the fleet, if there is one.

    Raises:
        ToolError: It cannot be done.
    """
    if options.node and os.geteuid() != 0:
        raise ToolError(
            "a node makes namespaces, mounts and control groups, which root alone may do",
            hint="run it as root, who needs `make tools` too; make cluster without NODE and FLEET needs no root",
        )
    device = first_device(options.fleet, _NODE) if options.fleet else ""
    if not build.has_go():
        _say("go is not on PATH: what is built is taken where all but Go's version fits")
    return device


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
        device = _check(options)
        with contextlib.ExitStack() as running:
            _say("starting a control plane ...")
            plane = running.enter_context(
                ControlPlane(
                    components=chosen,
                    emulated_version=options.emulate,
                    nodes=[_NODE] if options.node else [],
                )
            )
            if options.node:
                _say("starting a node ...")
            real = (
                running.enter_context(RealNode(plane, name=_NODE, on_wait=_say_waiting))
                if options.node
                else None
            )
            print(
                f"ready after {time.monotonic() - started:.1f} s: {', '.join(plane.components)} at {plane.url}"
            )
            print(f"\n  export KUBECONFIG={plane.kubeconfig}")
            if path := _path():
                print(f"  export PATH={path}$PATH")
            print()
            if real is None:
                print("It has no nodes yet. Ctrl-C ends it and removes all its files.", flush=True)
                plane.hold()
            _say(_ABOUT_THE_NODE.format(node=real, image=BUSYBOX))
            if options.fleet:
                driver = running.enter_context(SimulatedDriver(plane, real, options.fleet))
                classes = ", ".join(driver.classes)
                _say(
                    _ABOUT_THE_DRIVER.format(
                        fleet=options.fleet, driver=driver, classes=classes, device=device
                    )
                )
            _say(_THE_END)
            real.hold()
    except KeyboardInterrupt:
        print("\nstopped, nothing is left")
        return 0
    except ToolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
