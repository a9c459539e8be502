from __future__ import annotations

import pytest

import dra_infra as dra
from dra_infra.errors import InvalidSpecError
from dra_infra.specs.claims import compile_claim


def codes_by_path(error: pytest.ExceptionInfo[InvalidSpecError]) -> dict[str, str]:
    return {problem.path: problem.code for problem in error.value.problems}


def request(name: str = "gpu", **changes: object) -> dra.DeviceRequest:
    return dra.DeviceRequest(name, **{"device_class": "gpu.nvidia.com", **changes})  # type: ignore[arg-type]


def test_one_request_becomes_exactly_that_many_devices_of_the_class():
    spec = compile_claim([request(count=4)])
    assert spec.to_manifest() == {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}]
        }
    }


def test_all_devices_are_asked_for_without_a_count():
    exactly = compile_claim([request(count="all")]).to_manifest()["devices"]["requests"][0]["exactly"]
    assert exactly == {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}


def test_a_selector_becomes_cel():
    spec = compile_claim([request(select=dra.gpu.memory >= "40Gi")])
    (selector,) = spec.to_manifest()["devices"]["requests"][0]["exactly"]["selectors"]
    assert 'quantity("40Gi")' in selector["cel"]["expression"]


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_below_one_is_refused(count: int):
    with pytest.raises(InvalidSpecError) as error:
        compile_claim([request(count=count)], shorthand=True)
    assert codes_by_path(error) == {"count": "count-below-one"}


@pytest.mark.parametrize("count", [True, 1.0, "2", None])
def test_a_count_of_another_type_is_refused(count: object):
    with pytest.raises(InvalidSpecError) as error:
        compile_claim([request(count=count)])
    assert codes_by_path(error) == {"requests[0].count": "wrong-type"}


def test_more_devices_than_a_claim_can_hold_are_refused():
    with pytest.raises(InvalidSpecError) as error:
        compile_claim([request("a", count=16), request("b", count=17)])
    assert codes_by_path(error) == {"requests": "too-many-devices"}


def test_the_most_devices_that_a_claim_can_hold_are_taken():
    assert compile_claim([request(count=32)])


def test_text_as_selector_is_refused_with_the_line_to_write():
    with pytest.raises(InvalidSpecError) as error:
        compile_claim([request(select='device.driver == "x"')])
    (problem,) = error.value.problems
    assert problem.code == "wrong-type"
    assert "dra.cel(" in problem.hint


def test_cel_that_does_not_parse_is_refused():
    with pytest.raises(InvalidSpecError) as error:
        compile_claim([request(select=dra.cel("device.driver =="))])
    assert codes_by_path(error) == {"requests[0].select": "cel-syntax"}


def test_all_problems_of_all_requests_are_reported_at_once():
    with pytest.raises(InvalidSpecError) as error:
        compile_claim(
            [request("A", count=0), request("b", device_class=None), request("b")],
            [dra.MatchAttribute("productName"), dra.MatchAttribute(dra.gpu.product, requests=["c"])],
        )
    assert codes_by_path(error) == {
        "requests[0].name": "invalid-name",
        "requests[0].count": "count-below-one",
        "requests[1].device_class": "missing-argument",
        "requests[2].name": "duplicate-request",
        "constraints[0].attribute": "invalid-attribute-name",
        "constraints[1].requests[0]": "unknown-request",
    }


def test_constraints_name_attributes_with_their_domain():
    spec = compile_claim(
        [request("a"), request("b")],
        [
            dra.MatchAttribute(dra.gpu.pcie_root, requests=["a", "b"]),
            dra.DistinctAttribute("gpu.nvidia.com/uuid"),
        ],
    )
    assert spec.to_manifest()["devices"]["constraints"] == [
        {"requests": ["a", "b"], "matchAttribute": "resource.kubernetes.io/pcieRoot"},
        {"distinctAttribute": "gpu.nvidia.com/uuid"},
    ]


def test_distinct_attributes_need_the_minor_that_has_them_on():
    constraints = [dra.DistinctAttribute(dra.gpu.uuid)]
    assert compile_claim([request()], constraints, target=dra.ClusterTarget(kubernetes="1.36"))
    with pytest.raises(InvalidSpecError) as error:
        compile_claim([request()], constraints, target=dra.ClusterTarget(kubernetes="1.35"))
    assert codes_by_path(error) == {"constraints[0]": "needs-newer-kubernetes"}
