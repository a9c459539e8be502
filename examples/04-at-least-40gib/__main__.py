"""A Deployment of four pods, each with a GPU of at least 40 GiB."""

import pulumi_kubernetes as k8s

import dra_infra as dra

gpus = dra.GpuDeviceClass("gpus")
# An A100 40GB reports exactly 40 GiB, so ">=" takes it. An H100 80GB reports 79.6 GiB: ">= 80Gi" would take none.
large = dra.GpuClaimTemplate("large", device_class=gpus, select=dra.gpu.memory >= "40Gi")

labels = {"app": "embedder"}
k8s.apps.v1.Deployment(
    "embedder",
    metadata={"name": "embedder"},
    spec={
        "replicas": 4,
        "selector": {"match_labels": labels},
        "template": large.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "embedder", "image": "registry.example/embedder:1.0"}]},
            }
        ),
    },
)
