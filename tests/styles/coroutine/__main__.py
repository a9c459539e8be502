"""A number that a coroutine gives."""

import asyncio

import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


async def ask_for_gpus() -> int:
    await asyncio.sleep(0)
    return GPUS


claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=ask_for_gpus(), namespace="ml")
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
