"""Every component with arguments that make all of its children, for tests of what all components have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import rpc

import dra_infra as dra
from dra_infra.components.component import Component
from dra_infra.program.monitor import Monitor
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import Program

_GPU = "gpu.example.com"

FAMILY: dict[str, tuple[type[Component], dict[str, Any]]] = {
    "GpuDeviceClass": (dra.GpuDeviceClass, {}),
    "GpuClaim": (dra.GpuClaim, {"device_class": _GPU}),
    "GpuClaimTemplate": (dra.GpuClaimTemplate, {"device_class": _GPU}),
    "MigPartition": (dra.MigPartition, {"profile": "1g.10gb"}),
    "MigPartition shared": (dra.MigPartition, {"profile": "1g.10gb", "shared": True}),
    "NvlinkGroup on a board": (dra.NvlinkGroup, {"gpus": 4, "on": "hgx-h100"}),
    "NvlinkGroup over a rack": (dra.NvlinkGroup, {"gpus": 72, "on": "gb200-nvl72"}),
    "SharedGpu": (dra.SharedGpu, {}),
    "SharedGpu across pods": (dra.SharedGpu, {"across": "pods"}),
    "GpuRoles": (dra.GpuRoles, {"members": {"on-call": ["group:sre"]}, "drivers": {_GPU: ["user:driver"]}}),
    "GpuGuardrails": (
        dra.GpuGuardrails,
        {"most_devices": 8, "admin_label": ["group:it"], "without_device_plugin": ["it"]},
    ),
    "KueueQueue": (
        dra.KueueQueue,
        {"quota": {_GPU: 8}, "resources": {"cpu": "64"}, "namespaces": ["it"]},
    ),
    "DeviceTaint": (
        dra.DeviceTaint,
        {"key": "example.com/service", "pool": "node-7", "target": dra.ClusterTarget(kubernetes="1.37")},
    ),
    "GpuMonitoring": (dra.GpuMonitoring, {"plugin_namespaces": ["plugins"]}),
    "GpuTenant": (
        dra.GpuTenant,
        {"quota": {_GPU: 8}, "members": {"developer": ["group:it"]}, "roles": "gpus"},
    ),
    "DraDriver": (dra.DraDriver, {"gpu_resources_enabled_override": True}),
    "ExampleDriver": (dra.ExampleDriver, {}),
    "GpuOperator": (dra.GpuOperator, {}),
    "NodePlugin": (dra.NodePlugin, {"back_end": "sim"}),
    "NodePlugin for GPUs": (dra.NodePlugin, {"back_end": "nvml"}),
    "GpuPlatform": (dra.GpuPlatform, {"platform": "kubeadm", "operator": True}),
}
"""A row for each component, and for each kind of object that it may make. A new component needs a row here."""

CLAIMS = [row for row, (made, _) in FAMILY.items() if hasattr(made, "attach")]
OBJECTS = ["GpuDeviceClass", *CLAIMS]
"""Rows of components that make objects of Kubernetes, not releases of charts."""


def make(row: str, name: str = "it", **more: Any) -> Component:
    """The component of a row."""
    made, arguments = FAMILY[row]
    return made(name, **{**arguments, **more})  # type: ignore[call-arg]  # each has its own arguments


def assert_recorded(file: Path, now: Mapping[str, Sequence[str]], advice: str = "") -> None:
    """Check what users rely on against *file*. `make golden` adds the lines of a new component, and changes no others.

    Args:
        file: For each component a line that begins with its name and a colon, and indented lines.
        now: Lines by component, in the order of the file.
        advice: What to do if they differ.
    """
    recorded: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        if not line.startswith(" "):
            component = line.partition(":")[0]
        recorded.setdefault(component, []).append(line)
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        recorded = {component: recorded.get(component, list(lines)) for component, lines in now.items()}
        file.write_text("".join(f"{line}\n" for lines in recorded.values() for line in lines))
    assert recorded == now, advice


def unknown() -> pulumi.Output[Any]:
    """What a preview knows of a resource that is not there yet."""

    async def value(of: Any) -> Any:
        return of

    return pulumi.Output(set(), value(rpc.UNKNOWN), value(False))


class Registered:
    """What a program asked the engine for."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    @property
    def component(self) -> Any:
        """The request of the one component of ours."""
        (found,) = [each for each in self.requests if each.type.startswith("dra-infra:")]
        return found

    @property
    def children(self) -> list[Any]:
        """The requests of what the component made."""
        found = [each for each in self.requests if "dra-infra:index:" in each.parent]
        assert found
        return found

    @property
    def main(self) -> list[Any]:
        """The children that the component is about."""
        return [each for each in self.children if each.type != "kubernetes:core/v1:Namespace"]


def run(body: Callable[[], Any]) -> tuple[Program, Registered]:
    """Run a program as `synth` does, on the newest Kubernetes, and note what it registers."""
    seen = Registered()
    register = Monitor.RegisterResource

    def note(self: Monitor, request: Any) -> Any:
        seen.requests.append(request)
        return register(self, request)

    Monitor.RegisterResource = note  # type: ignore[method-assign]  # put back below
    try:
        program = synth_function(body, config={"dra-infra:kubernetes": "1.37", "dra-infra:driver": "0.5"})
    finally:
        Monitor.RegisterResource = register  # type: ignore[method-assign]
    return program, seen


def registered(row: str, /, **more: Any) -> Registered:
    """What the component of a row registers, without a problem."""
    program, seen = run(lambda: make(row, **more))
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return seen


def with_options(row: str, make_options: Callable[[], dict[str, Any]]) -> Registered:
    """The same with options, which may be resources of the program."""
    program, seen = run(lambda: make(row, opts=pulumi.ResourceOptions(**make_options())))
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return seen
