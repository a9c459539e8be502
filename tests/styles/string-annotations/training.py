"""A module whose annotations are texts: the SDK resolves them after the import."""

from __future__ import annotations

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra


class Training(pulumi.ComponentResource):
    claim: pulumi.Output[str]

    def __init__(self, name: str, gpus: int) -> None:
        super().__init__("acme:ml:Training", name)
        below = pulumi.ResourceOptions(parent=self)
        claim = dra.GpuClaimTemplate(
            "gpus", device_class="gpu.nvidia.com", count=gpus, namespace="ml", opts=below
        )
        k8s.batch.v1.Job(
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
        self.claim = claim.object_name
        self.register_outputs({"claim": self.claim})
