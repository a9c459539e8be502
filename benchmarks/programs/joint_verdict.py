"""The verdict on W workloads of ten pods at once, on N nodes of eight GPUs: W, N.

One in ten workloads has no claims; the others ask for one to four GPUs per pod. The last line printed is the seconds that
count: for the first order and the verdict, without reading the program and the fleet.
"""

import sys
import time

from dra_infra.catalog import load_fleet
from dra_infra.kubernetes.scheduler import NOTHING_TAKEN
from dra_infra.placement.demand import PodPlan
from dra_infra.placement.joint import open_program, place_together
from dra_infra.placement.joint_verdict import judge_jointly

workloads, nodes = map(int, sys.argv[1:3])

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
    for count in range(1, 5)
]
for index in range(workloads):
    requests = {"cpu": f"{500 + 250 * (index % 8)}m", "memory": f"{1 + index % 16}Gi"}
    pod: dict = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if index % 10:
        pod["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": f"t{index % 4 + 1}"}]
    objects.append(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"d{index}", "namespace": "ml"},
            "spec": {"replicas": 10, "template": {"spec": pod}},
        }
    )

opened = open_program(objects, load_fleet(f"hgx-h100 x {nodes}"), NOTHING_TAKEN, None)
wanted = [*opened.workloads, *opened.bystanders]
plans = [(each, each.plan) for each in wanted if isinstance(each.plan, PodPlan)]
assert len(plans) == workloads
started = time.perf_counter()
joint = judge_jointly(opened.free, plans, place_together(opened.free, wanted).order)
seconds = time.perf_counter() - started
assert joint.verdict in ("always", "depends-on-order"), joint
print(joint.verdict)
print(seconds)
