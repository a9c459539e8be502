"""Allocation: `write QUESTION FILE` puts a question into a file, `QUESTION FILE` answers it as `allocator-bench` does.

With `stable` behind it, under the gates of the stable copy; with `place`, by `dra_infra.placement.place` for a Deployment.

The last line printed is the seconds that count: without reading the file, gathering pools and compiling expressions, as
in a scheduler that has seen such a pod before. `index` is about the first two, for a built-in fleet, and `selectors` about
evaluating alone.
"""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.api import DeviceClass, Node, Release, ResourceClaim, ResourceSlice
from dra_infra.kubernetes.cel import DeviceView, compile_expression
from dra_infra.kubernetes.cel.evaluate import Match
from dra_infra.kubernetes.scheduler.allocator import Allocated, AllocatedState, Allocator
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.scheduling import place
from dra_infra.target import ClusterTarget

NEWER = ("DRAConsumableCapacity", "DRADeviceBindingConditions", "DRAFractionalCapacityRange")
"""Gates that only newer copies of the allocator have."""

NO_MATCH = "device.attributes['gpu.nvidia.com'].productName == 'none such'"


SELECTORS = (
    'device.driver == "gpu.nvidia.com"',
    'device.attributes["gpu.nvidia.com"].productName.lowerAscii().matches("^.*a100.*$")',
    'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
    'device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("570.0.0"))',
    (
        'has(device.attributes["gpu.nvidia.com"].productName) && device.attributes["gpu.nvidia.com"].productName.contains("H100") && '
        'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0'
    ),
)
"""A comparison, a pattern, a quantity, a version, and what a class of ours compiles to."""


class Question(NamedTuple):
    """A fleet and what is asked of it.

    Args:
        fleet: Its name.
        count: GPUs of the claim.
        selector: What they have to be.
        pods: How many pods are placed one after the other; none: all nodes are asked for one. Of `selectors` rounds.
        on_one: With how many GPUs on one node, in place of the fleet.
        fits: How many nodes, or pods, fit; of `selectors` how often one matches.
        timeout: Seconds after which Kubernetes' allocator is stopped.
    """

    fleet: str
    count: int = 1
    selector: str = ""
    pods: int = 0
    on_one: int = 0
    fits: int = 0
    timeout: float = 0


QUESTIONS = {
    "index": Question("hgx-h100 x 5000", fits=5000),
    "first": Question("hgx-h100 x 500", fits=500),
    "fill": Question("hgx-h100 x 500", pods=2500, fits=2500),
    "fill-5000": Question("hgx-h100 x 5000", pods=10000, fits=10000),
    "selectors": Question("hgx-h100 x 125", pods=10, fits=40_000),
    "no-match": Question("hgx-h100 x 5000", selector=NO_MATCH),
    "nine-of-eight": Question("hgx-h100 x 100", count=9),
    "eleven-of-ten": Question("hgx-h100 x 2", count=11, on_one=10),
    "twenty-of-sixteen": Question("hgx-h100 x 2", count=20, on_one=16, timeout=30),
}


def cluster_of(question: Question) -> dict[str, Any]:
    """The question as objects."""
    fleet = load_fleet(question.fleet)
    nodes = [each.to_manifest() for each in fleet.nodes]
    slices = [each.to_manifest() for each in fleet.slices]
    if question.on_one:
        devices = [device for slice_ in slices for device in slice_["spec"]["devices"]][: question.on_one]
        slices, nodes = slices[:1], nodes[:1]
        slices[0]["spec"]["devices"] = [{**each, "name": f"gpu-{at}"} for at, each in enumerate(devices)]
    exactly: dict[str, Any] = {
        "deviceClassName": "gpu.nvidia.com",
        "allocationMode": "ExactCount",
        "count": question.count,
    }
    if question.selector:
        exactly["selectors"] = [{"cel": {"expression": question.selector}}]
    requests = [{"name": "gpu", "exactly": exactly}]
    if question is QUESTIONS["selectors"]:
        exactly["selectors"] = [{"cel": {"expression": each}} for each in SELECTORS]
    claim = {"metadata": {"name": "claim", "namespace": "ml"}, "spec": {"devices": {"requests": requests}}}
    return {
        "slices": slices,
        "classes": [each.to_manifest() for each in fleet.classes],
        "nodes": nodes,
        "claims": [claim],
        "pods": question.pods,
        "timeout": question.timeout,
    }


def everywhere(allocator: Allocator, nodes: Sequence[Node], claims: Sequence[ResourceClaim]) -> int:
    """How many nodes can take a pod."""
    return sum(isinstance(allocator.allocate(node, claims), Allocated) for node in nodes)


def fill(allocator: Allocator, nodes: Sequence[Node], claims: Sequence[ResourceClaim], pods: int) -> int:
    """Place pods on the first node that can take one, beginning with that of the pod before."""
    start = placed = 0
    state = AllocatedState()
    for _ in range(pods):
        now = allocator.with_state(state)
        for turn in range(len(nodes)):
            number = (start + turn) % len(nodes)
            outcome = now.allocate(nodes[number], claims)
            if isinstance(outcome, Allocated):
                for result in outcome.results:
                    state = state.with_allocation(result)
                start = number
                placed += 1
                break
    return placed


def release(*, stable: bool = False) -> Release:
    """1.37, by default or with the gates under which its scheduler runs the stable copy of the allocator."""
    gates = dict.fromkeys(NEWER, False) if stable else {}
    return ClusterTarget(kubernetes="1.37", gates=gates).releases[0]


def answer(name: str, text: str, *, stable: bool) -> tuple[float, int]:
    """The seconds that a question takes, and how many nodes or pods fit."""
    question = QUESTIONS[name]
    cluster = json.loads(text)
    slices = [ResourceSlice.from_manifest(each) for each in cluster["slices"]]
    classes = [DeviceClass.from_manifest(each) for each in cluster["classes"]]
    claims = [ResourceClaim.from_manifest(each) for each in cluster["claims"]]
    nodes = [
        Node(name=each["metadata"]["name"], labels=each["metadata"]["labels"]) for each in cluster["nodes"]
    ]
    Allocator(release(stable=stable), slices[:1], classes).allocate(nodes[0], claims)
    allocator = Allocator(release(stable=stable), slices, classes)
    # What `index` measures, and with no match the pod before it, which wanted the same.
    for node in nodes:
        allocator.pools(node)
    if name == "no-match":
        everywhere(allocator, nodes, claims)
    started = time.perf_counter()
    if question.pods:
        fits = fill(allocator, nodes, claims, question.pods)
    else:
        fits = everywhere(allocator, nodes, claims)
    return time.perf_counter() - started, fits


def evaluate(text: str) -> tuple[float, int]:
    """The seconds of evaluating the selectors of a question, and how often one matches.

    On views of the devices, which our allocator makes once; Kubernetes' makes what they are for in each evaluation.
    """
    cluster = json.loads(text)
    slices = [ResourceSlice.from_manifest(each) for each in cluster["slices"]]
    views = [
        DeviceView(each.spec.driver, device.attributes or {}, device.capacity or {})
        for each in slices
        for device in each.spec.devices or []
    ]
    (claim,) = cluster["claims"]
    (request,) = claim["spec"]["devices"]["requests"]
    programs = [compile_expression(each["cel"]["expression"]) for each in request["exactly"]["selectors"]]
    matches = 0
    started = time.perf_counter()
    for _ in range(cluster["pods"]):
        for view in views:
            matches += sum(isinstance(each.evaluate(view), Match) for each in programs)
    return time.perf_counter() - started, matches


def place_all(name: str) -> tuple[float, int]:
    """The same with all that a simulation does: reading the fleet as a server has it, pools, and all other checks of a pod."""
    question = QUESTIONS[name]
    (claim,) = cluster_of(question)["claims"]
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": claim["metadata"],
        "spec": {"spec": claim["spec"]},
    }
    pod = {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "claim"}],
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "pods", "namespace": "ml"},
        "spec": {"replicas": question.pods or 1, "template": {"spec": pod}},
    }
    manifests = [template, deployment]
    place(PlacementQuestion(manifests=manifests, fleet=load_fleet("hgx-h100")))
    asked = PlacementQuestion(manifests=manifests, fleet=load_fleet(question.fleet))
    started = time.perf_counter()
    (workload,) = place(asked).workloads
    seconds = time.perf_counter() - started
    return seconds, len(workload.pods or ()) if question.pods else len(workload.nodes)


def index() -> tuple[float, int]:
    """The seconds until each node of a fleet has its pools."""
    started = time.perf_counter()
    fleet = load_fleet(QUESTIONS["index"].fleet)
    allocator = Allocator(release(), fleet.slices, fleet.classes)
    found = sum(bool(allocator.pools(node)) for node in fleet.nodes)
    return time.perf_counter() - started, found


def main() -> None:
    """Write a question or answer one."""
    if sys.argv[1] == "write":
        Path(sys.argv[3]).write_text(json.dumps(cluster_of(QUESTIONS[sys.argv[2]])))
        return
    name = sys.argv[1]
    if name == "index":
        seconds, fits = index()
    elif name == "selectors":
        seconds, fits = evaluate(Path(sys.argv[2]).read_text())
    elif sys.argv[3:] == ["place"]:
        seconds, fits = place_all(name)
    else:
        seconds, fits = answer(name, Path(sys.argv[2]).read_text(), stable=sys.argv[3:] == ["stable"])
    if fits != QUESTIONS[name].fits:
        sys.exit(f"{name}: {fits} fit, not {QUESTIONS[name].fits}")
    print(json.dumps({"question": name, "seconds": seconds, "fits": fits}))
    print(seconds)


if __name__ == "__main__":
    main()
