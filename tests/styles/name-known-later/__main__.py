"""A name with a part that another stack has."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

suffix = pulumi.StackReference("organization/platform/dev").get_output("suffix")
claim = dra.GpuClaimTemplate(
    "gpus",
    device_class="gpu.nvidia.com",
    count=GPUS,
    namespace="ml",
    object_name=pulumi.Output.concat("gpus-", suffix),
)
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
