"""A server with four H100 on a node pool of Karpenter that has no node yet."""

import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
four = dra.GpuClaimTemplate("four", device_class=h100, count=4)

k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 1,
        "selector": {"match_labels": {"app": "server"}},
        "template": four.attach(
            {
                "metadata": {"labels": {"app": "server"}},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
