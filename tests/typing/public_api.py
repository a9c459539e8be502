"""Read by mypy, not run: the types that users see. A wrong line must carry an ignore that is needed."""

from __future__ import annotations

from typing import Any, assert_type

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

dra.GpuClaimTemplate("t", device_class=h100, cuont=4)  # type: ignore[call-arg]
dra.GpuClaimTemplate("t", device_class=h100, count="some")  # type: ignore[arg-type]
dra.GpuClaimTemplate("t", device_class=h100, replace="later")  # type: ignore[arg-type]
dra.GpuClaimTemplate("t", h100)  # type: ignore[call-arg]
