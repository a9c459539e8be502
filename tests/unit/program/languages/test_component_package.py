"""Components for a program in another language, made in their own process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import resource_pb2

from dra_infra.errors import Place
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.languages import component_package
from dra_infra.program.languages.component_package import ComponentPackage
from dra_infra.program.languages.endpoint import Endpoint
from dra_infra.program.languages.registrations import LanguageMonitor
from dra_infra.program.monitor import Engine
from dra_infra.program.project import Project
from dra_infra.program.transforms import Transforms


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[LanguageMonitor]:
    """A monitor whose package may start."""
    project = Project(
        name="app",
        root=tmp_path,
        program=tmp_path,
        stack="dev",
        stack_file=tmp_path / "Pulumi.dev.yaml",
        config={},
    )
    made = LanguageMonitor(
        project="app",
        stack="dev",
        root=tmp_path,
        names=MadeUpNames({}),
        transforms=Transforms(),
        config={},
        places={"trainer": Place(file="Pulumi.yaml", line=7)},
    )
    endpoint = Endpoint(
        monitor=made, registrar=made, engine=Engine(), schema_of=lambda _: component_package.schema()
    )
    made.package = ComponentPackage(
        project=project, address=endpoint.address, deadline=time.monotonic() + 120
    )
    endpoint.start()
    try:
        yield made
    finally:
        made.package.stop()
        endpoint.stop()


def request(kind: str, **inputs: Any) -> resource_pb2.RegisterResourceRequest:
    asked = resource_pb2.RegisterResourceRequest(
        type=f"dra-infra:index:{kind}", name="trainer", remote=True, acceptSecrets=True
    )
    asked.object.update(inputs)
    return asked


def test_a_component_its_children_and_outputs_are_those_of_python(monitor: LanguageMonitor):
    answer = monitor.register(request("GpuClaimTemplate", deviceClass="gpu.example.com", count=2))
    names = [urn.split("::", 2)[2] for urn in monitor.registrations]
    assert names == [
        "dra-infra:index:GpuClaimTemplate::trainer",
        "dra-infra:index:GpuClaimTemplate$kubernetes:resource.k8s.io/v1:ResourceClaimTemplate::trainer",
    ]
    assert answer.urn == next(iter(monitor.registrations))
    claim = answer.object.fields["podClaim"].struct_value
    assert claim.fields["resourceClaimTemplateName"].string_value.startswith("trainer-")
    # Both have the place of the program's line.
    assert {str(each.place) for each in monitor.registrations.values()} == {"Pulumi.yaml:7"}


def test_problems_have_path_code_hint_and_place_and_the_program_goes_on(monitor: LanguageMonitor):
    answer = monitor.register(request("GpuClaimTemplate", deviceClass="gpu.example.com", count=0))
    (problem,) = monitor.problems
    assert (problem.code, problem.path) == ("count-below-one", 'GpuClaimTemplate("trainer").count')
    assert problem.message == "0 is below 1"
    assert problem.hint.startswith("ask for 1 or more devices, or allDevices: true")
    assert problem.place == Place(file="Pulumi.yaml", line=7)
    assert "podClaim" in answer.object.fields

    user = resource_pb2.RegisterResourceRequest(
        type="kubernetes:core/v1:Pod", name="pod", custom=True, dependencies=[answer.urn]
    )
    monitor.register(user)
    monitor.leave_out_incomplete()
    assert list(monitor.registrations) == []


def test_a_component_that_there_is_not_is_a_problem(monitor: LanguageMonitor):
    monitor.register(request("GpuClaimTemplates"))
    (problem,) = monitor.problems
    assert (problem.code, problem.path) == ("component-not-made", 'GpuClaimTemplates("trainer")')
    assert "dra-infra:index:GpuClaimTemplates is no component of dra-infra" in problem.message
