"""A provider that the program makes, which also names the namespace."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

cluster = k8s.Provider("gpu-cluster", context="gpu-cluster", namespace="ml")
by_cluster = pulumi.ResourceOptions(provider=cluster)
claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=GPUS, opts=by_cluster)
k8s.batch.v1.Job(
    "train",
    metadata={"name": "train"},
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
    opts=by_cluster,
)
