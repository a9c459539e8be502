"""Quickstart: a class of GPUs, and a service and a training job that use it."""

import pulumi_kubernetes as k8s

import dra_infra as dra

ml = k8s.core.v1.Namespace("ml", metadata={"name": "ml"})
namespace = ml.metadata["name"]

# A class names GPUs by what they are. Selectors are Python; they compile to CEL that never blocks scheduling.
h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"))

# A template gives every pod GPUs of its own.
server = dra.GpuClaimTemplate("server", device_class=h100, namespace=namespace)
trainer = dra.GpuClaimTemplate(
    "trainer",
    device_class=h100,
    count=4,
    constraints=[dra.MatchAttribute(dra.gpu.product)],
    namespace=namespace,
)

app = {"app": "inference"}
k8s.apps.v1.Deployment(
    "inference",
    metadata={"name": "inference", "namespace": namespace},
    spec={
        "replicas": 2,
        "selector": {"match_labels": app},
        "template": server.attach(
            {
                "metadata": {"labels": app},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)

k8s.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": namespace},
    spec={
        "template": {
            "spec": trainer.attach(
                {
                    "restart_policy": "Never",
                    "containers": [{"name": "train", "image": "registry.example/trainer:1.0"}],
                }
            )
        }
    },
)
