"""Names of resources with underscores, beside names of objects."""

import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

claim = dra.GpuClaimTemplate(
    "train_gpus", device_class="gpu.nvidia.com", count=GPUS, namespace="ml", object_name="train-gpus"
)
k8s.batch.v1.Job(
    "train_job",
    metadata={"name": "train", "namespace": "ml"},
    spec={
        "template": {
            "spec": claim.attach(
                {
                    "containers": [{"name": "main", "image": "registry.example/train:1"}],
                    "restart_policy": "Never",
                },
                entry="gpus",
            )
        }
    },
)
