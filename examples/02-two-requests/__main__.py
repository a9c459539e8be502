"""Two GPUs as two requests: each container gets one of its own, and both are on one node."""

import pulumi_kubernetes as k8s

import dra_infra as dra

gpus = dra.GpuDeviceClass("gpus")
pair = dra.GpuClaimTemplate(
    "pair",
    requests=[
        dra.DeviceRequest("prefill", device_class=gpus, select=dra.gpu.memory >= "40Gi"),
        dra.DeviceRequest("decode", device_class=gpus),
    ],
)

pod_spec: k8s.core.v1.PodSpecArgsDict = {
    "containers": [
        {"name": "prefill", "image": "registry.example/server:1.0"},
        {"name": "decode", "image": "registry.example/server:1.0"},
    ]
}
pod_spec = pair.attach(pod_spec, containers="prefill", request="prefill")
pod_spec = pair.attach(pod_spec, containers="decode", request="decode")
k8s.core.v1.Pod("serving", metadata={"name": "serving"}, spec=pod_spec)
