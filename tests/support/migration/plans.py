"""Small clusters and workloads for plans of a cut-over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dra_infra.catalog import load_fleet
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.cutover.plan import Phase, Plan, make_plan
from dra_infra.cutover.sides import Sides, all_on_plugin
from dra_infra.cutover.steps import Step
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import WorkloadKinds
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.target import ClusterTarget

PLUGIN = DevicePlugin()
DEVICES = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"
OLD_KEY = "requests.nvidia.com/gpu"


def deployment(name: str, pods: int, gpus: int, *, namespace: str = "ml", **spec: Any) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": gpus}}
    container = {"name": "main", "image": "registry.example.com/main:1", "resources": resources}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], **spec},
            },
        },
    }


def rollout(name: str, pods: int, gpus: int, **strategy: Any) -> dict[str, Any]:
    """A Rollout of Argo."""
    made = deployment(name, pods, gpus) | {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout"}
    return {**made, "spec": {**made["spec"], "strategy": strategy}}


def ray_service(name: str, workers: int, gpus: int, **upgrade: Any) -> dict[str, Any]:
    """A RayService whose workers have GPUs, and whose head has none."""
    head, worker = (deployment(name, 1, number)["spec"]["template"] for number in (0, gpus))
    group = {"groupName": "gpus", "replicas": workers, "rayStartParams": {}, "template": worker}
    cluster = {"headGroupSpec": {"rayStartParams": {}, "template": head}, "workerGroupSpecs": [group]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"rayClusterConfig": cluster, **upgrade},
    }


def leader_worker_set(name: str, groups: int, size: int, gpus: int, **rolling: Any) -> dict[str, Any]:
    pods = {"size": size, "workerTemplate": deployment(name, 1, gpus)["spec"]["template"]}
    strategy = {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"replicas": groups, "leaderWorkerTemplate": pods, "rolloutStrategy": strategy},
    }


def job(name: str, pods: int, gpus: int) -> dict[str, Any]:
    spec = deployment(name, pods, gpus)["spec"]["template"]["spec"]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "template": {"spec": {**spec, "restartPolicy": "Never"}},
        },
    }


def daemon_set(name: str, gpus: int, **spec: Any) -> dict[str, Any]:
    made = deployment(name, 1, gpus, **spec)
    del made["spec"]["replicas"]
    return {**made, "kind": "DaemonSet"}


def bare_pod(name: str, gpus: int, node: str = "", **metadata: Any) -> dict[str, Any]:
    """A pod of the app *name*, which runs where a node is named."""
    template = deployment(name, 1, gpus)["spec"]["template"]
    labels = {"name": name, "namespace": "ml", **template["metadata"], **metadata}
    spec = template["spec"] | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": labels, "spec": spec}


def budget(app: str, **limit: Any) -> dict[str, Any]:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "ml"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **limit},
    }


def commands(steps: Sequence[Step]) -> list[str]:
    return [each for step in steps for each in step.commands]


def quota(number: int) -> dict[str, Any]:
    hard = {OLD_KEY: str(number), "pods": "100"}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "ml"},
        "spec": {"hard": hard},
    }


def template(name: str, gpus: int | str) -> dict[str, Any]:
    """A template of Argo Workflows, which makes no pods by itself."""
    container = {"image": "registry.example.com/main:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "WorkflowTemplate",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"entrypoint": "main", "templates": [{"name": "main", "container": container}]},
    }


def queue(**flavors: int) -> dict[str, Any]:
    """A ClusterQueue of Kueue with so many GPUs of each flavour."""
    names = ["cpu", "nvidia.com/gpu"]
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {"name": "all"},
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": names,
                    "flavors": [
                        {
                            "name": flavor,
                            "resources": [{"name": each, "nominalQuota": gpus} for each in names],
                        }
                        for flavor, gpus in flavors.items()
                    ],
                }
            ]
        },
    }


def migrated(objects: Sequence[Mapping[str, Any]], kinds: WorkloadKinds | None = None) -> list[Migrated]:
    return migrate_objects(
        objects, Settings(plugin=PLUGIN, no_shares="there are none", kinds=kinds or workload_kinds())
    )


def plan(
    objects: Sequence[Mapping[str, Any]], fleet: str | Fleet | Sides, kubernetes: str = "1.34", **more: Any
) -> Plan:
    found = load_fleet(fleet, kubernetes=kubernetes) if isinstance(fleet, str) else fleet
    sides = all_on_plugin(found, PLUGIN) if isinstance(found, Fleet) else found
    return make_plan(
        objects,
        migrated(objects, more.get("kinds")),
        sides,
        release=ClusterTarget(kubernetes=kubernetes).releases[-1],
        is_late=lambda: False,
        **more,
    )


def moves(found: Plan) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The nodes and workloads of each phase between the first and the last."""
    return [(each.nodes, tuple(map(str, each.moves))) for each in found.phases if each.kind == "move"]


def last(found: Plan) -> Phase:
    return found.phases[-1]
