"""Pods that run on a real node: small, quick to start and quick to end."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from tools.cluster import Api, Manifest, WaitTimeoutError
from tools.cluster.api import PATIENCE
from tools.node import BUSYBOX

CLAIM = "resource.k8s.io/v1/ResourceClaim"

_PRINTED = "-- that is all"

# A shell that waits ends at once when it is told to; a sleep that is the first process of a pod never is.
_UNTIL_DELETED = "trap exit TERM; while :; do sleep 3600 & wait $!; done"


@dataclass(frozen=True)
class Workloads:
    """What a test has in its namespace."""

    api: Api
    namespace: str

    def container(self, name: str = "main", *, script: str = "", **fields: Any) -> Manifest:
        """A container that runs *script* and then waits for its end."""
        command = ["sh", "-c", f"{script}\n{_UNTIL_DELETED}"]
        return {"name": name, "image": BUSYBOX, "command": command, **fields}

    def pod(self, name: str, *containers: Manifest, **fields: Any) -> Manifest:
        """Create a pod; without *containers* it has one that waits."""
        return self.api.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "terminationGracePeriodSeconds": 5,
                    "containers": list(containers) or [self.container()],
                    **fields,
                },
            }
        )

    def claim(
        self,
        name: str,
        *requests: Manifest,
        config: Manifest | None = None,
        config_of: Sequence[str] = (),
        same: str | None = None,
    ) -> Manifest:
        """Create a claim; without *requests* of one GPU; its devices have the attribute *same* in common.

        *config* is for all requests, or for those that *config_of* names.
        """
        return self.api.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"devices": _devices(requests, config, same, config_of)},
            }
        )

    def template(self, name: str, *requests: Manifest, config: Manifest | None = None) -> Manifest:
        """Create a template, of which each pod gets a claim."""
        return self.api.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"spec": {"devices": _devices(requests, config)}},
            }
        )

    def pod_with_claim(self, name: str, claim: str, *containers: Manifest, **fields: Any) -> Manifest:
        """Create a pod all of whose containers have the claim, which they find as ``gpu``; it prints its variables."""
        made = containers or (self.container(),)
        with_claim = [{"resources": {"claims": [{"name": "gpu"}]}, **_printing(one)} for one in made]
        claims = [{"name": "gpu", "resourceClaimName": claim}]
        return self.pod(name, *with_claim, resourceClaims=claims, **fields)

    def pod_of_template(self, name: str, template: str, **fields: Any) -> Manifest:
        """Create a pod with a claim of its own; it prints its variables."""
        container = {**_printing(self.container()), "resources": {"claims": [{"name": "gpu"}]}}
        claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
        return self.pod(name, container, resourceClaims=claims, **fields)

    def environment(self, pod: str, container: str = "main") -> dict[str, str]:
        """The variables of a container that printed them."""
        printed = self.wait_for_log(pod, _PRINTED, container)
        lines = printed.partition(_PRINTED)[0].splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def devices(self, pod: str, container: str = "main") -> list[str]:
        """The devices that a container sees: values of its variables ``GPU_DEVICE_<number>``."""
        variables = self.environment(pod, container)
        return sorted(
            value
            for name, value in variables.items()
            if re.fullmatch(r"GPU_DEVICE_\w+", name) and value.startswith("gpu-")
        )

    def claims(self) -> list[Manifest]:
        """All claims of the test."""
        return self.api.list(CLAIM, namespace=self.namespace)

    def wait_running(self, name: str, *, timeout: float = PATIENCE) -> Manifest:
        """The pod, once it and all of its containers run."""
        return self.api.wait_until(
            "v1/Pod", name, all_containers_run, namespace=self.namespace, timeout=timeout
        )

    def log(self, name: str, container: str = "main") -> str:
        """What a container has printed."""
        response = self.ask_for_log(name, container)
        assert response.status_code == 200, response.text
        return response.text

    def wait_for_log(
        self, name: str, text: str, container: str = "main", *, timeout: float = PATIENCE
    ) -> str:
        """What a container has printed, once *text* is in it. It may not have started, and the kubelet may be away."""
        deadline = time.monotonic() + timeout
        while True:
            response = self.ask_for_log(name, container)
            if response.status_code == 200 and text in response.text:
                return response.text
            assert time.monotonic() < deadline, f"{text!r} is not in: {response.text}"
            time.sleep(0.05)

    def ask_for_log(self, name: str, container: str) -> httpx.Response:
        """The server's answer: the log, or why there is none."""
        # The client reads JSON, which a log is not.
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/log"
        return self.api._client.get(path, params={"container": container})

    def delete(self, name: str) -> None:
        """Delete a pod and return when it is gone."""
        self.api.delete("v1/Pod", name, namespace=self.namespace)
        self.api.wait_gone("v1/Pod", name, namespace=self.namespace)

    def events(self, pod: str, reason: str) -> list[str]:
        """What was told of a pod for that reason."""
        return _told(self.api.list("v1/Event", namespace=self.namespace), pod, reason)

    def wait_for_event(self, pod: str, reason: str, text: str) -> None:
        """Wait until *text* was told of a pod for that reason; something else may be told first.

        Raises:
            AssertionError: It was not; with what was.
        """
        try:
            self.api.wait_for(
                "v1/Event",
                lambda found: any(text in one for one in _told(found, pod, reason)),
                namespace=self.namespace,
                timeout=PATIENCE,
            )
        except WaitTimeoutError as error:
            raise AssertionError(f"{text!r} is not in: {self.events(pod, reason)}") from error

    def wait_not_placed(self, pod: str, text: str) -> None:
        """Wait until the scheduler gives *text* as the reason why it cannot place a pod.

        Its events would not do: one of a pod keeps the reason that came first, such as that a claim was not there yet.
        """
        self.api.wait_until(
            "v1/Pod",
            pod,
            lambda found: any(
                one["type"] == "PodScheduled" and one["status"] == "False" and text in one.get("message", "")
                for one in found["status"].get("conditions", [])
            ),
            namespace=self.namespace,
            timeout=PATIENCE,
        )

    def remove_all(self) -> None:
        """Delete everything of the test and return when pods and claims are gone."""
        for kind in ("v1/Pod", CLAIM):
            for item in self.api.list(kind, namespace=self.namespace):
                if "deletionTimestamp" not in item["metadata"]:
                    # A pod of a Deployment and a claim of a template are collected meanwhile.
                    name = item["metadata"]["name"]
                    self.api.delete(kind, name, namespace=self.namespace, missing_ok=True)
            self.api.wait_for(kind, lambda items: not items, namespace=self.namespace, timeout=180.0)


def request(
    count: int = 1, *, name: str = "gpu", device_class: str = "gpu.nvidia.com", **fields: Any
) -> Manifest:
    """A request for devices of a class."""
    return {"name": name, "exactly": {"deviceClassName": device_class, "count": count, **fields}}


def _devices(
    requests: tuple[Manifest, ...],
    config: Manifest | None,
    same: str | None = None,
    config_of: Sequence[str] = (),
) -> Manifest:
    devices: Manifest = {"requests": list(requests) or [request()]}
    if config is not None:
        devices["config"] = [{"requests": [*config_of], "opaque": config}]
    if same is not None:
        devices["constraints"] = [{"matchAttribute": same}]
    return devices


def _told(events: list[Manifest], pod: str, reason: str) -> list[str]:
    return [
        one["message"]
        for one in events
        if one["involvedObject"].get("name") == pod and one["reason"] == reason
    ]


def _printing(container: Manifest) -> Manifest:
    *program, script = container["command"]
    return {**container, "command": [*program, f"env; echo {_PRINTED}\n{script}"]}


def all_containers_run(pod: Manifest) -> bool:
    """Whether a pod and all of its containers run."""
    statuses = pod["status"].get("containerStatuses", [])
    return pod["status"].get("phase") == "Running" and all("running" in one["state"] for one in statuses)
