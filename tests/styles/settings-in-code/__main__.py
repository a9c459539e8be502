"""Stacks as records in code, chosen by the name of the stack."""

from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


@dataclass(frozen=True)
class Size:
    gpus: int
    replicas: int = 1


SIZES = {"dev": Size(GPUS), "prod": Size(8, replicas=4)}

size = SIZES.get(pulumi.get_stack(), SIZES["dev"])
claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=size.gpus, namespace="ml")
labels = {"app": "train"}
k8s.apps.v1.Deployment(
    "train",
    metadata={"name": "train", "namespace": "ml"},
    spec={
        "replicas": size.replicas,
        "selector": {"match_labels": labels},
        "template": {
            "metadata": {"labels": labels},
            "spec": claim.attach({"containers": [{"name": "main", "image": "registry.example/train:1"}]}),
        },
    },
)
