"""Containers that run on the node: what is in them, and what the scheduler gave them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.e2e.node.example_images import LAST_LINE
from tests.support.node.workloads import Workloads, all_containers_run
from tests.support.recipes import bench
from tools.cluster import Api, Manifest

SECONDS: Final = 120.0


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container that runs.

    Args:
        pod: Its pod.
        owner: What the user wrote: a Deployment, a Job or the pod itself.
        name: Its name.
        id: As the kubelet reports it.
        env: Its variables.
        allocated: Pool and device of what its claims and requests were allocated, by the driver.
        claims: UIDs of its claims.
    """

    pod: str
    owner: str
    name: str
    id: str
    env: Mapping[str, str] = field(repr=False)
    allocated: Mapping[str, frozenset[str]]
    claims: frozenset[str]


def wait_for_containers(api: Api, pods: Mapping[str, int]) -> list[Container]:
    """The containers of all pods with claims, once as many pods of each owner as *pods* says run."""
    bound = {each.name: each for each in bench.wait_for_pods(api, pods)}
    running = api.wait_for(
        "v1/Pod",
        lambda found: all(all_containers_run(pod) for pod in found if pod["metadata"]["name"] in bound),
        timeout=SECONDS,
    )
    return [
        container
        for pod in running
        if pod["metadata"]["name"] in bound
        for container in _containers(api, pod, bound[pod["metadata"]["name"]])
    ]


def _containers(api: Api, pod: Manifest, bound: bench.BoundPod) -> Iterator[Container]:
    namespace = pod["metadata"]["namespace"]
    generated = {
        each["name"]: each["resourceClaimName"] for each in pod["status"].get("resourceClaimStatuses") or []
    }
    uids = {
        entry["name"]: api.get(
            bench.CLAIM, entry.get("resourceClaimName") or generated[entry["name"]], namespace=namespace
        )["metadata"]["uid"]
        for entry in pod["spec"]["resourceClaims"]
    }
    workloads = Workloads(api, namespace)
    ids = {each["name"]: each["containerID"] for each in pod["status"]["containerStatuses"]}
    for container in pod["spec"]["containers"]:
        asked = container.get("resources", {}).get("claims", [])
        allocated: dict[str, set[str]] = {}
        for entry, request, driver, _, device in bound.devices:
            if any(
                each["name"] == entry and each.get("request", request) in (request, request.partition("/")[0])
                for each in asked
            ):
                allocated.setdefault(driver, set()).add(device)
        yield Container(
            pod=bound.name,
            owner=bound.owner,
            name=container["name"],
            id=ids[container["name"]],
            env=_variables(workloads.wait_for_log(bound.name, LAST_LINE, container["name"], timeout=SECONDS)),
            allocated={driver: frozenset(devices) for driver, devices in allocated.items()},
            claims=frozenset(uids[each["name"]] for each in asked),
        )


def _variables(printed: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in printed.partition(LAST_LINE)[0].splitlines())
