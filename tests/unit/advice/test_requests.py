from __future__ import annotations

import pytest

GPU = 'device.attributes["gpu.nvidia.com"]'
HOPPER = f'{GPU}.architecture == "Hopper"'
H100 = f'{GPU}.productName.contains("H100")'


def alternatives(inputs, *entries, **devices):
    subs = [
        {"name": name, "deviceClassName": "gpu.nvidia.com", "selectors": inputs.selectors(*texts), **rest}
        for name, texts, rest in entries
    ]
    return inputs.a_claim({"name": "gpu", "firstAvailable": subs}, **devices)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (((HOPPER,), {}), ((HOPPER,), {})),
        (((HOPPER,), {}), ((HOPPER, H100), {})),
        (((HOPPER,), {}), ((f"{H100} && {HOPPER}",), {})),
        (((), {}), ((HOPPER,), {"count": 4})),
        (((HOPPER,), {"count": 2}), ((HOPPER,), {"count": 2, "allocationMode": "ExactCount"})),
        (((), {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]}), ((HOPPER,), {})),
        (((), {}), ((), {"capacity": {"requests": {"memory": "10Gi"}}})),
        (((), {"allocationMode": "All"}), ((), {"allocationMode": "All"})),
    ],
)
def test_an_alternative_behind_a_weaker_one_is_never_taken(inputs, earlier, later):
    (problem,) = inputs.advice_on(alternatives(inputs, ("first", *earlier), ("second", *later)))
    assert problem.code == "request-shadowed"
    assert problem.path == "spec.devices.requests[0].firstAvailable[1]"
    assert "gpu/first" in problem.message


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (((HOPPER, H100), {}), ((HOPPER,), {})),
        (((HOPPER,), {}), ((f'{HOPPER} || device.driver == "gpu.example.com"',), {})),
        (((HOPPER,), {"count": 4}), ((HOPPER,), {"count": 2})),
        (((HOPPER,), {}), ((H100,), {})),
        (((), {}), ((HOPPER,), {"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]})),
        (((), {"capacity": {"requests": {"memory": "10Gi"}}}), ((), {})),
        (((), {"allocationMode": "All"}), ((), {"count": 1})),
        (((), {"allocationMode": "All"}), ((HOPPER,), {"allocationMode": "All"})),
        (((), {"deviceClassName": "mig.nvidia.com"}), ((), {})),
    ],
)
def test_an_alternative_that_may_be_taken_passes(inputs, earlier, later):
    assert inputs.codes(alternatives(inputs, ("first", *earlier), ("second", *later))) == []


def test_a_constraint_on_one_alternative_leaves_the_next_one_a_chance(inputs):
    constraint = {"matchAttribute": "gpu.nvidia.com/productName", "requests": ["gpu/first"]}
    claim = alternatives(
        inputs, ("first", (), {"count": 2}), ("second", (), {"count": 2}), constraints=[constraint]
    )
    assert inputs.codes(claim) == []


@pytest.mark.parametrize(("counts", "code"), [((16, 16), []), ((16, 17), ["too-many-devices"])])
def test_a_claim_holds_32_devices(inputs, counts, code):
    requests = [inputs.a_request(name=f"r{index}", count=count) for index, count in enumerate(counts)]
    problems = inputs.advice_on(inputs.a_claim(*requests))
    assert [each.code for each in problems] == code
    assert all(each.path == "spec.devices.requests" for each in problems)


def test_of_alternatives_the_smallest_counts(inputs):
    big = ("big", (), {"count": 40})
    small = ("small", (HOPPER,), {"count": 2})
    assert inputs.codes(alternatives(inputs, big, small)) == []
    assert inputs.codes(alternatives(inputs, big)) == ["too-many-devices"]


@pytest.mark.parametrize(("number", "code"), [(16, []), (17, ["too-many-tolerations"])])
def test_a_request_has_16_tolerations(inputs, number, code):
    tolerations = [
        {"key": f"example.com/t{index}", "operator": "Exists", "effect": "NoSchedule"}
        for index in range(number)
    ]
    problems = inputs.advice_on(inputs.a_claim(inputs.a_request(tolerations=tolerations)))
    assert [each.code for each in problems] == code
    assert all(each.path == "spec.devices.requests[0].exactly.tolerations" for each in problems)


SICK = {"key": "sick", "operator": "Equal", "value": "very"}


@pytest.mark.parametrize(
    ("others", "code"),
    [
        ([], ["toleration-without-effect"]),
        ([{**SICK, "effect": "NoSchedule"}], ["toleration-without-effect"]),
        ([{**SICK, "value": "less", "effect": "NoExecute"}], ["toleration-without-effect"]),
        ([{"key": "seen", "operator": "Exists", "effect": "NoExecute"}], ["toleration-without-effect"]),
        ([{**SICK, "effect": "NoExecute"}], []),
        ([{"key": "sick", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}], []),
        ([{"operator": "Exists", "effect": "NoExecute"}], []),
    ],
)
def test_a_toleration_without_an_effect_does_not_keep_a_pod_where_it_lets_it_in(inputs, others, code):
    claim = inputs.a_claim(inputs.a_request(tolerations=[SICK, *others]))
    problems = inputs.advice_on(claim)
    assert [each.code for each in problems] == code
    assert all(each.path == "spec.devices.requests[0].exactly.tolerations" for each in problems)


@pytest.mark.parametrize(
    ("size", "count", "hint"),
    [(2, 2, None), (4, 2, "partition2"), (2, 3, "write count: 2"), (8, 4, "partition4")],
)
def test_a_fabric_partition_is_taken_whole(inputs, size, count, hint):
    constraint = {"matchAttribute": f"gpu.nvidia.com/partition{size}"}
    problems = inputs.advice_on(inputs.a_claim(inputs.a_request(count=count), constraints=[constraint]))
    assert [each.code for each in problems] == ([] if hint is None else ["partition-size"])
    assert all(hint in each.hint for each in problems)


@pytest.mark.parametrize(
    ("requests", "driver", "code"),
    [
        (["gpu"], "gpu.nvidia.com", ["config-not-applied"]),
        (["gpu/first"], "gpu.nvidia.com", []),
        ([], "gpu.nvidia.com", []),
        (["gpu"], "dra.net", []),
    ],
)
def test_configuration_names_the_alternatives_themselves(inputs, requests, driver, code):
    parameters = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}
    config = {"requests": requests, "opaque": {"driver": driver, "parameters": parameters}}
    claim = alternatives(inputs, ("first", (HOPPER,), {}), ("second", (), {}), config=[config])
    problems = inputs.advice_on(claim)
    assert [each.code for each in problems] == code
    assert all(each.hint.startswith("write requests: [gpu/first, gpu/second]") for each in problems)
    # The allocator of 1.37 names none where all are named.
    assert all(each.message.startswith("before Kubernetes 1.37") for each in problems)


def test_paths_of_templates_have_both_specs(inputs):
    claim = inputs.a_claim(inputs.a_request(f'{GPU}.model == "x"'), kind="ResourceClaimTemplate")
    (problem,) = inputs.advice_on(claim)
    assert problem.path == "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"


def test_selectors_without_cel_keep_the_places_of_the_others(inputs):
    request = inputs.a_request(f'{GPU}.model == "x"')
    request["exactly"]["selectors"].insert(0, {})
    (problem,) = inputs.advice_on(inputs.a_claim(request))
    assert problem.path == "spec.devices.requests[0].exactly.selectors[1].cel.expression"


def test_an_empty_claim_gets_no_advice(inputs):
    assert inputs.codes(inputs.a_claim()) == []
    assert inputs.codes(inputs.a_claim({"name": "gpu"})) == []


def test_paths_of_flat_requests_have_no_exactly(inputs):
    claim = inputs.a_claim(inputs.a_request(f'{GPU}.model == "x"'))
    (problem,) = inputs.advice_on(claim, flat=True)
    assert problem.path == "spec.devices.requests[0].selectors[0].cel.expression"
