"""Stack files in a folder of their own."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

gpus = pulumi.Config().require_int("GPUS")
claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=gpus, namespace="ml")
k8s.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": "ml"},
    spec={
        "template": {
            "spec": claim.attach(
                {
                    "containers": [{"name": "main", "image": "registry.example/train:1"}],
                    "restart_policy": "Never",
                }
            )
        }
    },
)
