"""Claims whose names are only known after `pulumi up`: pods that take the name from the claim are placed."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra
from dra_infra.answers import compare
from dra_infra.program.synth import synth_function
from dra_infra.program_objects import Program

FLEET = "hgx-h100 x 1"


def suffix() -> pulumi.Output[Any]:
    return pulumi.StackReference("acme/platform/prod").get_output("suffix")


def named(name: str) -> pulumi.Output[str]:
    return pulumi.Output.concat(name, "-", suffix())


def pod(name: str, spec: Any) -> None:
    k8s.core.v1.Pod(name, metadata={"name": name, "namespace": "ml"}, spec=spec)


def spec_of(*entries: dict[str, Any]) -> dict[str, Any]:
    claims = [{"name": each["name"]} for each in entries]
    containers = [{"name": "c", "image": "i", "resources": {"claims": claims}}]
    return {"containers": containers, "resource_claims": list(entries)}


CONTAINERS: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}


@pytest.mark.parametrize("made", [dra.GpuClaim, dra.GpuClaimTemplate])
@pytest.mark.parametrize(("count", "fits"), [(8, True), (9, False)])
def test_a_pod_fits_by_what_the_claim_asks_for(made: Any, count: int, fits: bool):
    def body() -> None:
        claim = made("t", device_class="gpu.nvidia.com", count=count, namespace="ml", object_name=named("t"))
        pod("p", claim.attach(CONTAINERS))

    program = dra.testing.synth(body)
    assert bool(program.fits(FLEET, "p")) == fits
    assert bool(program.claim("t").fits(FLEET)) == fits


def test_the_name_that_a_component_shows_names_its_object():
    def body() -> None:
        claim = dra.GpuClaimTemplate(
            "t", device_class="gpu.nvidia.com", namespace="ml", object_name=named("t")
        )
        pod("p", spec_of({"name": "gpu", "resource_claim_template_name": claim.object_name}))

    assert dra.testing.synth(body).fits_all(FLEET)


def test_a_template_of_pulumis_own_class_is_found_by_its_metadata():
    def body() -> None:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 8}}
        template = k8s.resource.v1.ResourceClaimTemplate(
            "t",
            metadata={"name": named("t"), "namespace": "ml"},
            spec={"spec": {"devices": {"requests": [request]}}},
        )
        for name in "ab":
            pod(name, spec_of({"name": "gpu", "resource_claim_template_name": template.metadata["name"]}))

    fits = dra.testing.synth(body).fits_all(FLEET)
    assert not fits
    assert "16 devices" in repr(fits)


def test_claims_of_one_name_under_several_parents_are_told_apart():
    class Team(pulumi.ComponentResource):
        def __init__(self, name: str, kind: str, count: int) -> None:
            super().__init__(f"acme:index:{kind}", name)
            claim = dra.GpuClaimTemplate(
                "t",
                device_class="gpu.nvidia.com",
                count=count,
                namespace="ml",
                object_name=named(name),
                opts=pulumi.ResourceOptions(parent=self),
            )
            pod(name, claim.attach(CONTAINERS))

    def body() -> None:
        Team("a", "A", 1)
        Team("b", "B", 9)

    program = dra.testing.synth(body)
    assert program.problems == ()
    assert [bool(program.fits(FLEET, name)) for name in "ab"] == [True, False]


def test_a_name_that_is_not_known_and_of_no_claim_here_is_not_decided():
    def body() -> None:
        dra.GpuClaimTemplate("t", device_class="gpu.nvidia.com", namespace="ml", object_name=named("t"))
        pod("p", spec_of({"name": "gpu", "resource_claim_template_name": named("t")}))

    placed = dra.testing.synth(body).fits(FLEET, "p")
    assert placed.placement.verdict == "not-decided"
    assert "resourceClaimTemplateName is only known after" in repr(placed)


@pytest.mark.parametrize(
    ("object_name", "action", "refused"), [(None, "replaced", ()), ("named", "changed", ("spec",))]
)
def test_another_spec_makes_another_name_unless_the_name_is_given(
    object_name: str | None, action: str, refused: tuple[str, ...]
):
    def program_with(memory: str) -> Program:
        def body() -> None:
            count = suffix().apply(int)
            name = named("t") if object_name else None
            dra.GpuClaimTemplate(
                "t",
                device_class="gpu.nvidia.com",
                count=count,
                select=dra.gpu.memory >= memory,
                object_name=name,
            )

        return synth_function(body)

    review = compare(program_with("40Gi"), program_with("80Gi"), base_label="main")

    (change,) = review.changes
    assert (change.action, change.refused) == (action, refused)
