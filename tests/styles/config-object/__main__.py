"""Settings as an object, with a secret beside what decides."""

from typing import TypedDict

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra


class Team(TypedDict):
    name: str
    GPUS: int
    token: str


teams: list[Team] = pulumi.Config().require_object("teams")
for team in teams:
    claim = dra.GpuClaimTemplate(
        f"{team['name']}-gpus", device_class="gpu.nvidia.com", count=team["GPUS"], namespace="ml"
    )
    k8s.batch.v1.Job(
        team["name"],
        metadata={"name": team["name"], "namespace": "ml"},
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
