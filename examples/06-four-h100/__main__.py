"""Four H100 of one product on one node, for a Deployment.

The devices of a claim are always on one node; the constraint makes them of one product, for a fleet may hold both
"NVIDIA H100 80GB HBM3" and "NVIDIA H100 PCIe". Every pair of GPUs of an HGX board is joined by NVSwitch; there is no
NVLink attribute to select by.
"""

import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass(
    "h100",
    select=dra.gpu.product.contains("H100") & (dra.gpu.compute_capability >= "9.0.0"),
)
four = dra.GpuClaimTemplate(
    "four", device_class=h100, count=4, constraints=[dra.MatchAttribute(dra.gpu.product)]
)

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
