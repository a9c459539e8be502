"""A loop over a table beside the program."""

from pathlib import Path
from typing import Any

import pulumi_kubernetes as k8s
import yaml

import dra_infra as dra

rows: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("jobs.yaml").read_text())
for row in rows:
    name = str(row["name"])
    claim = dra.GpuClaimTemplate(
        f"{name}-gpus", device_class="gpu.nvidia.com", count=int(row["GPUS"]), namespace="ml"
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
    )
