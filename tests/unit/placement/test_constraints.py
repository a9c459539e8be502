from __future__ import annotations

import pytest

ROOT = "resource.kubernetes.io/pcieRoot"


def rooted(build, *roots, attribute=ROOT):
    return build.a_fleet(
        build.a_slice(
            "a",
            [
                build.a_device(f"d{index}", {} if root is None else {attribute: root})
                for index, root in enumerate(roots)
            ],
        )
    )


def test_match_takes_the_first_devices_that_share_a_value(build):
    answer = build.place_request(
        rooted(build, "x", "y", "y", "x"), build.a_request(count=2), constraints=[{"matchAttribute": ROOT}]
    )
    assert build.devices(answer.nodes[0]) == ["d0", "d3"]


def test_match_goes_back_over_a_value_that_too_few_devices_have(build):
    answer = build.place_request(
        rooted(build, "x", "y", "y"), build.a_request(count=2), constraints=[{"matchAttribute": ROOT}]
    )
    assert build.devices(answer.nodes[0]) == ["d1", "d2"]


def test_distinct_takes_devices_with_different_values(build):
    answer = build.place_request(
        rooted(build, "x", "x", "y", "z"), build.a_request(count=3), constraints=[{"distinctAttribute": ROOT}]
    )
    assert build.devices(answer.nodes[0]) == ["d0", "d2", "d3"]


@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_device_without_the_attribute_meets_no_constraint(build, kind):
    answer = build.place_request(rooted(build, None, "x"), build.a_request(), constraints=[{kind: ROOT}])
    assert build.devices(answer.nodes[0]) == ["d1"]


@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
def test_missing_attribute_is_told(build, kind):
    answer = build.place_request(rooted(build, None, None), build.a_request(), constraints=[{kind: ROOT}])
    assert build.codes(answer) == ["constraint-not-met"]
    assert "no matching device has the attribute" in answer.reasons[0].message


def test_constraint_covers_only_the_requests_that_it_names(build):
    answer = build.place_request(
        rooted(build, "x", "y", "y"),
        build.a_request("free"),
        build.a_request("a"),
        build.a_request("b"),
        constraints=[{"requests": ["a", "b"], "matchAttribute": ROOT}],
    )
    assert build.devices(answer.nodes[0]) == ["d0", "d1", "d2"]


def test_constraint_never_spans_claims(build):
    template = build.a_template("t", build.a_request(), constraints=[{"matchAttribute": ROOT}])
    answer = build.place_one(
        rooted(build, "x", "y"), build.a_class(), template, build.a_pod("p", "template:t", "template:t")
    )
    assert build.devices(answer.nodes[0]) == ["d0", "d1"]


def test_attribute_of_the_driver_may_be_written_without_its_domain(build):
    fleet = rooted(build, "x", "y", "x", attribute="model")
    constraint = {"matchAttribute": "gpu.example.com/model"}
    answer = build.place_request(fleet, build.a_request(count=2), constraints=[constraint])
    assert build.devices(answer.nodes[0]) == ["d0", "d2"]


def test_attribute_of_another_domain_is_not_found_by_its_bare_name(build):
    fleet = rooted(build, "x", attribute="model")
    constraint = {"matchAttribute": "other.example.com/model"}
    answer = build.place_request(fleet, build.a_request(), constraints=[constraint])
    assert answer.verdict == "does-not-fit"


def test_values_of_different_types_never_match(build):
    fleet = rooted(build, 1, "1", {"version": "1.0.0"}, {"string": "1.0.0"})
    answer = build.place_request(fleet, build.a_request(count=2), constraints=[{"matchAttribute": ROOT}])
    assert build.codes(answer) == ["constraint-not-met"]


def test_values_of_different_types_are_distinct(build):
    fleet = rooted(build, 1, "1", {"version": "1.0.0"}, {"string": "1.0.0"})
    answer = build.place_request(fleet, build.a_request(count=4), constraints=[{"distinctAttribute": ROOT}])
    assert answer.verdict == "fits"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("matchAttribute", "needs 3 devices with one value, the best node has 2"),
        ("distinctAttribute", "needs 3 devices with different values, the best node has 2"),
    ],
)
def test_reason_counts_the_values_of_the_best_node(build, kind, message):
    answer = build.place_request(
        rooted(build, "x", "x", "y", "y"), build.a_request(count=3), constraints=[{kind: ROOT}]
    )
    assert build.codes(answer) == ["constraint-not-met"]
    assert answer.reasons[0].message.endswith(message)
    assert f"constraint #0 of ResourceClaimTemplate ml/asked ({kind} {ROOT})" in answer.reasons[0].message


def test_all_that_a_constraint_forbids_aborts_the_pod_as_the_scheduler_does(build):
    answer = build.place_request(
        rooted(build, "x", "y"),
        build.a_request(allocationMode="All"),
        constraints=[{"matchAttribute": ROOT}],
    )
    assert build.codes(answer) == ["allocation-aborted"]
    assert answer.reasons[0].message == (
        "claim ml/asked, request gpu: cannot add device gpu.example.com/a/d1 "
        "because a claim constraint would not be satisfied"
    )


def test_list_under_a_constraint_is_no_value_where_the_gate_for_lists_is_off(build):
    fleet = rooted(build, {"strings": ["x", "y"]}, {"strings": ["y"]})
    answer = build.place_request(fleet, build.a_request(count=2), constraints=[{"matchAttribute": ROOT}])
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["constraint-not-met"])


def test_eleven_of_ten_with_a_constraint_is_answered_at_once(build):
    fleet = rooted(build, *["x"] * 30)
    constraint = {"matchAttribute": ROOT}
    answer = build.place_request(
        fleet, build.a_request("a", count=15), build.a_request("b", count=16), constraints=[constraint]
    )
    assert build.codes(answer) == ["too-few-devices"]


def test_devices_that_the_scheduler_reaches_too_late_are_no_promise(build):
    # All choices of the first 19 are tried before the 20 others, which is where the 20 of one value are.
    request = build.a_request(count=20)
    constraint = {"matchAttribute": ROOT}
    late = build.place_request(rooted(build, *["x"] * 19, *["y"] * 20), request, constraints=[constraint])
    assert (late.verdict, build.codes(late)) == ("not-decided", ["search-stopped"])
    assert late.reasons[0].message.startswith("devices are there, and the scheduler has to try so many")
    early = build.place_request(rooted(build, *["y"] * 20, *["x"] * 19), request, constraints=[constraint])
    assert early.verdict == "fits"
    assert build.devices(early.nodes[0]) == [f"d{index}" for index in range(20)]


def test_search_that_finds_no_end_says_so(build, monkeypatch):
    monkeypatch.setattr("dra_infra.placement.cluster.STEPS_LIMIT", 2)
    answer = build.place_request(rooted(build, "x", "x", "x"), build.a_request(count=3))
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["search-stopped"])
    assert "after 2 devices tried" in answer.reasons[0].message
