"""Workloads on a node, batch by batch: applied, looked into while all of their pods run, and deleted."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.e2e.node.device_plugin_workloads import Workload, containers_of
from tests.e2e.node.example_images import LAST_LINE
from tests.e2e.node.node_recipes import devices_in
from tests.support.node.workloads import CLAIM, Workloads
from tools.cluster import Api, Manifest

SECONDS: Final = 120.0
TERMINATION_MESSAGE: Final = "/dev/termination-log"
"""The file whose content the kubelet writes into the status of a container that has ended, up to 4 KiB of it."""
REFUSED: Final = "exceeded quota"
"""What somebody is told of a pod that a quota refuses, or of its claim."""


@dataclass(frozen=True)
class Seen:
    """What a container sees.

    Args:
        workload: Its workload.
        pod: Its pod.
        container: Its name.
        lasts: Whether it runs as long as the pod; init containers and those of Jobs end.
        files: The devices of which a device plugin told it.
        named: The devices of claims, by their variables.
    """

    workload: str
    pod: str
    container: str
    lasts: bool
    files: frozenset[str]
    named: frozenset[str]


@contextmanager
def running(
    api: Api, batch: Sequence[Workload], objects: Mapping[str, Sequence[Manifest]]
) -> Iterator[list[Seen]]:
    """What all containers of a batch see, while they run; in the end all is told to go, and the next batch waits for its devices.

    Args:
        api: The cluster; each workload has a namespace of its own name.
        batch: Workloads for which there are devices at once.
        objects: What to apply of each.
    """
    made = [
        _in_namespace(manifest, each.id) for each in batch for manifest in map(_as_applied, objects[each.id])
    ]
    for manifest in made:
        api.create(manifest)
    try:
        yield [one for each in batch for one in _look(api, each)]
    finally:
        for manifest in made:
            kind = f"{manifest['apiVersion']}/{manifest['kind']}"
            api.delete(kind, manifest["metadata"]["name"], namespace=manifest["metadata"]["namespace"])


def wait_gone(api: Api, workloads: Sequence[Workload]) -> None:
    """Wait until no pod and no claim of the workloads is left."""
    namespaces = {each.id for each in workloads}
    for kind in ("v1/Pod", CLAIM):
        api.wait_for(kind, lambda found: not _of(found, namespaces), timeout=SECONDS)


def _look(api: Api, workload: Workload) -> Iterator[Seen]:
    """What the containers of a workload see, once as many of its pods run as are to run, and the others are refused."""
    number = len(workload.expected)
    pods = api.wait_for(
        "v1/Pod", lambda found: sum(map(_works, found)) >= number, namespace=workload.id, timeout=SECONDS
    )
    if workload.runs is not None:
        api.wait_for(
            "v1/Event",
            lambda found: any(REFUSED in each.get("message", "") for each in found),
            namespace=workload.id,
            timeout=SECONDS,
        )
        pods = api.list("v1/Pod", namespace=workload.id)
    for pod in filter(_works, pods):
        lasting = {each["name"] for each in pod["spec"]["containers"] if pod["status"]["phase"] == "Running"}
        for container in containers_of(pod["spec"]):
            printed = _wait_for_output(api, workload.id, pod["metadata"]["name"], container["name"])
            lines = printed.partition(LAST_LINE)[0].splitlines()
            yield Seen(
                workload=workload.id,
                pod=pod["metadata"]["name"],
                container=container["name"],
                lasts=container["name"] in lasting or container.get("restartPolicy") == "Always",
                files=frozenset(each for each in lines if each.startswith(("GPU-", "MIG-"))),
                named=devices_in(dict(each.split("=", 1) for each in lines if "=" in each)),
            )


def _wait_for_output(api: Api, namespace: str, pod: str, container: str) -> str:
    """Return what a container has printed, once its last line is there.

    The log of a container that ends at once may stay empty for ever: containerd opens the pipe of its output in the background, and
    gives that up when the container has ended before (`task.Delete` calls `io.Cancel`; its log then says "reading from a closed
    fifo"). So a container that has ended is read by its termination message, which the kubelet takes from a file.
    """
    deadline = time.monotonic() + SECONDS
    while True:
        message = _termination_message(api.get("v1/Pod", pod, namespace=namespace), container)
        if LAST_LINE in message:
            return message
        response = Workloads(api, namespace).ask_for_log(pod, container)
        if response.status_code == 200 and LAST_LINE in response.text:
            return response.text
        assert time.monotonic() < deadline, f"{message!r} and {response.text!r} have no last line"
        time.sleep(0.05)


def _termination_message(pod: Manifest, container: str) -> str:
    """Return the termination message of a container; empty while it runs."""
    status = pod["status"]
    found = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    return next(
        (
            str(each["state"].get("terminated", {}).get("message", ""))
            for each in found
            if each["name"] == container
        ),
        "",
    )


def _works(pod: Manifest) -> bool:
    """Whether all of a pod runs, or has ended well."""
    status = pod["status"]
    if status.get("phase") == "Succeeded":
        return True
    started = status.get("containerStatuses", [])
    return (
        status.get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
        and len(started) == len(pod["spec"]["containers"])
        and all("running" in each["state"] or _has_ended(each) for each in started)
    )


def _has_ended(container: Manifest) -> bool:
    return bool(container["state"].get("terminated", {}).get("reason") == "Completed")


def _as_applied(manifest: Manifest) -> Manifest:
    """The object to create: of a CronJob a Job, as `kubectl create job --from` makes one before it is night."""
    if manifest["kind"] != "CronJob":
        return manifest
    name = manifest["metadata"]["name"]
    return {
        **manifest["spec"]["jobTemplate"],
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
    }


def _in_namespace(manifest: Manifest, namespace: str) -> Manifest:
    made = copy.deepcopy(manifest)
    made["metadata"]["namespace"] = namespace
    return made


def _of(found: Sequence[Manifest], namespaces: set[str]) -> list[Manifest]:
    return [each for each in found if each["metadata"]["namespace"] in namespaces]
