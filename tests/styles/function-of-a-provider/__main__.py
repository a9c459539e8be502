"""A function of a provider in its output form."""

from typing import Any

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


def account_of(result: Any) -> str:
    return str(result["account_id"])


identity: pulumi.Output[Any] = pulumi.runtime.invoke_output(
    "aws:index/getCallerIdentity:getCallerIdentity", {}
)
claim = dra.GpuClaimTemplate(
    "gpus",
    device_class="gpu.nvidia.com",
    count=GPUS,
    namespace="ml",
    annotations={"example.com/account": identity.apply(account_of)},
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
