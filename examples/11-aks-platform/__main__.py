"""AKS, from a cluster with GPU nodes to two containers on one GPU: operator, DRA driver, and a workload on them."""

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

EVICTION = "nvidia.com/dra-kubelet-plugin"

platform = dra.GpuPlatform(
    "gpus",
    platform="aks",
    operator={"version": "26.7.0", "device_plugin": False, "eviction_label": EVICTION},
    driver={"version": "0.4.1", "compute_domains": False},
    gpu_pools={"a100": {EVICTION: "true"}},
)
shared = dra.GpuClaimTemplate("shared", device_class=platform.device_classes["gpu.nvidia.com"])

labels = {"app": "assistant"}
k8s.apps.v1.Deployment(
    "assistant",
    metadata={"name": "assistant"},
    spec={
        "replicas": 1,
        "selector": {"match_labels": labels},
        "template": shared.attach(
            {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [
                        {"name": "server", "image": "registry.example/server:1.0"},
                        {"name": "metrics", "image": "registry.example/metrics:1.0"},
                    ],
                },
            },
            containers=["server", "metrics"],
        ),
    },
)

pulumi.export("node_labels", platform.node_labels)
