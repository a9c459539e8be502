"""A program below the project, with a function that is its start."""

import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2


def main() -> None:
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
    )


main()
