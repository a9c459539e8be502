"""Arguments as classes of the SDK."""

import pulumi_kubernetes as k8s

import dra_infra as dra

GPUS = 2

claim = dra.GpuClaimTemplate("gpus", device_class="gpu.nvidia.com", count=GPUS, namespace="ml")
pod = k8s.core.v1.PodSpecArgs(
    containers=[k8s.core.v1.ContainerArgs(name="main", image="registry.example/train:1")],
    restart_policy="Never",
)
k8s.batch.v1.Job(
    "train",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="train", namespace="ml"),
    spec=k8s.batch.v1.JobSpecArgs(template=k8s.core.v1.PodTemplateSpecArgs(spec=claim.attach(pod))),
)
