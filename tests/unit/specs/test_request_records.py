"""What people ask for in a request, as the API has it."""

from __future__ import annotations

import pytest

import dra_infra as dra
from dra_infra.errors import InvalidSpecError
from dra_infra.specs.claims import compile_claim

H100 = dra.Alternative("h100", device_class="h100")


def compiled(*requests, target=None, **arguments):
    return compile_claim(requests, target=target, **arguments).to_manifest()["devices"]


def codes(*requests, target=None, **arguments):
    with pytest.raises(InvalidSpecError) as caught:
        compile_claim(requests, target=target, **arguments)
    return {(problem.path, problem.code) for problem in caught.value.problems}


def request(**arguments):
    return dra.DeviceRequest("gpu", **({"device_class": "gpu.nvidia.com"} | arguments))


def test_a_ladder_lists_its_alternatives_in_order():
    two = dra.Alternative("a100", device_class="a100", count=2, select=dra.gpu.memory >= "40Gi")
    (found,) = compiled(dra.DeviceRequest("gpu", first_available=[H100, two]))["requests"]
    assert [each["name"] for each in found["firstAvailable"]] == ["h100", "a100"]
    assert [each["count"] for each in found["firstAvailable"]] == [1, 2]
    assert "exactly" not in found
    assert "quantity" in found["firstAvailable"][1]["selectors"][0]["cel"]["expression"]


def test_tolerations_keep_their_words():
    tolerations = [
        dra.Toleration(key="gpu.nvidia.com/xid"),
        dra.Toleration(key="a", operator="Equal", value="b", effect="NoExecute", seconds=30),
    ]
    (found,) = compiled(request(tolerations=tolerations))["requests"]
    assert found["exactly"]["tolerations"] == [
        {"key": "gpu.nvidia.com/xid", "operator": "Exists"},
        {"key": "a", "operator": "Equal", "value": "b", "effect": "NoExecute", "tolerationSeconds": 30},
    ]


def test_capacity_keeps_its_names():
    (found,) = compiled(request(capacity={"memory": "20Gi", "shares": "2"}))["requests"]
    assert found["exactly"]["capacity"] == {"requests": {"memory": "20Gi", "shares": "2"}}


def test_admin_access_is_written_only_where_it_is_asked_for():
    assert compiled(request(admin_access=True))["requests"][0]["exactly"]["adminAccess"] is True
    assert "adminAccess" not in compiled(request())["requests"][0]["exactly"]


def test_a_constraint_may_name_an_alternative():
    asked = dra.DeviceRequest("gpu", first_available=[H100])
    constraint = dra.MatchAttribute(dra.gpu.product, requests=["gpu/h100"])
    assert compiled(asked, constraints=[constraint])["constraints"][0]["requests"] == ["gpu/h100"]
    wrong = dra.MatchAttribute(dra.gpu.product, requests=["gpu/a100"])
    assert codes(asked, constraints=[wrong]) == {("constraints[0].requests[0]", "unknown-request")}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"first_available": [H100]}, ("requests[0].device_class", "shorthand-with-requests")),
        (
            {"device_class": None, "first_available": [H100], "count": 2},
            ("requests[0].count", "shorthand-with-requests"),
        ),
        (
            {"device_class": None, "first_available": [H100, H100]},
            ("requests[0].first_available[1].name", "duplicate-request"),
        ),
        (
            {"device_class": None, "first_available": ["h100"]},
            ("requests[0].first_available[0]", "wrong-type"),
        ),
        ({"device_class": None, "first_available": "h100"}, ("requests[0].first_available", "wrong-type")),
        ({"device_class": None}, ("requests[0].device_class", "missing-argument")),
        ({"tolerations": ["x"]}, ("requests[0].tolerations[0]", "wrong-type")),
        ({"tolerations": [dra.Toleration()] * 17}, ("requests[0].tolerations", "too-many-tolerations")),
        (
            {"tolerations": [dra.Toleration(value="x")]},
            ("requests[0].tolerations[0].value", "invalid-toleration"),
        ),
        (
            {"tolerations": [dra.Toleration(operator="Equal")]},
            ("requests[0].tolerations[0].key", "invalid-toleration"),
        ),
        (
            {"tolerations": [dra.Toleration(seconds=3)]},
            ("requests[0].tolerations[0].seconds", "invalid-toleration"),
        ),
        ({"capacity": {"memory": "20 GB"}}, ("requests[0].capacity['memory']", "wrong-type")),
        ({"capacity": {"memory": 20}}, ("requests[0].capacity['memory']", "wrong-type")),
        ({"capacity": ["memory"]}, ("requests[0].capacity", "wrong-type")),
        ({"admin_access": "yes"}, ("requests[0].admin_access", "wrong-type")),
    ],
)
def test_what_is_wrong_is_told_at_the_argument(arguments, expected):
    assert codes(request(**arguments)) == {expected}


def test_nine_alternatives_are_too_many():
    ladder = [dra.Alternative(f"a{index}", device_class="x") for index in range(9)]
    assert codes(dra.DeviceRequest("gpu", first_available=ladder)) == {
        ("requests[0].first_available", "too-many-items")
    }


@pytest.mark.parametrize(
    ("arguments", "off", "on"),
    [
        ({"tolerations": [dra.Toleration()]}, "1.35", "1.36"),
        ({"capacity": {"memory": "1Gi"}}, "1.34", "1.36"),
    ],
)
def test_what_the_target_would_clear_is_refused(arguments, off, on):
    (argument,) = arguments
    assert codes(request(**arguments), target=dra.ClusterTarget(kubernetes=off)) == {
        (f"requests[0].{argument}", "needs-newer-kubernetes")
    }
    assert compiled(request(**arguments), target=dra.ClusterTarget(kubernetes=on))


def test_a_gate_that_the_cluster_has_on_is_enough():
    target = dra.ClusterTarget(kubernetes="1.34", gates={"DRADeviceTaints": True})
    assert compiled(request(tolerations=[dra.Toleration()]), target=target)


def test_configs_are_checked_for_the_devices_of_the_request():
    config = dra.MigDeviceConfig(requests=["gpu"])
    assert codes(request(), configs=[config]) == {("configs[0].requests", "config-device-type")}
    right = dra.GpuConfig(sharing=dra.TimeSlicing(interval="Long"))
    (found,) = compiled(request(), configs=[right])["config"]
    assert found["opaque"]["parameters"]["sharing"]["timeSlicingConfig"] == {"interval": "Long"}


def test_devices_are_paired_by_what_all_drivers_publish():
    gpu = request()
    nic = dra.DeviceRequest("nic", device_class="dranet")
    (found,) = compiled(gpu, nic, constraints=[dra.pair(gpu, nic)])["constraints"]
    assert found == {"requests": ["gpu", "nic"], "matchAttribute": "resource.kubernetes.io/pcieRoot"}
    assert dra.pair("gpu", "nic", on="numa-node").attribute == "resource.kubernetes.io/numaNode"


def test_devices_are_paired_on_nothing_else():
    with pytest.raises(InvalidSpecError) as caught:
        dra.pair("gpu", "nic", on="nvlink")
    assert [(each.path, each.code) for each in caught.value.problems] == [("pair.on", "wrong-type")]
