"""Jobs that wait in a queue of Kueue, the devices and classes that they ask for, and what Kueue makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dra_infra.advice.queues import advise_queued
from dra_infra.errors import Problem
from tools.cluster import Api, Manifest, node

NAMESPACE = "vision"
KEY = "h100.deviceclass.resource.k8s.io/devices"
ELSEWHERE = "a100"
"""A class that no mapping has."""
EXTENDED = "example.com/h100"
OF_MIG = "example.com/mig"
"""The resource by which pods ask for a class whose mapping has a source."""
IMPLICIT = "deviceclass.resource.kubernetes.io/h100"
NODES = {"example.com/pool": "training"}
"""Labels of the nodes of the flavor."""
COVERED = f"deviceclass.resource.kubernetes.io/{ELSEWHERE}"
"""Of such a name the queue has an amount."""
SIZE = "device.attributes['mig.example.com'].size"
MEMORY = "mig.example.com/memory"
SHARE = "shared.example.com/memory"

WORKLOAD = "kueue.x-k8s.io/v1beta2/Workload"
JOB = "batch/v1/Job"


def device_class(name: str, driver: str, **spec: Any) -> Manifest:
    selector = {"cel": {"expression": f"device.driver == '{driver}.example.com'"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector], **spec},
    }


def resource_slice(driver: str, number: int = 1, of: int = 1, **spec: Any) -> Manifest:
    pool = {"name": f"node-{driver}", "generation": 1, "resourceSliceCount": of}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{driver}-{number}"},
        "spec": {"driver": f"{driver}.example.com", "nodeName": "node", "pool": pool, **spec},
    }


def partition(name: str, size: str) -> dict[str, Any]:
    consumed = {"counterSet": "gpu", "counters": {"memory": {"value": size}}}
    return {"name": name, "attributes": {"size": {"string": size}}, "consumesCounters": [consumed]}


GPUS = [{"name": f"gpu-{number}", "attributes": {"board": {"string": "a"}}} for number in range(8)]
SHARED_GPU = {
    "name": "gpu",
    "allowMultipleAllocations": True,
    "capacity": {"memory": {"value": "80Gi", "requestPolicy": {"default": "8Gi"}}},
}
FLEET = [
    node("node", labels=NODES),
    resource_slice("gpu", devices=GPUS),
    resource_slice("mig", 1, 2, sharedCounters=[{"name": "gpu", "counters": {"memory": {"value": "80Gi"}}}]),
    resource_slice("mig", 2, 2, devices=[partition("small", "10Gi"), partition("large", "40Gi")]),
    resource_slice("shared", devices=[SHARED_GPU]),
    device_class("h100", "gpu", extendedResourceName=EXTENDED),
    device_class(ELSEWHERE, "gpu"),
    device_class("mig", "mig", extendedResourceName=OF_MIG),
    device_class("shared", "shared"),
]

COUNTED = [f"{name}.deviceclass.resource.k8s.io/devices" for name in ("h100", ELSEWHERE, "mig", "shared")]
"""Keys of the quota of the namespace."""


_numbers = itertools.count(1)


def template(requests: Sequence[Mapping[str, Any]], **devices: Any) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"claims-{next(_numbers)}", "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": list(requests), **devices}}},
    }


def a_job(
    labels: Mapping[str, str],
    *,
    claim: Mapping[str, str] | None = None,
    pods: int = 1,
    resources: Mapping[str, str] | None = None,
) -> Manifest:
    amounts = {"cpu": "1", **(resources or {})}
    container: dict[str, Any] = {
        "name": "main",
        "image": "registry.invalid/main:1",
        "resources": {"requests": amounts, "limits": amounts},
    }
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if claim:
        spec["resourceClaims"] = [{"name": "gpu", **claim}]
        container["resources"]["claims"] = [{"name": "gpu"}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"job-{next(_numbers)}", "namespace": NAMESPACE, "labels": dict(labels)},
        "spec": {"parallelism": pods, "completions": pods, "suspend": True, "template": {"spec": spec}},
    }


def exactly(device_class: str = "h100", **more: Any) -> dict[str, Any]:
    return {"name": "gpu", "exactly": {"deviceClassName": device_class, **more}}


class Submitted:
    """A Job of the queue, with what Kueue made of it."""

    def __init__(self, api: Api, job: Manifest, objects: Sequence[Manifest]) -> None:
        self._api = api
        self._objects = [*objects, job]
        self.name = job["metadata"]["name"]
        self._uid = api.create(job)["metadata"]["uid"]

    def workload(self, predicate: Callable[[Manifest], object]) -> Manifest:
        """The Workload as soon as *predicate* holds for it."""

        def is_there(found: Sequence[Manifest]) -> bool:
            return any(predicate(each) for each in found if self._owns(each))

        found = self._api.wait_for(WORKLOAD, is_there, namespace=NAMESPACE)
        return next(each for each in found if self._owns(each))

    def running(self) -> Manifest:
        """The Job as soon as it is no longer suspended."""
        return self._api.wait_until(
            JOB, self.name, lambda job: job["spec"]["suspend"] is False, namespace=NAMESPACE
        )

    def charge(self) -> dict[str, str]:
        """What the queue is charged, as soon as the Job is admitted."""
        (pods,) = self.workload(is_admitted)["status"]["admission"]["podSetAssignments"]
        self.running()
        charged: dict[str, str] = pods["resourceUsage"]
        return charged

    def refusal(self) -> str:
        """Why it is not admitted; it stays suspended."""
        status = self.workload(reserved)["status"]
        assert not is_admitted({"status": status}), status
        job = self._api.get(JOB, self.name, namespace=NAMESPACE)
        assert job["spec"]["suspend"] is True
        return str(reserved({"status": status})["message"])

    def advice(self) -> list[Problem]:
        """What we say of the Job, its claim template and the queue."""
        return [each for _, each in advise_queued(self._objects)]

    def delete(self) -> None:
        """Delete the Job and its Workload; its pods go later."""
        self._api.delete(JOB, self.name, namespace=NAMESPACE, missing_ok=True)
        for each in self._api.list(WORKLOAD, namespace=NAMESPACE):
            if self._owns(each):
                # The collector learns late of kinds that were defined a moment ago.
                name = each["metadata"]["name"]
                self._api.delete(WORKLOAD, name, namespace=NAMESPACE, missing_ok=True)
                self._api.wait_gone(WORKLOAD, name, namespace=NAMESPACE)

    def _owns(self, workload: Manifest) -> bool:
        return any(each["uid"] == self._uid for each in workload["metadata"].get("ownerReferences", ()))


def reserved(workload: Manifest) -> dict[str, Any]:
    conditions = workload.get("status", {}).get("conditions", ())
    return next((each for each in conditions if each["type"] == "QuotaReserved"), {})


def is_admitted(workload: Manifest) -> bool:
    conditions = workload.get("status", {}).get("conditions", ())
    return any(each["type"] == "Admitted" and each["status"] == "True" for each in conditions)
