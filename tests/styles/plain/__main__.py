"""Resources at the top of the program, as dicts."""

import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=GPUS, namespace="ml")
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
