from __future__ import annotations

from decimal import Decimal

import pulumi_kubernetes as k8s
import pytest

import dra_infra as dra


def program() -> None:
    h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
    trainer = dra.GpuClaimTemplate("trainer", device_class=h100, count=4)
    pod = trainer.attach({"containers": [{"name": "c", "image": "i"}]})
    k8s.core.v1.Pod("train", metadata={"name": "train"}, spec=pod)


@pytest.fixture(scope="module")
def synthesized() -> dra.testing.SynthesizedProgram:
    return dra.testing.synth(program)


def test_a_claim_that_fits_is_true_and_says_where(synthesized):
    fit = synthesized.claim("trainer").fits("hgx-h100 x 4")
    assert fit
    assert len(fit.nodes) == 4
    assert "fits on hgx-h100 x 4" in repr(fit)


def test_a_claim_that_does_not_fit_is_false_and_says_why(synthesized):
    fit = synthesized.claim("trainer").fits("a100-80gb")
    assert not fit
    assert repr(fit).startswith('<GpuClaimTemplate("trainer") does not fit on a100-80gb x 1: ')
    assert len(repr(fit)) > len('<GpuClaimTemplate("trainer") does not fit on a100-80gb x 1: >')


def test_the_failing_assertion_shows_the_reason(synthesized):
    with pytest.raises(AssertionError, match="does not fit on a100-80gb x 1"):
        assert synthesized.claim("trainer").fits("a100-80gb")


def test_a_workload_is_asked_as_a_whole(synthesized):
    assert synthesized.fits("hgx-h100", "train")
    with pytest.raises(KeyError, match="did you mean 'train'"):
        synthesized.fits("hgx-h100", "trian")


def test_all_workloads_are_asked_at_once(synthesized):
    assert synthesized.fits_all("hgx-h100")
    fit = synthesized.fits_all("a100-80gb")
    assert not fit
    assert repr(fit) == (
        "<all workloads on a100-80gb x 1: never fit at once: no node takes a pod of Pod train>"
    )


@pytest.fixture
def pools(tmp_path):
    def pools(most):
        file = tmp_path / "pools.yaml"
        file.write_text(f"pools: [{{name: a3, nodes: hgx-h100, min: 0, max: {most}, price: 98.32}}]")
        return str(file)

    return pools


def test_what_fits_only_when_node_pools_grow_says_by_how_much(synthesized, pools):
    fit = synthesized.fits_all(pools(2))
    assert not fit
    assert "fits when node pool a3 grows by 1 node (0 -> 1 of at most 2), +98.32 an hour" in repr(fit)
    within = synthesized.fits_within_limits(pools(2))
    assert within
    assert (within.growth.added, within.growth.added_cost) == ((1,), Decimal("98.32"))
    assert "a3 grows by 1 node" in repr(within)


def test_fits_within_limits_wants_a_fleet_with_pools(synthesized):
    with pytest.raises(ValueError, match="no node pools"):
        synthesized.fits_within_limits("hgx-h100")


def test_objects_are_given_by_component_and_by_name(synthesized):
    (template,) = synthesized.component("trainer")
    assert template["kind"] == "ResourceClaimTemplate"
    assert synthesized.object("DeviceClass", "h100")["metadata"] == {"name": "h100"}
    assert [each["kind"] for each in synthesized.objects] == ["DeviceClass", "Pod", "ResourceClaimTemplate"]


@pytest.mark.parametrize(
    "ask", [lambda p: p.claim("trainr"), lambda p: p.component("trainr"), lambda p: p.object("Pod", "trian")]
)
def test_what_is_not_there_is_named_with_the_nearest(synthesized, ask):
    with pytest.raises(KeyError, match="did you mean"):
        ask(synthesized)


def test_problems_are_listed():
    broken = dra.testing.synth(lambda: dra.GpuClaimTemplate("t", device_class="h100", count=0))
    assert [(each.path, each.code) for each in broken.problems] == [
        ('GpuClaimTemplate("t").count', "count-below-one")
    ]


def test_a_program_without_mistakes_has_no_problems(synthesized):
    assert synthesized.problems == ()


def test_configuration_may_be_given():
    body = lambda: dra.GpuDeviceClass("a")  # noqa: E731
    assert (
        dra.testing.synth(body, config={"dra-infra:kubernetes": "1.33"}).problems[0].code
        == "unknown-kubernetes"
    )
