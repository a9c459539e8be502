"""Four H100 that NVLink joins: all GPUs of an HGX board are in one NVSwitch domain, so a count on that board is enough."""

import pulumi_kubernetes as k8s

import dra_infra as dra

four = dra.NvlinkGroup("four", gpus=4, on="hgx-h100")

labels = {"app": "server"}
k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 1,
        "selector": {"match_labels": labels},
        "template": four.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
