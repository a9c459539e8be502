"""A GPU and an RDMA network card on its PCIe root, for traffic that goes past the CPU."""

import pulumi_kubernetes as k8s

import dra_infra as dra

rdma = dra.GpuDeviceClass("rdma-cards", driver="dra.net", select=dra.attribute("dra.net/rdma").is_true())
gpu = dra.DeviceRequest("gpu", device_class=dra.class_ref("gpu.nvidia.com"))
nic = dra.DeviceRequest("nic", device_class=rdma)
near = dra.GpuClaimTemplate("near", requests=[gpu, nic], constraints=[dra.pair(gpu, nic, on="pcie-root")])

labels = {"app": "server"}
k8s.apps.v1.Deployment(
    "server",
    metadata={"name": "server"},
    spec={
        "replicas": 1,
        "selector": {"match_labels": labels},
        "template": near.attach(
            {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "server", "image": "registry.example/server:1.0"}]},
            }
        ),
    },
)
