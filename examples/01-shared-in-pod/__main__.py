"""One GPU from a template, shared by two containers of a pod."""

import pulumi_kubernetes as k8s

import dra_infra as dra

gpus = dra.GpuDeviceClass("gpus")
shared = dra.GpuClaimTemplate("shared", device_class=gpus)

pod_spec: k8s.core.v1.PodSpecArgsDict = {
    "containers": [
        {"name": "model", "image": "registry.example/model:1.0"},
        {"name": "metrics", "image": "registry.example/metrics:1.0"},
    ]
}
k8s.core.v1.Pod(
    "assistant",
    metadata={"name": "assistant"},
    spec=shared.attach(pod_spec, containers=["model", "metrics"]),
)
