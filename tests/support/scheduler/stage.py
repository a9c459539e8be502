"""Puts scenarios on a control plane, one after the other, and tells what its scheduler does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.scheduler import EXTENDED_CLAIM_ENTRY
from tests.support.scheduler.objects import (
    DRA,
    NAMESPACE,
    claim,
    claim_spec,
    device,
    device_class,
    exactly,
    resource_slice,
)
from tests.support.scheduler.objects import node as make_node
from tests.support.scheduler.objects import pod as make_pod
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Api, ApiError, Manifest, create_fleet, kind_of
from tools.cluster.api import PATIENCE

CLAIM: Final = f"{DRA}/ResourceClaim"
QUOTA: Final = "v1/ResourceQuota"
ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
HOSTNAME: Final = "kubernetes.io/hostname"
PROBE: Final = "probe"
"""Name of the taint that keeps all other pods off the node of the probe, and start of its other names."""

_PROBES: Final = itertools.count(1)

SETTLE_SECONDS: Final = 60.0
REFUSED: Final = ("Unschedulable", "SchedulerError")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a pod.

    Args:
        pod: As the server has it then.
        node: Where it was bound; empty where the scheduler said that it cannot be.
        message: What the scheduler said then.
        claims: Its claims by the name of the entry.
    """

    pod: Manifest
    node: str
    message: str
    claims: dict[str, Manifest]


class Stage:
    """One control plane for all scenarios of a process.

    Args:
        api: Its administrator.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self._namespaces: set[str] = set()
        self._used: dict[tuple[str, str], Manifest] = {}
        self.refused: set[tuple[str, str]] = set()
        """Namespace and name of each claim of the scenario that a quota refused."""

    def prepare(self) -> None:
        """Make the namespace of scenarios, for those who ask the server before they set one."""
        self._ensure_namespace(NAMESPACE)

    @contextmanager
    def set(self, scenario: Scenario) -> Iterator[None]:
        """Create everything but the pods; when this returns, the scheduler has seen it. Takes it all away at the end."""
        self.prepare()
        for each in (*scenario.objects, *scenario.pods):
            self._ensure_namespace(each["metadata"].get("namespace"))
        # Claims of the scenario before may still hold devices, which have the names of this one's.
        for namespace in self._namespaces:
            self.wait_until_free(namespace)
        made: list[Manifest] = []
        try:
            for each in scenario.fleet:
                made += create_fleet(self.api, [each])
            quotas = [each for each in scenario.objects if kind_of(each) == QUOTA]
            made += self._set_quotas(quotas)
            for each in scenario.objects:
                if each not in quotas and (created := self._try_create(each)):
                    made.append(created)
            self._used = {_name(each): self._used_of(each) for each in quotas}
            made += self._probe()
            yield
        finally:
            self._used, self.refused = {}, set()
            for each in reversed(made):
                self._delete(kind_of(each), each["metadata"]["name"], each["metadata"].get("namespace"))
            for each in made:
                if kind_of(each) == CLAIM:
                    # It stays until the controller sees that no pod uses it, and the next scenario may reuse its name.
                    self.api.wait_gone(
                        CLAIM, each["metadata"]["name"], namespace=each["metadata"]["namespace"]
                    )

    @contextmanager
    def run(self, pod: Manifest) -> Iterator[Verdict]:
        """Create a pod and say what the scheduler decided; it goes at the end."""
        verdict = self.create(pod)
        try:
            yield verdict
        finally:
            self.remove(pod)

    def create(self, pod: Manifest) -> Verdict:
        """Create a pod and wait until the scheduler has decided.

        Raises:
            WaitTimeoutError: It decided nothing.
        """
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self.api.create(pod)
        seen = self.api.wait_until("v1/Pod", name, is_decided, namespace=namespace, timeout=SETTLE_SECONDS)
        condition = scheduled_condition(seen)
        return Verdict(
            pod=seen,
            node=seen["spec"].get("nodeName", ""),
            message="" if seen["spec"].get("nodeName") else str(condition.get("message", "")),
            claims=self._claims_of(seen),
        )

    def remove(self, pod: Manifest) -> None:
        """Delete a pod, and wait until its claims are free again."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        self._delete("v1/Pod", name, namespace)
        self.api.wait_gone("v1/Pod", name, namespace=namespace)

    def wait_until_free(self, namespace: str) -> None:
        """Wait until no claim of the namespace has devices."""
        self.api.wait_for(
            CLAIM,
            lambda claims: not any("allocation" in each.get("status", {}) for each in claims),
            namespace=namespace,
        )

    def wait_until_returned(self) -> None:
        """Wait until quotas are used as they were before the first pod came."""
        for namespace, name in self._used:
            self.api.wait_until(
                QUOTA,
                name,
                lambda seen: seen["status"]["used"] == self._used[_name(seen)],
                namespace=namespace,
            )

    def allocations(self) -> list[Manifest]:
        """`status.allocation` of every claim of the cluster that has one."""
        return [
            each["status"]["allocation"]
            for each in self.api.list(CLAIM)
            if "allocation" in each.get("status", {})
        ]

    def _set_quotas(self, quotas: Sequence[Manifest]) -> list[Manifest]:
        """Create quotas and wait until they are in force.

        Admission follows quotas by a watch of its own, which nothing tells about. A last one, which refuses something else,
        is known to it when those before are.
        """
        made: list[Manifest] = []
        for namespace in sorted({_name(each)[0] for each in quotas}):
            last = _last_quota(namespace)
            for each in (*(each for each in quotas if _name(each)[0] == namespace), last):
                made.append(self.api.create(each))
                self.api.wait_until(QUOTA, each["metadata"]["name"], _has_been_counted, namespace=namespace)
            refused = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": PROBE, "namespace": namespace},
            }
            deadline = time.monotonic() + PATIENCE
            while not _is_refused(lambda: self.api.create(refused, dry_run=True)):  # noqa: B023 - called here.
                assert time.monotonic() < deadline
                time.sleep(0.02)
            self._delete(QUOTA, last["metadata"]["name"], namespace)
        return made

    def _try_create(self, manifest: Manifest) -> Manifest | None:
        """Create an object; None where a quota refuses it, as it may claims."""
        made: list[Manifest] = []
        if _is_refused(lambda: made.append(self.api.create(manifest))):
            assert kind_of(manifest) == CLAIM
            self.refused.add(_name(manifest))
            return None
        return made[0]

    def _used_of(self, quota: Manifest) -> Manifest:
        namespace, name = _name(quota)
        found: Manifest = self.api.get(QUOTA, name, namespace=namespace)["status"]["used"]
        return found

    def _claims_of(self, pod: Manifest) -> dict[str, Manifest]:
        generated = {
            each["name"]: each.get("resourceClaimName")
            for each in pod.get("status", {}).get("resourceClaimStatuses") or []
        }
        found = {}
        for entry in pod["spec"].get("resourceClaims") or []:
            name = entry.get("resourceClaimName") or generated.get(entry["name"])
            if name:
                found[entry["name"]] = self.api.get(CLAIM, name, namespace=pod["metadata"]["namespace"])
        extended = pod.get("status", {}).get("extendedResourceClaimStatus")
        if extended:
            name = extended["resourceClaimName"]
            found[EXTENDED_CLAIM_ENTRY] = self.api.get(CLAIM, name, namespace=pod["metadata"]["namespace"])
        return found

    def _ensure_namespace(self, name: str | None) -> None:
        if name is None or name in self._namespaces:
            return
        self._namespaces.add(name)
        if name != "default" and self.api.find("v1/Namespace", name) is None:
            metadata = {"name": name, "labels": {ADMIN_LABEL: "true"}}
            self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.api.wait_until("v1/ServiceAccount", "default", bool, namespace=name)

    def wait_until_seen(self) -> None:
        """Return when the scheduler has seen all that there is; a namespace of ours stays."""
        for each in reversed(self._probe()):
            self._delete(kind_of(each), each["metadata"]["name"], each["metadata"].get("namespace"))

    def _probe(self) -> list[Manifest]:
        """Bind a pod to a device that was published last: the scheduler then has seen everything before it.

        Each kind comes to the scheduler in the order of its changes, so the last object of each kind will do. The
        device, its node and its class are of no use to any other pod.
        """
        number = next(_PROBES)
        name = f"{PROBE}-{number}"
        driver = f"{PROBE}.example.com"
        taint = {"key": PROBE, "effect": "NoSchedule"}
        slice_ = resource_slice(name, driver, [device("d")], nodeName=name)
        made = create_fleet(
            self.api,
            [
                device_class(name, f"device.driver == '{driver}'"),
                make_node(name, taints=[taint]),
                slice_,
            ],
        )
        self._ensure_namespace(PROBE)
        wanted = claim(name, claim_spec(exactly("r", name)))
        wanted["metadata"]["namespace"] = PROBE
        made.append(self.api.create(wanted))
        probe = make_pod(name, claims=[name], tolerations=[{"key": PROBE, "operator": "Exists"}])
        probe["metadata"]["namespace"] = PROBE
        made.append(self.api.create(probe))
        self.api.wait_until("v1/Pod", name, lambda pod: pod["spec"].get("nodeName"), namespace=PROBE)
        return made

    def _delete(self, kind: str, name: str, namespace: str | None) -> None:
        # No kubelet would end a pod's grace period.
        grace = 0 if kind == "v1/Pod" else None
        self.api.delete(kind, name, namespace=namespace, grace_seconds=grace, missing_ok=True)


def scheduled_condition(pod: Manifest) -> Manifest:
    """The condition PodScheduled; empty as long as the scheduler has decided nothing."""
    found: list[Manifest] = [
        each for each in pod.get("status", {}).get("conditions") or [] if each["type"] == "PodScheduled"
    ]
    return found[0] if found else {}


def is_decided(pod: Manifest) -> bool:
    """The scheduler has bound the pod, or said that it cannot be."""
    condition = scheduled_condition(pod)
    return bool(pod["spec"].get("nodeName")) or (
        condition.get("status") == "False" and condition.get("reason") in REFUSED
    )


def is_refused_by_quota(error: ApiError) -> bool:
    """True where a quota is passed, or wants to be told what a container requests."""
    return error.status == 403 and any(text in str(error) for text in ("exceeded quota", "must specify"))


def _is_refused(create: Callable[[], object]) -> bool:
    try:
        create()
    except ApiError as error:
        if not is_refused_by_quota(error):
            raise
        return True
    return False


def _name(manifest: Manifest) -> tuple[str, str]:
    return manifest["metadata"]["namespace"], manifest["metadata"]["name"]


def _last_quota(namespace: str) -> Manifest:
    metadata = {"name": PROBE, "namespace": namespace}
    spec = {"hard": {"count/configmaps": "0"}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def _has_been_counted(quota: Manifest) -> bool:
    return bool(quota["spec"]["hard"].keys() <= quota.get("status", {}).get("used", {}).keys())
