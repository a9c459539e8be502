"""A file of the project, read by a relative path when an Output is known."""

import json
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra


def read_gpus(path: str) -> int:
    values: dict[str, Any] = json.loads(Path(path).read_text())
    return int(values["GPUS"])


gpus = pulumi.Output.from_input("values.json").apply(read_gpus)
claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=gpus, namespace="ml")
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
