"""N Deployments of two pods on M nodes of eight GPUs."""

import sys

from dra_infra.catalog import load_fleet
from dra_infra.simulation import place

workloads, nodes = map(int, sys.argv[1:])
objects: list[dict] = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"t{count}", "namespace": "ml"},
        "spec": {
            "spec": {
                "devices": {
                    "requests": [
                        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count}}
                    ]
                }
            }
        },
    }
    for count in range(1, 9)
]
objects += [
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"d{index}", "namespace": "ml"},
        "spec": {
            "replicas": 2,
            "template": {
                "spec": {
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"t{index % 8 + 1}"}],
                    "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
                }
            },
        },
    }
    for index in range(workloads)
]
placement = place(objects, load_fleet(f"hgx-h100 x {nodes}"))
assert placement.fits_count == workloads
