"""Arguments that all claims of a team share, by functools."""

from functools import partial

import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
team_claim = partial(dra.GpuClaimTemplate, device_class=h100, namespace="ml", labels={"team": "vision"})

claim = team_claim("gpus", count=GPUS)
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
