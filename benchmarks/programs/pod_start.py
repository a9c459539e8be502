"""How much later a pod runs that has a claim: real scheduler, kubelet, containerd and runc, and our plugin.

Pods with a claim of their own and the same pods without one are made in turns, one at a time. Counted is from the answer to
the request that makes a pod to the first time that the server shows it as running.

Prints the medians, and as its last line their difference in seconds.
"""

from __future__ import annotations

import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from dra_infra.catalog import load_fleet  # noqa: E402  (this is a program, run by its path)
from tools.cluster import Api, ControlPlane, create_fleet  # noqa: E402
from tools.errors import ToolError  # noqa: E402
from tools.node import BUSYBOX, RealNode  # noqa: E402

NODE = "real-node"
FLEET = "hgx-h100"
WARM_UPS = 3
PAIRS = 30
SECONDS = 30.0
PLUGIN = (sys.executable, "-m", "dra_infra.plugin.command.main")
REGISTERED = "registered at the kubelet"

NUMBERS = itertools.count(1)


def main() -> None:
    """Measure, and print."""
    with ControlPlane(nodes=[NODE]) as plane, RealNode(plane, name=NODE) as node, plane.api() as api:
        create_fleet(api, (one for one in load_fleet(FLEET).to_manifests() if one["kind"] == "DeviceClass"))
        with plugin(node):
            api.create(template())
            without, with_claim = measure(api)
    print(f"without a claim: {describe(without)}")
    print(f"with a claim: {describe(with_claim)}")
    print(f"{statistics.median(with_claim) - statistics.median(without):.3f}")


def measure(api: Api) -> tuple[list[float], list[float]]:
    """Seconds until each pod ran, without a claim and with one."""
    without = []
    with_claim = []
    for number in range(WARM_UPS + PAIRS):
        first, second = start(api, claim=False), start(api, claim=True)
        if number >= WARM_UPS:
            without.append(first)
            with_claim.append(second)
    return without, with_claim


def start(api: Api, *, claim: bool) -> float:
    """Make a pod, wait until it runs, and take it away again."""
    name = f"pod-{next(NUMBERS)}"
    container: dict[str, Any] = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait $!; done"],
    }
    spec: dict[str, Any] = {"terminationGracePeriodSeconds": 5, "containers": [container]}
    if claim:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    api.create(pod)
    made = time.perf_counter()
    api.wait_until("v1/Pod", name, lambda found: found["status"].get("phase") == "Running", timeout=SECONDS)
    seconds = time.perf_counter() - made
    api.delete("v1/Pod", name)
    api.wait_gone("v1/Pod", name, timeout=SECONDS)
    # The claim goes after its pod; what is still on its way would slow down the next pod.
    api.wait_for("resource.k8s.io/v1/ResourceClaim", lambda claims: not claims, timeout=SECONDS)
    return seconds


def template() -> dict[str, Any]:
    """Of claims for one GPU."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


@contextmanager
def plugin(node: RealNode) -> Iterator[None]:
    """The plugin with simulated devices, registered, while the context lasts."""
    options = {
        "back-end": "sim",
        "fleet": FLEET,
        "node-name": node.name,
        "kubelet-root": str(node.kubelet_root),
        "cdi-folder": str(node.cdi_folder),
        "kubeconfig": str(node.kubeconfig),
    }
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "plugin.log")
        with log.open("wb") as output:
            command = [*PLUGIN, *(f"--{name}={text}" for name, text in options.items())]
            process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output)
        try:
            deadline = time.monotonic() + SECONDS
            while REGISTERED not in log.read_text():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise ToolError(f"the plugin was not registered:\n{log.read_text()}")
                time.sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(SECONDS)


def describe(seconds: list[float]) -> str:
    """Median, lowest and highest."""
    return (
        f"{statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f}, {len(seconds)} pods)"
    )


if __name__ == "__main__":
    main()
