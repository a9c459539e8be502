"""A training job over a whole NVL72 rack: 18 pods with 4 GPUs each, which share memory over NVLink."""

import pulumi_kubernetes as k8s

import dra_infra as dra

PODS = 18

rack = dra.NvlinkGroup("rack", gpus=PODS * 4, on="gb200-nvl72")

k8s.batch.v1.Job(
    "pretrain",
    metadata={"name": "pretrain"},
    spec=rack.attach(
        {
            "parallelism": PODS,
            "completions": PODS,
            "completion_mode": "Indexed",
            "template": {
                "spec": {
                    "restart_policy": "Never",
                    "containers": [{"name": "train", "image": "registry.example/trainer:1.0-arm64"}],
                }
            },
        }
    ),
)
