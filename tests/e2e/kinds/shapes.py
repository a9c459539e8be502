"""LeaderWorkerSets, JobSets and TrainJobs of many shapes, each with a name of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tools.cluster import Manifest

NAMESPACE: Final = "ml"
CLASS: Final = "gpu.example.com"
RACK: Final = "rack"
EXCLUSIVE_GROUPS: Final = {"leaderworkerset.sigs.k8s.io/exclusive-topology": RACK}
EXCLUSIVE_SUBGROUPS: Final = {"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": RACK}
EXCLUSIVE_JOBS: Final = {"alpha.jobset.sigs.k8s.io/exclusive-topology": RACK}
JOBS_ON_LABELLED_NODES: Final = {**EXCLUSIVE_JOBS, "alpha.jobset.sigs.k8s.io/node-selector": "true"}

CLAIM_TEMPLATE: Final[Manifest] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": NAMESPACE},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS}}]}}},
}


def template(name: str = "main", *, claims: bool = True, **more: Any) -> Manifest:
    """A pod template with one container; with a claim unless said otherwise."""
    container: Manifest = {"name": name, "image": "registry.invalid/main:1"}
    spec: Manifest = {"containers": [container], **more}
    if claims:
        container["resources"] = {"claims": [{"name": "gpu"}]}
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    return {"metadata": {"labels": {"role": name}}, "spec": spec}


def lws(
    name: str, *, annotations: Mapping[str, str] | None = None, group: Manifest | None = None, **spec: Any
) -> Manifest:
    """A LeaderWorkerSet; *group* is its leaderWorkerTemplate beside the template of the workers."""
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": dict(annotations or {})},
        "spec": {**spec, "leaderWorkerTemplate": {"workerTemplate": template("worker"), **(group or {})}},
    }


def jobset(name: str, *jobs: Manifest, annotations: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    """A JobSet of *jobs*."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": dict(annotations or {})},
        "spec": {**spec, "replicatedJobs": list(jobs)},
    }


def jobs(
    name: str,
    *,
    pods: Mapping[str, int | str | bool] | None = None,
    annotations: Mapping[str, str] | None = None,
    claims: bool = True,
    **more: Any,
) -> Manifest:
    """An entry of `replicatedJobs`; *pods* is what the spec of its Jobs says of their number."""
    spec = {**(pods or {}), "template": template(name, claims=claims)}
    return {
        "name": name,
        "template": {"metadata": {"annotations": dict(annotations or {})}, "spec": spec},
        **more,
    }


FOUR: Final = {"parallelism": 4, "completions": 4}

LWS_SHAPES: Final = [
    lws("one"),
    lws("one-pod-groups", replicas=3, group={"size": 1}),
    lws("groups", replicas=2, group={"size": 4}),
    lws("led", replicas=2, group={"size": 4, "leaderTemplate": template("leader", claims=False)}),
    lws("led-alone", group={"size": 1, "leaderTemplate": template("leader")}),
    lws("none", replicas=0, group={"size": 4}),
    lws("when-ready", startupPolicy="LeaderReady", group={"size": 3}),
    lws("exclusive", annotations=EXCLUSIVE_GROUPS, replicas=2, group={"size": 3}),
    lws("subgroups", group={"size": 5, "subGroupPolicy": {"subGroupSize": 2}}),
    lws(
        "exclusive-subgroups",
        annotations=EXCLUSIVE_SUBGROUPS,
        group={"size": 4, "subGroupPolicy": {"subGroupSize": 2}},
    ),
]

JOBSET_SHAPES: Final = [
    jobset("plain", jobs("workers")),
    jobset("roles", jobs("driver", claims=False), jobs("workers", replicas=2, pods=FOUR)),
    jobset("in-waves", jobs("workers", pods={"parallelism": 2, "completions": 4})),
    jobset("fewer-left", jobs("workers", pods={"parallelism": 4, "completions": 3})),
    jobset("later-ones", jobs("workers", pods={"completions": 4})),
    jobset("queue", jobs("workers", pods={"parallelism": 3, "completionMode": "NonIndexed"})),
    jobset("no-jobs", jobs("workers", replicas=0), jobs("driver")),
    jobset("running-jobs", jobs("workers", pods={**FOUR, "suspend": True})),
    jobset("paused", jobs("workers", replicas=2, pods=FOUR), suspend=True),
    jobset(
        "one-by-one",
        jobs("first"),
        jobs("second", replicas=2),
        startupPolicy={"startupPolicyOrder": "InOrder"},
    ),
    jobset(
        "when-others-are", jobs("first"), jobs("second", dependsOn=[{"name": "first", "status": "Ready"}])
    ),
    jobset("after", jobs("first"), jobs("second", dependsOn=[{"name": "first", "status": "Complete"}])),
    jobset("exclusive", jobs("workers", replicas=2, pods=FOUR), annotations=EXCLUSIVE_JOBS),
    jobset("on-labelled-nodes", jobs("workers", pods=FOUR), annotations=JOBS_ON_LABELLED_NODES),
    jobset(
        "exclusive-workers",
        jobs("driver"),
        jobs("workers", replicas=2, pods=FOUR, annotations=EXCLUSIVE_JOBS),
    ),
]


def runtime(name: str, *steps: Manifest, nodes: int | None = None) -> Manifest:
    """A runtime for the whole cluster, of *steps*."""
    policy: Manifest = {"torch": {}} if nodes is None else {"torch": {}, "numNodes": nodes}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(steps)}}},
    }


def step(name: str, of: str, *, claims: bool = True, after: str = "", **amounts: Manifest) -> Manifest:
    """A step of a runtime, with the container that its controller looks for, and its limits and requests."""
    pods = template(name, claims=claims)
    pods["spec"]["containers"][0].setdefault("resources", {}).update(amounts)
    made: Manifest = {
        "name": name,
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": of}},
            "spec": {"template": pods},
        },
    }
    if after:
        made["dependsOn"] = [{"name": after, "status": "Complete"}]
    return made


def train_job(name: str, of: str, **spec: Any) -> Manifest:
    """A TrainJob of the runtime *of*."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"runtimeRef": {"name": of}, **spec},
    }


RUNTIMES: Final = [
    runtime("one-step", step("node", "trainer")),
    runtime("of-three", step("node", "trainer"), nodes=3),
    runtime("with-cpu", step("node", "trainer", requests={"cpu": "30m"}, limits={"memory": "128Mi"})),
    runtime(
        "two-steps",
        step("model-initializer", "model-initializer", claims=False),
        step("node", "trainer", after="model-initializer"),
    ),
]

TRAIN_JOB_SHAPES: Final = [
    train_job("train-one", "one-step"),
    train_job("train-four", "one-step", trainer={"numNodes": 4}),
    train_job("train-as-told", "of-three"),
    train_job("train-fewer", "of-three", trainer={"numNodes": 2}),
    train_job("train-paused", "of-three", suspend=True),
    train_job("train-in-steps", "two-steps", trainer={"numNodes": 2}),
    train_job("train-with-memory", "one-step", trainer={"resourcesPerNode": {"limits": {"memory": "64Mi"}}}),
    train_job("train-with-more", "with-cpu", trainer={"resourcesPerNode": {"requests": {"cpu": "20m"}}}),
    train_job("train-merged", "with-cpu", trainer={"resourcesPerNode": {"limits": {"cpu": "40m"}}}),
]
