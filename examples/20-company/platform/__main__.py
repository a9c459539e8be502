"""What the platform team runs: two classes, thirty tenants, and what holds the tenants to their share."""

from functools import partial

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

# Who may have how many H100 at once. A team more is a line more.
TEAMS = {"vision": 16, "speech": 8, **{f"lab-{number:02}": 2 for number in range(1, 29)}}
SLICES = 7  # MIG devices of each team, for notebooks

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
mig = dra.class_ref("mig.nvidia.com")  # the chart of NVIDIA's driver brings it

roles = dra.GpuRoles(
    "gpus", members={"platform-admin": ["group:platform"], "on-call": ["group:sre"], "reader": ["group:ci"]}
)
templates = {
    "trainer": partial(dra.GpuClaimTemplate, device_class=h100, count=4),
    "notebook": partial(dra.MigPartition, profile="1g.10gb"),
}
tenants = {
    team: dra.GpuTenant(
        team,
        quota={h100: gpus, mig: SLICES},
        templates=templates,
        roles=roles,
        members={"team-lead": [f"group:{team}-leads"], "developer": [f"group:{team}"]},
    )
    for team, gpus in TEAMS.items()
}

dra.GpuGuardrails(
    "gpus",
    classes={team: [h100, mig] for team in TEAMS},
    most_devices=8,
    all_devices=False,
    admin_access=["monitoring"],
    admin_label=["group:platform"],
    without_device_plugin=list(TEAMS),
)
queue = dra.KueueQueue(
    "gpus",
    quota={h100: 64, mig: 56},
    resources={"cpu": "960", "memory": "8Ti"},
    namespaces=[tenant.namespace for tenant in tenants.values()],
)
monitoring = k8s.core.v1.Namespace("monitoring", metadata={"name": "monitoring"})
dra.GpuMonitoring("gpus", namespace=monitoring.metadata.name)

# What the stacks of the teams go by.
pulumi.export("classes", {"h100": h100.object_name, "mig": mig.object_name})
pulumi.export("namespaces", {team: tenant.namespace for team, tenant in tenants.items()})
pulumi.export("templates", list(templates))
pulumi.export("workload_labels", queue.workload_labels)
pulumi.export("device_class_mappings", queue.device_class_mappings)  # for Kueue's configuration
