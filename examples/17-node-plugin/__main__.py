"""Simulated GPUs on the nodes of any cluster, and a service that claims two of them for each of its pods."""

import pulumi_kubernetes as k8s

import dra_infra as dra

# Each node gets the eight GPUs of such a server; only their names, attributes and variables are there.
gpus = dra.NodePlugin("gpus", back_end="sim", fleet="hgx-h100")

# From here on nothing knows that they are simulated.
server = dra.GpuClaimTemplate(
    "server",
    device_class=gpus.device_classes["gpu.nvidia.com"],
    select=dra.gpu.memory >= "79Gi",
    count=2,
)
labels = {"app": "inference"}
container: k8s.core.v1.ContainerArgsDict = {
    "name": "main",
    "image": "busybox:1.37",
    "command": ["sh", "-c", "env | grep GPU_DEVICE; sleep infinity"],
}
k8s.apps.v1.Deployment(
    "inference",
    metadata={"name": "inference"},
    spec={
        "replicas": 2,
        "selector": {"match_labels": labels},
        "template": server.attach({"metadata": {"labels": labels}, "spec": {"containers": [container]}}),
    },
)
