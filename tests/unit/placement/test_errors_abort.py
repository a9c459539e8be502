"""A CEL run-time error is neither match nor miss: the scheduler gives up on the pod, if it comes to the device."""

from __future__ import annotations

from tests.support.placing import place

NOPE = "device.attributes['gpu.example.com'].nope == 'x'"


def test_error_in_a_request_names_claim_selector_and_device(build):
    answer = build.place_request(build.a_fleet(build.gpus("a", 1)), build.a_request("gpu", "true", NOPE))
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["allocation-aborted"])
    assert answer.reasons[0].message == (
        "claim ml/asked: selector #1 on device gpu.example.com/a/gpu-0: CEL runtime error: no such key: nope. consider "
        "using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )


def test_error_in_a_class_names_the_class(build):
    template = build.a_template("t", build.a_request())
    answer = build.place_one(
        build.a_fleet(build.gpus("a", 1)),
        build.a_class("gpu", NOPE),
        template,
        build.a_pod("p", "template:t"),
    )
    assert answer.reasons[0].message.startswith(
        "class gpu: selector #0 on device gpu.example.com/a/gpu-0: CEL runtime error: no such key: nope"
    )


def test_error_on_one_node_ends_the_attempt_on_all(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("d0", {"nope": "x"})]), build.a_slice("b", [build.a_device("d0")])
    )
    answer = build.place_request(fleet, build.a_request("gpu", NOPE))
    assert (answer.verdict, len(answer.nodes), answer.pods) == ("does-not-fit", 0, ())


def test_error_on_a_node_that_the_filters_refuse_is_never_met(build):
    fleet = build.a_fleet(
        build.a_slice("a", [build.a_device("d0", {"nope": "x"})]), build.a_slice("b", [build.a_device("d0")])
    )
    answer = build.place_request(
        fleet, build.a_request("gpu", NOPE), nodeSelector={"kubernetes.io/hostname": "a"}
    )
    assert answer.verdict == "fits"


def test_class_selector_that_is_false_protects_the_request_selector(build):
    template = build.a_template("t", build.a_request("gpu", NOPE))
    answer = build.place_one(
        build.a_fleet(build.gpus("a", 1)),
        build.a_class("gpu", "device.driver == 'other.example.com'"),
        template,
        build.a_pod("p", "template:t"),
    )
    assert build.codes(answer) == ["no-device-matches"]


def test_device_behind_the_last_one_needed_is_never_looked_at(build):
    devices = [build.a_device("d0", {"nope": "x"}), build.a_device("d1")]
    answer = build.place_request(build.a_fleet(build.a_slice("a", devices)), build.a_request("gpu", NOPE))
    assert build.devices(answer.nodes[0]) == ["d0"]


def test_pods_that_would_come_to_the_device_with_the_error_are_not_promised(build):
    devices = [build.a_device("d0", {"nope": "x"}), build.a_device("d1")]
    fleet = build.a_fleet(build.a_slice("a", devices), build.a_slice("b", devices))
    template = build.a_template("t", build.a_request("gpu", NOPE))
    answer = build.place_one(
        fleet, build.a_class(), template, build.a_deployment("d", "template:t", replicas=2)
    )
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["allocation-aborted"])


def test_all_looks_at_every_device(build):
    devices = [build.a_device("d0", {"nope": "x"}), build.a_device("d1")]
    fleet = build.a_fleet(build.a_slice("a", devices))
    answer = build.place_request(fleet, build.a_request("gpu", NOPE, allocationMode="All"))
    assert build.codes(answer) == ["allocation-aborted"]


def test_expression_that_does_not_compile_aborts(build):
    answer = build.place_request(build.a_fleet(build.gpus("a", 1)), build.a_request("gpu", "1 +"))
    assert build.codes(answer) == ["allocation-aborted"]
    assert answer.reasons[0].message.startswith("claim ml/asked: selector #0: CEL compile error: ")


def test_result_that_is_no_bool_aborts(build):
    fleet = build.a_fleet(build.gpus("a", 1, model="x"))
    answer = build.place_request(fleet, build.a_request("gpu", "device.attributes['gpu.example.com'].model"))
    assert build.codes(answer) == ["allocation-aborted"]


def test_a_slice_of_another_driver_that_the_allocator_cannot_parse_ends_every_attempt(build):
    # API servers store it: they do not look whether the value is a number.
    requirement = {"key": "rack", "operator": "Gt", "values": ["a"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    foreign = build.a_slice("fabric", [build.a_device("x0")], driver="nic.example.com", nodeSelector=selector)
    answer = build.place_request(build.a_fleet(build.gpus("a", 1), foreign), build.a_request())
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["allocation-aborted"])
    assert "node selection for slice fabric-nic.example.com" in answer.reasons[0].message


def test_a_device_that_is_not_parsed_ends_the_attempts_on_the_nodes_that_come_to_it(build):
    requirement = {"key": "rack", "operator": "Gt", "values": ["a"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    devices = [build.a_device("of-a", nodeName="a"), build.a_device("bad", nodeSelector=selector)]
    foreign = build.a_slice("fabric", devices, driver="nic.example.com", perDeviceNodeSelection=True)
    fleet = build.a_fleet(build.gpus("a", 1), build.gpus("b", 1), foreign)
    assert build.place_request(fleet, build.a_request()).verdict == "does-not-fit"
    on_a = build.place_request(fleet, build.a_request(), nodeSelector={"kubernetes.io/hostname": "a"})
    assert on_a.verdict == "fits"


def test_a_pod_without_claims_is_not_kept_by_a_slice_that_is_not_parsed(build):
    requirement = {"key": "rack", "operator": "Lt", "values": ["1.5"]}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    foreign = build.a_slice("fabric", [build.a_device("x0")], driver="nic.example.com", nodeSelector=selector)
    fleet = build.a_fleet(build.gpus("a", 1), foreign)
    assert place([build.a_pod("p")], fleet).joint.verdict == "always"
