"""A claim on a class that another program owns, or a chart as here: `gpu.nvidia.com` is the driver's own."""

import pulumi_kubernetes as k8s

import dra_infra as dra

whole = dra.class_ref("gpu.nvidia.com")
trainer = dra.GpuClaimTemplate(
    "trainer", device_class=whole, count=2, select=dra.gpu.architecture == "Hopper"
)

labels = {"app": "server"}
k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 1,
        "selector": {"match_labels": labels},
        "template": trainer.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
