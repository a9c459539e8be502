from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.errors import Problem
from dra_infra.program_objects import UNKNOWN, ComponentRef, ProgramRelease
from dra_infra.review import review
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers

DRIVER = "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu"


def a_release(chart=DRIVER, version="0.4.1", *, name="driver", namespace="gpus", resource="driver", **rest):
    return ProgramRelease(
        urn=f"urn:pulumi:dev::p::kubernetes:helm.sh/v3:Release::{resource}",
        name=name,
        namespace=namespace,
        chart=chart,
        version=version,
        **rest,
    )


def dangers(make, before, after, *objects, base=(), problems=()):
    old = make.program(*base, *objects, releases=tuple(before))
    new = make.program(*objects, releases=tuple(after), problems=tuple(problems))
    return find_dangers(Comparison.of(compare_programs(old, new), old, new))


def said(found, code):
    return [danger.message for danger in found if danger.code == code]


def test_equal_releases_hold_no_danger(make):
    assert dangers(make, [a_release()], [a_release()]) == ()
    assert dangers(make, [], [a_release()]) == ()


def test_a_release_that_goes_is_uninstalled(make):
    class_ = make.template("t", "t-1", device_class="gpu.nvidia.com")
    (danger,) = dangers(make, [a_release()], [], class_)
    assert (danger.code, str(danger.who)) == ("release-removed", "Release gpus/driver")
    assert danger.message == (
        "is uninstalled: Helm deletes all that the chart dra-driver-nvidia-gpu made, except its CRDs; "
        "ResourceClaimTemplate ml/t-1 still names its classes"
    )


@pytest.mark.parametrize("change", [{"name": "other"}, {"namespace": "other"}])
def test_another_name_or_namespace_is_another_installation(make, change):
    (danger,) = dangers(make, [a_release()], [a_release(**change)])
    assert danger.code == "release-removed"
    assert "is installed beside it" in danger.message


def test_a_release_under_another_urn_stays(make):
    assert dangers(make, [a_release()], [a_release(resource="other")]) == ()


def test_a_version_and_values_that_change_are_said(make):
    old = a_release("redis", "1.2.3", values={"replicas": 1, "auth": {"on": True}})
    new = a_release("redis", "2.0.0", values={"replicas": 2, "auth": {"on": True}})
    (danger,) = dangers(make, [old], [new])
    assert (danger.code, danger.message) == (
        "release-changed",
        "goes from 1.2.3 to 2.0.0 of redis and writes 1 value anew (replicas)",
    )


def test_values_that_are_no_longer_written_are_reset(make):
    old = a_release("redis", values={"auth": {"on": True}, "kept": 1})
    (danger,) = dangers(make, [old], [a_release("redis", values={"kept": 1})])
    assert danger.code == "release-values-reset"
    assert danger.message == "no longer writes auth.on: the chart's own defaults count again"


def test_a_driver_across_the_new_name_needs_two_steps_first(make):
    old = a_release("nvidia-dra-driver-gpu", "25.12.0")
    steps = said(dangers(make, [old], [a_release()]), "upgrade-step-first")
    assert len(steps) == 2
    assert any("selectors of objects of 25.12.0 cannot change" in step for step in steps)
    assert any("Helm does not upgrade the CRDs" in step for step in steps)


def test_steps_that_are_taken_are_not_asked_for(make):
    crd = make.object("CustomResourceDefinition", "computedomains.resource.nvidia.com", {}, namespace="")
    old = a_release("nvidia-dra-driver-gpu", "25.12.0")
    new = a_release(values={"nameOverride": "nvidia-dra-driver-gpu"})
    assert said(dangers(make, [old], [new], crd), "upgrade-step-first") == []
    unknown = a_release(values={"nameOverride": UNKNOWN})
    assert said(dangers(make, [old], [unknown], crd), "upgrade-step-first") == []


def test_there_is_no_way_back_across_it(make):
    steps = said(
        dangers(make, [a_release()], [a_release("nvidia-dra-driver-gpu", "25.12.0")]), "upgrade-step-first"
    )
    assert ["no way back" in step for step in steps] == [True]


def test_what_a_component_says_as_a_problem_is_not_said_again(make):
    old = a_release("nvidia-dra-driver-gpu", "25.12.0")
    new = a_release(component=ComponentRef("DraDriver", "driver"))
    problem = Problem(path='DraDriver("driver").crds', code="chart-upgrade", message="m")
    assert said(dangers(make, [old], [new], problems=[problem]), "upgrade-step-first") == []


def test_imex_does_not_change_under_compute_domains(make):
    domain = make.object("ComputeDomain", "rack", {}, api_version="resource.nvidia.com/v1beta1")
    sides = [
        a_release(version="0.5.0", values={"resources": {"computeDomains": {"imex": {"mode": mode}}}})
        for mode in ("driverManaged", "hostManaged")
    ]
    first, second = ([each] for each in sides)
    assert said(dangers(make, first, second), "upgrade-step-first") == []
    (step,) = said(dangers(make, first, second, domain), "upgrade-step-first")
    assert step == "changes resources.computeDomains.imex.mode while there is 1 ComputeDomain"


def test_an_operator_that_brings_another_kernel_driver_evicts_gpu_pods(make):
    first, second = (a_release("gpu-operator", version) for version in ("v26.3.3", "v26.7.0"))
    (message,) = said(dangers(make, [first], [second]), "kernel-driver-changed")
    assert message.startswith("changes NVIDIA's kernel driver from 580.126.20 to 595.91.07")
    kept = {"driver": {"version": "580.126.20"}}
    assert said(dangers(make, [first], [replace(second, values=kept)]), "kernel-driver-changed") == []
    off = {"driver": {"enabled": False}}
    assert said(dangers(make, [first], [replace(second, values=off)]), "kernel-driver-changed") == []


@pytest.mark.parametrize("version", ["", "nonsense", "9999.1", UNKNOWN])
def test_unknown_charts_and_versions_raise_nothing(make, version):
    for chart in ("redis", "gpu-operator", DRIVER, "./charts/own", ""):
        dangers(make, [a_release(chart)], [a_release(chart, version)])


# Packages


@pytest.mark.parametrize("name", ["dra-infra", "pulumi-kubernetes"])
def test_another_release_of_what_decides_bytes_is_a_danger(make, name):
    base, head = (make.program(pins={name: version, "other": version}) for version in ("1.2.0", "1.3.0"))
    (danger,) = find_dangers(Comparison.of((), base, head))
    assert (danger.code, str(danger.who)) == ("package-changed", f"package {name}")
    assert danger.message.startswith("goes from 1.2.0 to 1.3.0")
    assert find_dangers(Comparison.of((), base, base)) == ()
    assert find_dangers(Comparison.of((), make.program(), head)) == ()


# Fields that the target drops


@pytest.mark.parametrize("code", ["field-dropped", "field-ignored"])
def test_fields_that_the_target_drops_are_dangers_and_no_problems(make, code):
    template = make.template("t", "t-1")
    field = "spec.spec.devices.requests[0].exactly.adminAccess"
    problems = tuple(
        Problem(
            path=f'GpuClaimTemplate("t").{field}',
            code=code,
            message=f"Kubernetes {minor} clears it",
            severity="warning",
        )
        for minor in ("1.34", "1.37")
    )
    head = make.program(template, problems=problems)
    result = review(make.program(template), head, base_label="main")
    assert result.problems == ()
    (danger,) = result.dangers
    assert (danger.code, danger.who) == (code, template.ref)
    assert field in danger.message
    assert danger.message.endswith("Kubernetes 1.34 clears it; Kubernetes 1.37 clears it")


def test_a_dropped_field_that_fails_stays_a_problem(make):
    problem = Problem(path="ResourceClaim ml/x.spec", code="field-dropped", message="m")
    result = review(make.program(), make.program(problems=(problem,)), base_label="main")
    assert (result.problems, result.dangers) == ((problem,), ())


def test_a_dropped_field_of_an_object_that_is_not_found_is_said_all_the_same(make):
    problem = Problem(path="ResourceClaim ml/x.spec", code="field-dropped", message="m", severity="warning")
    (danger,) = find_dangers(Comparison.of((), make.program(), make.program(problems=(problem,))))
    assert danger.code == "field-dropped"
