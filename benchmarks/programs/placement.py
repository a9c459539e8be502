"""N Deployments of two pods on M nodes of eight GPUs, with D different claims: N, M, D, then `alike` or `unlike`, then S.

`unlike` reads the UUID, so that no two nodes are the same to a claim and each one is searched.
S is how many sizes of CPU the pods request: each size is a search of its own for room.
"""

import sys

from dra_infra.catalog import load_fleet
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.scheduling import place

workloads, nodes, claims = map(int, sys.argv[1:4])
unlike = sys.argv[4] == "unlike"
sizes = int(sys.argv[5])


def exactly(index: int) -> dict:
    asked: dict = {"deviceClassName": "gpu.nvidia.com", "count": index % 8 + 1}
    if unlike:
        expression = f'device.attributes["gpu.nvidia.com"].uuid != "GPU-{index}"'
        asked["selectors"] = [{"cel": {"expression": expression}}]
    return asked


objects: list[dict] = [
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"t{index}", "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly(index)}]}}},
    }
    for index in range(claims)
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
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"t{index % claims}"}],
                    "containers": [
                        {
                            "name": "c",
                            "image": "i",
                            "resources": {
                                "requests": {"cpu": f"{100 + index % sizes * 50}m"},
                                "claims": [{"name": "gpu"}],
                            },
                        }
                    ],
                }
            },
        },
    }
    for index in range(workloads)
]
placement = place(PlacementQuestion(manifests=objects, fleet=load_fleet(f"hgx-h100 x {nodes}")))
assert placement.fits_count == workloads
