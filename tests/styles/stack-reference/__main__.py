"""A class of the platform's stack, whose outputs a file stands in for."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

platform = pulumi.StackReference("organization/platform/dev")
claim = dra.GpuClaimTemplate(
    "gpus", device_class=dra.class_ref(platform.get_output("class")), count=GPUS, namespace="ml"
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
