"""Pods that run on one GPU at the same time, each with a quarter of its threads and at most 18 GiB of its memory."""

import pulumi_kubernetes as k8s

import dra_infra as dra

quarters = dra.SharedGpu(
    "quarters",
    select=dra.gpu.memory >= "79Gi",
    across="pods",
    consumers=4,
    sharing=dra.Mps(active_thread_percentage=25, pinned_device_memory_limit="18Gi"),
    driver_gates={"MPSSupport": True},
)

labels = {"app": "server"}
k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 4,
        "selector": {"match_labels": labels},
        "template": quarters.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
