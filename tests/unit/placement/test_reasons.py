"""Why not, in the user's words and with counts."""

from __future__ import annotations

import pytest

from dra_infra.placement.placement import Reason

MODEL = "device.attributes['gpu.example.com'].model"


def test_best_node_is_counted_over_all_nodes(build):
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 4), build.gpus("c", 8))
    answer = build.place_request(fleet, build.a_request(count=9))
    assert answer.reasons == (
        Reason(
            code="too-few-devices",
            message="request gpu of ResourceClaimTemplate ml/asked needs 9 devices, "
            "the largest node has 8 that match",
            nodes=3,
            example="a",
        ),
    )


def test_selector_that_nothing_passes_is_shown_with_what_is_there(build):
    fleet = build.a_fleet(build.gpus("a", 2, model="A100"), build.gpus("b", 2, model="A100"))
    template = build.a_template("t", build.a_request())
    class_ = build.a_class("gpu", "device.driver == 'gpu.example.com'", f"{MODEL}.startsWith('H')")
    answer = build.place_one(fleet, class_, template, build.a_pod("p", "template:t"))
    (reason,) = answer.reasons
    assert str(reason) == (
        f"2 nodes: selector #1 of class gpu matches none of 2 devices: {MODEL}.startsWith('H') (model is \"A100\")"
    )


def test_selector_of_a_request_counts_what_passed_before(build):
    fleet = build.a_fleet(
        build.a_slice(
            "a", [build.a_device("d0", {"model": "x", "n": 1}), build.a_device("d1", {"model": "y", "n": 2})]
        )
    )
    request = build.a_request("gpu", f"{MODEL} == 'y'", "device.attributes['gpu.example.com'].n == 1")
    answer = build.place_request(fleet, request)
    assert answer.reasons[0].message == (
        "selector #1 of request gpu of ResourceClaimTemplate ml/asked matches none of 1 device that pass what comes "
        "before: device.attributes['gpu.example.com'].n == 1 (n is 2)"
    )


def test_capacity_and_missing_attributes_are_shown(build):
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0", memory="40Gi")]))
    expression = (
        "device.attributes['gpu.example.com'].?model.orValue('') == 'x' || "
        "device.capacity['gpu.example.com'].memory.compareTo(quantity('80Gi')) >= 0"
    )
    answer = build.place_request(fleet, build.a_request("gpu", expression))
    assert answer.reasons[0].message.endswith("(model is absent; memory is 40Gi)")


def test_many_values_and_long_expressions_are_cut(build):
    fleet = build.a_fleet(build.a_slice("a", [build.a_device(f"d{i}", {"model": f"m{i}"}) for i in range(9)]))
    names = ", ".join(f"'x{i}'" for i in range(50))
    answer = build.place_request(fleet, build.a_request("gpu", f"{MODEL} in [{names}]"))
    assert '(model is "m0", "m1", "m2" and 6 more)' in answer.reasons[0].message
    assert len(answer.reasons[0].message) < 400


def test_braces_in_an_expression_are_kept(build):
    answer = build.place_request(
        build.a_fleet(build.gpus("a", 1)), build.a_request("gpu", "{'{best}': 1} == {'x': 1}")
    )
    assert "{'{best}': 1}" in answer.reasons[0].message


def test_requests_that_need_more_devices_together_are_counted_together(build):
    fleet = build.a_fleet(build.gpus("a", 8))
    answer = build.place_request(fleet, build.a_request("x", count=5), build.a_request("y", count=4))
    assert answer.reasons[0].message == (
        "the 2 requests need 9 different devices, the largest node has 8 that match"
    )


def test_most_frequent_reason_comes_first(build):
    fleet = build.a_fleet(
        *(build.gpus(f"big-{index}", 4) for index in range(3)),
        build.gpus("a-cordoned", 8),
        nodes=[
            *(build.a_node(f"big-{index}") for index in range(3)),
            build.a_node("a-cordoned", unschedulable=True),
        ],
    )
    answer = build.place_request(fleet, build.a_request(count=5))
    assert build.codes(answer) == ["too-few-devices", "node-refuses-pod"]


def test_workload_that_fits_names_what_keeps_it_off_other_nodes(build):
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 2))
    answer = build.place_request(fleet, build.a_request(count=5))
    assert answer.verdict == "fits"
    assert [(reason.code, reason.nodes, reason.example) for reason in answer.reasons] == [
        ("too-few-devices", 1, "b")
    ]


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason(code="x", message="m"), "m"),
        (Reason(code="x", message="m", nodes=1, example="n"), "node n: m"),
        (Reason(code="x", message="m", nodes=2, example="n"), "2 nodes: m"),
    ],
)
def test_reason_says_how_many_nodes_it_is_about(reason, text):
    assert str(reason) == text
