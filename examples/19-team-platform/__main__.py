"""What a team runs: a model served over two nodes, a training job over two more, notebooks on MIG devices, and a quota."""

from typing import Any

import pulumi_kubernetes as k8s

import dra_infra as dra

GROUPS, GPUS = 1, 8  # groups of two pods that serve the model together, and GPUs of each of these pods

# A privileged pod has the GPUs of its node without a claim, so the quota needs a namespace that refuses it.
security = {"pod-security.kubernetes.io/enforce": "baseline"}
ml = k8s.core.v1.Namespace("ml", metadata={"name": "ml", "labels": security}).metadata.name
k8s.core.v1.ResourceQuota(
    "gpus",
    metadata={"name": "gpus", "namespace": ml},
    spec={
        "hard": {
            "h100.deviceclass.resource.k8s.io/devices": "32",
            "mig.nvidia.com.deviceclass.resource.k8s.io/devices": "7",
        }
    },
)

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
server = dra.GpuClaimTemplate("server", namespace=ml, device_class=h100, count=GPUS)
worker = dra.GpuClaimTemplate("worker", namespace=ml, device_class=h100, count=8)
notebook = dra.MigPartition("notebook", namespace=ml, profile="1g.10gb")


def pods(name: str, claim: dra.GpuClaimTemplate | dra.MigPartition, **spec: str) -> Any:
    """A pod template whose container gets the devices of the claim."""
    containers = [{"name": name, "image": f"registry.example/{name}:1.0"}]
    return claim.attach({"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}})


k8s.apiextensions.CustomResource(
    "serve",
    api_version="leaderworkerset.x-k8s.io/v1",
    kind="LeaderWorkerSet",
    metadata={"name": "serve", "namespace": ml},
    spec={
        "replicas": GROUPS,
        "leaderWorkerTemplate": {"size": 2, "workerTemplate": pods("server", server)},
    },
)

k8s.apiextensions.CustomResource(
    "train",
    api_version="jobset.x-k8s.io/v1alpha2",
    kind="JobSet",
    metadata={"name": "train", "namespace": ml},
    spec={
        "replicatedJobs": [
            {
                "name": "workers",
                "template": {
                    "spec": {
                        "parallelism": 2,
                        "completions": 2,
                        "template": pods("trainer", worker, restartPolicy="Never"),
                    }
                },
            }
        ]
    },
)

k8s.apps.v1.StatefulSet(
    "notebooks",
    metadata={"name": "notebooks", "namespace": ml},
    spec={
        "replicas": 3,
        "service_name": "notebooks",
        "selector": {"match_labels": {"app": "jupyter"}},
        "template": pods("jupyter", notebook),
    },
)
