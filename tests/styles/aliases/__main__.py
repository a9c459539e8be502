"""Resources that have moved below a component."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


class Team(pulumi.ComponentResource):
    def __init__(self, name: str) -> None:
        super().__init__("acme:ml:Team", name)


moved = pulumi.ResourceOptions(
    parent=Team("vision"), aliases=[pulumi.Alias(parent=pulumi.ROOT_STACK_RESOURCE)]
)
claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=GPUS, namespace="ml", opts=moved)
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
    opts=moved,
)
