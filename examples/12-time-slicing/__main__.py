"""Pods that take turns on one GPU: one claim, on one node, with slices of time as short as they get."""

import pulumi_kubernetes as k8s

import dra_infra as dra

turns = dra.SharedGpu(
    "turns",
    across="pods",
    consumers=4,
    sharing=dra.TimeSlicing(interval="Short"),
    driver_gates={"TimeSlicingSettings": True},
)

labels = {"app": "server"}
k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 4,
        "selector": {"match_labels": labels},
        "template": turns.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
