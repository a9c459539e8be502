"""A class of GPUs, and an inference service that uses it; Argo CD deploys what `dra-infra synth` writes of it."""

import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"))
server = dra.GpuClaimTemplate("server", device_class=h100, count=2, namespace="ml")

LABELS = {"app": "inference"}
POD: k8s.core.v1.PodSpecArgsDict = {
    "containers": [{"name": "server", "image": "registry.example/inference:1.0"}]
}

k8s.core.v1.Namespace("ml", metadata={"name": "ml"})
k8s.apps.v1.Deployment(
    "inference",
    metadata={"name": "inference", "namespace": "ml"},
    spec={
        "replicas": 3,
        "selector": {"match_labels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": server.attach(POD)},
    },
)
