"""A class whose name has a part that another stack has."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

suffix = pulumi.StackReference("organization/platform/dev").get_output("suffix")
h100 = dra.GpuDeviceClass(
    "h100", select=dra.gpu.product.contains("H100"), object_name=pulumi.Output.concat("h100-", suffix)
)
claim = dra.GpuClaimTemplate("gpus", device_class=h100, count=GPUS, namespace="ml", object_name="gpus")
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
