"""Platforms of workloads of all kinds, below quotas, made of the pods of a scenario."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Final

from dra_infra.kubernetes.apiserver import QuotaKey, count_claim
from tests.support.scheduler.objects import NAMESPACE
from tests.support.scheduler.scenario import Scenario
from tools.cluster import Manifest

NAME_LABEL: Final = "e2e.example.com/workload"
"""Label of each pod with the name of its workload."""
OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
KINDS: Final = ("Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job", "DaemonSet")
OTHER_KINDS: Final = ("LeaderWorkerSet", "JobSet")
"""Kinds whose controllers are not those of Kubernetes."""
_TEMPLATES: Final[Mapping[str, Sequence[str | int]]] = {
    "Pod": (),
    "LeaderWorkerSet": ("spec", "leaderWorkerTemplate", "workerTemplate"),
    "JobSet": ("spec", "replicatedJobs", 0, "template", "spec", "template"),
}
"""Where the template of the pods is, where it is not at `spec.template`."""
_COUNTS: Final = (1, 1, 2, 3)
"""Pods of a workload, not so many that all platforms are too small for theirs."""


@dataclass(frozen=True)
class Submitted:
    """A workload as it is submitted.

    Args:
        manifest: The object.
        pods: How many pods it makes; None for one on each node that its controller chooses.
    """

    manifest: Manifest
    pods: int | None

    @property
    def kind(self) -> str:
        """The kind of the object."""
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """The name of the object, which its pods have as a label."""
        return str(self.manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The namespace of the object."""
        return str(self.manifest["metadata"]["namespace"])

    @property
    def spec(self) -> Manifest:
        """The spec of its pods."""
        found: Any = self.manifest
        for step in _TEMPLATES.get(self.kind, ("spec", "template")):
            found = found[step]
        spec: Manifest = found["spec"]
        return spec

    @property
    def is_in_turn(self) -> bool:
        """Each pod is made when the one before it is ready."""
        is_parallel = self.manifest["spec"].get("podManagementPolicy") == "Parallel"
        return self.kind == "StatefulSet" and not is_parallel

    def with_spec(self, **fields: Any) -> Manifest:
        """The object with more in the spec of its pods."""
        changed = replace(self, manifest=copy.deepcopy(self.manifest))
        changed.spec.update(fields)
        return changed.manifest


def draw_platform(
    scenario: Scenario, random: Random, *, kinds: Sequence[str] = KINDS, quotas: float = 0.5
) -> tuple[Scenario, list[Submitted]]:
    """The scenario with workloads in the place of its pods, as many or some more, and below a quota or not.

    Args:
        scenario: Whose pods they are made of.
        random: Of the draw.
        kinds: Of workloads.
        quotas: How many of all platforms have a quota.
    """
    nodes = sum(each["kind"] == "Node" for each in scenario.fleet)
    workloads: list[Submitted] = []
    pods = list(scenario.pods)
    while pods:
        kind = random.choice(kinds)
        made = _MAKERS[kind](pods[0], random.choice(_COUNTS), random)
        workloads.append(made)
        del pods[: nodes if made.pods is None else max(made.pods, 1)]
    drawn = [_draw_quota(scenario, workloads, nodes, random)] if random.random() < quotas else []
    manifests = tuple(each.manifest for each in workloads)
    objects = (*drawn, *(_tolerate_for_good(each) for each in scenario.objects))
    return replace(scenario, objects=objects, pods=manifests), workloads


def _tolerate_for_good(manifest: Manifest) -> Manifest:
    """The claim or template with every effect written into its tolerations.

    One without an effect is enough for the scheduler and not for the eviction controller, which deletes the pod that it let in;
    the controller of the pod makes another one, and so on without an end. The verdict is about pods that find a node.
    """
    changed = copy.deepcopy(manifest)
    spec = changed["spec"]["spec"] if changed["kind"] == "ResourceClaimTemplate" else changed["spec"]
    for request in spec["devices"]["requests"]:
        for part in (request.get("exactly", {}), *request.get("firstAvailable", ())):
            if "tolerations" in part:
                part["tolerations"] = [
                    {**each, "effect": effect}
                    for each in part["tolerations"]
                    for effect in ([each["effect"]] if "effect" in each else ["NoSchedule", "NoExecute"])
                ]
    return changed


def _draw_quota(scenario: Scenario, workloads: Sequence[Submitted], nodes: int, random: Random) -> Manifest:
    """A quota of some keys, a little above what the platform takes of them, at it, or below."""
    specs = {
        (each["kind"], each["metadata"]["name"]): each["spec"]["spec"]
        if each["kind"] == "ResourceClaimTemplate"
        else each["spec"]
        for each in scenario.objects
    }
    taken: Counter[str] = Counter()
    for (kind, _), spec in specs.items():
        if kind == "ResourceClaim":
            taken += count_claim(spec, {}, bridged=False)
    for each in workloads:
        made = Counter({"pods": 1})
        for entry in each.spec.get("resourceClaims") or ():
            if name := entry.get("resourceClaimTemplateName"):
                made += count_claim(specs["ResourceClaimTemplate", name], {}, bridged=False)
        number = nodes if each.pods is None else each.pods
        taken += Counter({key: number * amount for key, amount in made.items()})
    keys = [key for key in sorted(taken) if key in ("pods", QuotaKey.CLAIMS) or key.endswith(OF_CLASS)]
    hard = {
        key: str(max(taken[key] + random.choice((-1, 0, 0, 0, 1, 5)), 0))
        for key in random.sample(keys, random.randint(1, min(len(keys), 2)))
    }
    if random.random() < 0.1:
        # Pods have to say then what they request.
        hard[random.choice(("cpu", "requests.cpu"))] = str(random.choice((2, 6, 40)))
    return quota(hard)


def quota(hard: Mapping[str, str]) -> Manifest:
    """A quota of the namespace in which scenarios have their pods."""
    metadata = {"name": "team", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": dict(hard)}}


def _template(pod: Manifest, **spec: Any) -> tuple[Manifest, Manifest]:
    """The metadata of a workload that is named like a pod, and its pods as a template."""
    metadata = pod["metadata"]
    labels = {**metadata["labels"], NAME_LABEL: metadata["name"]}
    named = {"name": metadata["name"], "namespace": metadata["namespace"]}
    return named, {"metadata": {"labels": labels}, "spec": {**pod["spec"], **spec}}


def _pod(pod: Manifest, count: int, random: Random) -> Submitted:
    metadata, template = _template(pod)
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**metadata, **template["metadata"]},
        "spec": template["spec"],
    }
    return Submitted(manifest, 1)


def _of_apps(kind: str, pod: Manifest, **spec: Any) -> Manifest:
    metadata, template = _template(pod)
    selector = {"matchLabels": {NAME_LABEL: metadata["name"]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"selector": selector, "template": template, **spec},
    }


def _deployment(pod: Manifest, count: int, random: Random) -> Submitted:
    strategy = {"strategy": {"type": "Recreate"}} if random.random() < 0.3 else {}
    return Submitted(_of_apps("Deployment", pod, replicas=count, **strategy), count)


def _replica_set(pod: Manifest, count: int, random: Random) -> Submitted:
    return Submitted(_of_apps("ReplicaSet", pod, replicas=count), count)


def _stateful_set(pod: Manifest, count: int, random: Random) -> Submitted:
    policy = random.choice(({}, {"podManagementPolicy": "Parallel"}))
    name = pod["metadata"]["name"]
    return Submitted(_of_apps("StatefulSet", pod, replicas=count, serviceName=name, **policy), count)


def _daemon_set(pod: Manifest, count: int, random: Random) -> Submitted:
    return Submitted(_of_apps("DaemonSet", pod), None)


def _job(pod: Manifest, count: int, random: Random) -> Submitted:
    metadata, template = _template(pod, restartPolicy="Never")
    spec: Manifest = {"parallelism": count, "template": template}
    # With fewer completions than it may run at once, it runs as many as it has to complete.
    completions = random.choice((None, count, 2))
    if completions:
        spec["completions"] = completions
        spec["completionMode"] = random.choice(("Indexed", "NonIndexed"))
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    return Submitted(manifest, min(count, completions or count))


def _leader_worker_set(pod: Manifest, count: int, random: Random) -> Submitted:
    """Groups of a leader and perhaps a worker, with one template for both."""
    metadata, template = _template(pod)
    replicas, size = (1, count) if random.random() < 0.5 else (count, 1)
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}}
    manifest = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": metadata,
        "spec": spec,
    }
    return Submitted(manifest, count)


def _job_set(pod: Manifest, count: int, random: Random) -> Submitted:
    metadata, template = _template(pod, restartPolicy="Never")
    replicas, parallel = (1, count) if random.random() < 0.5 else (count, 1)
    job = {"spec": {"parallelism": parallel, "completions": parallel, "template": template}}
    manifest = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": [{"name": "workers", "replicas": replicas, "template": job}]},
    }
    return Submitted(manifest, count)


_MAKERS: Final[Mapping[str, Callable[[Manifest, int, Random], Submitted]]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "Job": _job,
    "DaemonSet": _daemon_set,
    "LeaderWorkerSet": _leader_worker_set,
    "JobSet": _job_set,
}
