"""Pods that run on a real node: small, quick to start and quick to end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from tools.cluster import Api, Manifest
from tools.node import BUSYBOX

CLAIM = "resource.k8s.io/v1/ResourceClaim"

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

    def wait_running(self, name: str, *, timeout: float = 30.0) -> Manifest:
        """The pod, once it and all of its containers run."""
        return self.api.wait_until(
            "v1/Pod", name, _all_containers_run, namespace=self.namespace, timeout=timeout
        )

    def log(self, name: str, container: str = "main") -> str:
        """What a container has printed."""
        # The client reads JSON, which a log is not.
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/log"
        response = self.api._client.get(path, params={"container": container})
        assert response.status_code == 200, response.text
        return response.text

    def wait_for_log(self, name: str, text: str, container: str = "main", *, timeout: float = 10.0) -> str:
        """What a container has printed, once *text* is in it."""
        deadline = time.monotonic() + timeout
        while text not in (printed := self.log(name, container)):
            assert time.monotonic() < deadline, f"{text!r} is not in: {printed}"
            time.sleep(0.05)
        return printed

    def delete(self, name: str) -> None:
        """Delete a pod and return when it is gone."""
        self.api.delete("v1/Pod", name, namespace=self.namespace)
        self.api.wait_gone("v1/Pod", name, namespace=self.namespace)

    def remove_all(self) -> None:
        """Delete everything of the test and return when pods and claims are gone."""
        for kind in ("v1/Pod", CLAIM):
            for item in self.api.list(kind, namespace=self.namespace):
                if "deletionTimestamp" not in item["metadata"]:
                    self.api.delete(kind, item["metadata"]["name"], namespace=self.namespace)
            self.api.wait_for(kind, lambda items: not items, namespace=self.namespace)
        self.api.delete("v1/Namespace", self.namespace)


def _all_containers_run(pod: Manifest) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return pod["status"].get("phase") == "Running" and all("running" in one["state"] for one in statuses)
