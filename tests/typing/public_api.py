"""Read by mypy and pyright, not run: the types that users see. A wrong line must carry an ignore of each that is needed."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack, assert_type

import pulumi
import pulumi_kubernetes as k8s

import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100") & (dra.gpu.memory >= "79Gi"))
assert_type(h100, dra.GpuDeviceClass)
trainer = dra.GpuClaimTemplate(
    "trainer", device_class=h100, count=4, namespace=pulumi.Output.from_input("ml")
)
dra.GpuClaim("all", device_class=dra.class_ref("gpu.nvidia.com"), count="all")
dra.GpuClaim(
    "named", requests=[dra.DeviceRequest("a", device_class="x")], constraints=[dra.MatchAttribute("a/b")]
)

pod: dict[str, Any] = {"containers": []}
assert_type(trainer.attach(pod), dict[str, Any])
spec = k8s.core.v1.PodSpecArgs(containers=[])
assert_type(trainer.attach(spec), k8s.core.v1.PodSpecArgs)
job = k8s.batch.v1.JobSpecArgs(template=k8s.core.v1.PodTemplateSpecArgs(spec=spec))
assert_type(trainer.attach(job), k8s.batch.v1.JobSpecArgs)

dra.GpuClaimTemplate("t", device_class=h100.object_name)
dra.GpuClaimTemplate("t", device_class=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.GpuClaimTemplate("t", device_class=h100, cuont=4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
dra.GpuClaimTemplate("t", device_class=h100, count="some")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.GpuClaimTemplate("t", device_class=h100, replace="later")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.GpuClaimTemplate("t", h100)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

platform = dra.GpuPlatform(
    "gpus",
    platform="aks",
    operator={"version": "26.3.3", "eviction_label": "nvidia.com/dra-kubelet-plugin"},
    driver={"version": "0.4.1", "compute_domains": False, "gates": {"TimeSlicingSettings": True}},
    gpu_pools={"a100": {"nvidia.com/dra-kubelet-plugin": "true"}},
)
assert_type(platform, dra.GpuPlatform)
dra.GpuClaim("of-platform", device_class=platform.device_classes["gpu.nvidia.com"])
operator = dra.GpuOperator("gpu-operator", version="26.7.0", device_plugin=False)
dra.DraDriver("dra-driver", operator=operator, controller_replicas=pulumi.Output.from_input(2))
dra.ExampleDriver("example", devices_per_node=4, values={"image": {"tag": "v0.4.0"}})

tenant = dra.GpuTenant(
    "vision", quota={h100: 8, "mig.nvidia.com": 7}, templates={"t": partial(dra.SharedGpu)}
)
assert_type(tenant.templates["t"].attach(pod), dict[str, Any])
dra.GpuTenant("speech", pod_security="restricted")
dra.GpuTenant("speech", pod_security=dra.PodSecurity(warn="restricted", enforce_version="v1.37"))
dra.GpuTenant("speech", pod_security="strict")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.PodSecurity("baseline")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
dra.GpuGuardrails("g", classes={"speech": [h100]}, host_paths={"speech": ["/mnt/data"]}, node_access=["mon"])
dra.GpuTenant("speech", quota={h100: "8"})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
dra.GpuTenant("speech", templates={"t": dra.GpuDeviceClass})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]

plugin = dra.NodePlugin("node-plugin", back_end="sim", fleet="hgx-h100", settings={"mig_delay": "2s"})
assert_type(plugin.driver_name, str)
dra.GpuPlatform("p", driver=None, node_plugin="sim")
dra.GpuPlatform("p", driver=None, node_plugin={"back_end": "nvml", "nvidia_driver_root": "/"})

dra.NodePlugin("n", back_end="simulated")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.NodePlugin("n", back_end="sim", fleets="hgx-h100")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
dra.GpuPlatform("p", platform="azure")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.GpuPlatform("p", platform="aks", driver={"compute_domain": False})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.GpuOperator("o", device_plugins=False)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
dra.DraDriver("d", imex_mode="driver")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
dra.ExampleDriver("e", devices_per_node="four")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def team_claim(name: str, **arguments: Unpack[dra.GpuClaimTemplateArgs]) -> dra.GpuClaimTemplate:
    arguments.setdefault("labels", {"team": "ml"})
    arguments["lables"] = {"team": "ml"}  # type: ignore[typeddict-unknown-key]  # pyright: ignore[reportGeneralTypeIssues]
    return dra.GpuClaimTemplate(name, **arguments)


team_claim("t", device_class=h100, count=4, namespace=pulumi.Output.from_input("ml"))
team_claim("t", target=dra.ClusterTarget(kubernetes="1.36"), opts=pulumi.ResourceOptions(protect=True))
team_claim("t", device_class=h100, cuont=4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
team_claim("t", device_class=h100, count="some")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def service_taint(name: str, **arguments: Unpack[dra.DeviceTaintArgs]) -> dra.DeviceTaint:
    return dra.DeviceTaint(name, **arguments)


service_taint("t", key="example.com/service", pool="node-7")
service_taint("t", pool="node-7")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def team_group(name: str, **arguments: Unpack[dra.NvlinkGroupArgs]) -> dra.NvlinkGroup:
    return dra.NvlinkGroup(name, **arguments)


def team_driver(name: str, **arguments: Unpack[dra.DraDriverArgs]) -> dra.DraDriver:
    return dra.DraDriver(name, **arguments)


team_driver("d", operator=operator, compute_domains=False, controller_replicas=pulumi.Output.from_input(2))
driver_of_team: dra.DraDriverArgs = {"version": "0.4.1", "gates": {"TimeSlicingSettings": True}}
plugin_of_team: dra.NodePluginArgs = {"back_end": "sim", "fleet": "hgx-h100"}
dra.GpuPlatform("p", driver=driver_of_team, node_plugin=plugin_of_team)
parts_of_team: dra.GpuPlatformArgs = {"driver": driver_of_team, "operator": "26.7.0", "platform": "aks"}
dra.GpuPlatform("p", **parts_of_team)
dra.GpuPlatform("p", operator=driver_of_team)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# These names are not there, and what is not there has no type.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
misspelt_attribute = dra.gpu.memry  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
misspelt_name = dra.GpuClaimTemplat  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
hidden = trainer.make  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
