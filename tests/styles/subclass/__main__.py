"""A class of the team below one of ours."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


class TeamClaim(dra.GpuClaimTemplate):
    def __init__(self, name: str, gpus: int, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, device_class="gpu.nvidia.com", count=gpus, namespace="ml", opts=opts)


k8s.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": "ml"},
    spec={
        "template": {
            "spec": TeamClaim("gpus", GPUS).attach(
                {
                    "containers": [{"name": "main", "image": "registry.example/train:1"}],
                    "restart_policy": "Never",
                }
            )
        }
    },
)
