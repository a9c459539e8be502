"""An H100 where one is free, else two A100: a ladder that the scheduler goes down for each pod."""

import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
a100 = dra.GpuDeviceClass("a100", select=dra.gpu.product.contains("A100"))
ladder = dra.GpuClaimTemplate(
    "ladder",
    first_available=[
        dra.Alternative("h100", device_class=h100),
        dra.Alternative("a100", device_class=a100, count=2),
    ],
)

labels = {"app": "server"}
k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 2,
        "selector": {"match_labels": labels},
        "template": ladder.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
