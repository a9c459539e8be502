"""One A100 80 GB, by product and memory, for a Job."""

import pulumi_kubernetes as k8s

import dra_infra as dra

# Product names differ between boards ("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe"), so ask for a part of the
# name and leave the size to the memory.
a100_80gb = dra.GpuDeviceClass(
    "a100-80gb", select=dra.gpu.product.contains("A100") & (dra.gpu.memory >= "79Gi")
)
tuner = dra.GpuClaimTemplate("tuner", device_class=a100_80gb)

k8s.batch.v1.Job(
    "fine-tune",
    metadata={"name": "fine-tune"},
    spec={
        "template": {
            "spec": tuner.attach(
                {
                    "restart_policy": "Never",
                    "containers": [{"name": "tune", "image": "registry.example/tuner:1.0"}],
                }
            )
        }
    },
)
