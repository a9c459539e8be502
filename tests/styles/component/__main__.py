"""A component of the team, with children."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


class Training(pulumi.ComponentResource):
    def __init__(self, name: str, gpus: int, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("acme:ml:Training", name, None, opts)
        below = pulumi.ResourceOptions(parent=self)
        claim = dra.GpuClaimTemplate(
            f"{name}-gpus", device_class="gpu.nvidia.com", count=gpus, namespace="ml", opts=below
        )
        job = k8s.batch.v1.Job(
            name,
            metadata={"name": name, "namespace": "ml"},
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
            opts=below,
        )
        self.job = job.id
        self.register_outputs({"job": self.job})


Training("train", GPUS)
