"""A hook that runs before the job is deleted."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


def drain(args: pulumi.ResourceHookArgs) -> None:
    print(f"draining {args.urn}")


hooks = pulumi.ResourceHookBinding(before_delete=[pulumi.ResourceHook("drain", drain)])
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
    opts=pulumi.ResourceOptions(hooks=hooks),
)
