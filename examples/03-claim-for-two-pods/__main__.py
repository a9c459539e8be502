"""One claim shared by two pods: the scheduler puts both on the node that holds the GPU."""

import pulumi_kubernetes as k8s

import dra_infra as dra

# The example driver of Kubernetes publishes devices without hardware: good for trying things on a laptop.
devices = dra.GpuDeviceClass("devices", driver="gpu.example.com")
cache = dra.GpuClaim("cache", device_class=devices)

for name in ("writer", "reader"):
    k8s.core.v1.Pod(
        name,
        metadata={"name": name},
        spec=cache.attach({"containers": [{"name": name, "image": "registry.example/cache:1.0"}]}),
    )
