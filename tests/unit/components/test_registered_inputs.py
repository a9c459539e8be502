"""The inputs of components in the state: what previews and policies read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pulumi
import pytest
from pydantic.alias_generators import to_camel

import dra_infra as dra
from dra_infra.kubernetes.api import is_placeholder
from dra_infra.program.surroundings import fields_to_plain
from dra_infra.program_objects import SECRET
from tests.support.components.family import FAMILY, registered, run


def inputs_of(body: Callable[[], Any], type_name: str) -> dict[str, Any]:
    _, seen = run(body)
    (request,) = [each for each in seen.requests if each.type == f"dra-infra:index:{type_name}"]
    return fields_to_plain(request.object)


@pytest.mark.parametrize("row", FAMILY)
def test_a_component_registers_the_arguments_that_it_was_given(row: str):
    given = FAMILY[row][1]

    inputs = fields_to_plain(registered(row).component.object)

    assert inputs == {to_camel(name): value for name, value in given.items() if name != "target"}


def test_classes_are_their_names_selectors_cel_texts_and_records_the_fields_that_are_set():
    def body() -> None:
        h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
        dra.GpuClaimTemplate(
            "trainer",
            requests=[
                dra.DeviceRequest("gpu", device_class=h100, count=4, select=dra.gpu.memory >= "79Gi"),
                dra.DeviceRequest("nic", device_class=dra.class_ref("nic.example.com")),
            ],
            constraints=[dra.MatchAttribute("resource.kubernetes.io/pcieRoot")],
            configs=[dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))],
            labels={"team": "ml"},
        )

    assert inputs_of(body, "GpuClaimTemplate") == {
        "requests": [
            {
                "name": "gpu",
                "deviceClass": "h100",
                "count": 4,
                "select": (dra.gpu.memory >= "79Gi").expression(),
            },
            {"name": "nic", "deviceClass": "nic.example.com"},
        ],
        "constraints": [{"attribute": "resource.kubernetes.io/pcieRoot"}],
        "configs": [
            {
                "apiVersion": "resource.nvidia.com/v1beta1",
                "kind": "GpuConfig",
                "sharing": {"strategy": "TimeSlicing", "timeSlicingConfig": {"interval": "Long"}},
            }
        ],
        "labels": {"team": "ml"},
    }


def test_a_secret_stays_one_and_takes_nothing_else_with_it():
    inputs = inputs_of(
        lambda: dra.GpuClaimTemplate(
            "trainer", device_class="gpu.nvidia.com", count=pulumi.Output.secret(2), namespace="ml"
        ),
        "GpuClaimTemplate",
    )

    assert inputs == {"deviceClass": "gpu.nvidia.com", "count": SECRET, "namespace": "ml"}
    assert is_placeholder(inputs["count"])


def test_an_argument_of_a_wrong_type_is_left_out_and_the_others_stay():
    inputs = inputs_of(
        lambda: dra.GpuClaimTemplate("trainer", device_class=object(), count=2),  # type: ignore[arg-type]
        "GpuClaimTemplate",
    )

    assert inputs == {"count": 2}


def test_inputs_are_no_attributes_and_take_none_of_a_subclass_away():
    seen: dict[str, Any] = {}

    class TeamClaim(dra.GpuClaimTemplate):
        def __init__(self, name: str) -> None:
            self.count = 3
            super().__init__(name, device_class="gpu.nvidia.com", count=2, namespace="ml")

    def body() -> None:
        claim = TeamClaim("trainer")
        seen.update(vars(claim))

    inputs_of(body, "GpuClaimTemplate")

    assert seen["count"] == 3
    assert "deviceClass" not in seen
