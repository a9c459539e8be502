"""What is not modelled or not known is named, and never taken for an answer."""

from __future__ import annotations

import pytest

from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.kubernetes.apiserver import PodAdmission
from dra_infra.kubernetes.scheduler import find_unmodelled
from dra_infra.placement.scheduling import place_claim
from dra_infra.program_objects import SECRET, UNKNOWN
from tests.support.placing import ask, place


def test_device_field_that_is_not_known_is_named_when_the_device_is_picked(build):
    fleet = build.a_fleet(build.a_slice("a", [build.a_device("d0", fieldOfTheFuture={"a": 1})]))
    answer = build.place_request(fleet, build.a_request())
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["not-modelled"])
    assert "device gpu.example.com/a/d0: fieldOfTheFuture" in answer.reasons[0].message


def test_device_that_no_selector_matches_may_use_anything(build):
    fleet = build.a_fleet(
        build.a_slice(
            "a",
            [
                build.a_device("d0", {"model": "x"}, fieldOfTheFuture=True),
                build.a_device("d1", {"model": "y"}),
            ],
        )
    )
    request = build.a_request("gpu", "device.attributes['gpu.example.com'].model == 'y'")
    assert build.place_request(fleet, request).verdict == "fits"


def test_class_that_is_not_there_is_not_known_here(build):
    template = build.a_template("t", build.a_request(device_class="h100"))
    answer = build.place_one(
        build.a_fleet(build.gpus("a")), build.a_class(), template, build.a_pod("p", "template:t")
    )
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["class-not-known"])
    assert "class h100 not known here" in answer.reasons[0].message


@pytest.mark.parametrize("claim", ["template:nope", "claim:nope"])
def test_claim_that_is_not_there_is_not_found_in_this_input(build, claim):
    answer = build.place_one(build.a_fleet(build.gpus("a")), build.a_pod("p", claim))
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["claim-not-known"])
    assert "is not found in this input" in answer.reasons[0].message


def test_claim_of_another_namespace_is_not_found(build):
    template = build.a_template("t", build.a_request(), namespace="other")
    answer = build.place_one(
        build.a_fleet(build.gpus("a")), build.a_class(), template, build.a_pod("p", "template:t")
    )
    assert build.codes(answer) == ["claim-not-known"]


def test_no_namespace_is_the_default_namespace(build):
    template = build.a_template("t", build.a_request(), namespace="default")
    pod = build.a_pod("p", "template:t")
    del pod["metadata"]["namespace"]
    assert build.place_one(build.a_fleet(build.gpus("a")), build.a_class(), template, pod).verdict == "fits"


def test_namespace_that_is_not_known_yet_counts_as_the_one_asked_for(build):
    template = build.a_template("t", build.a_request(), namespace=UNKNOWN)
    answer = build.place_one(
        build.a_fleet(build.gpus("a")), build.a_class(), template, build.a_pod("p", "template:t")
    )
    assert answer.verdict == "fits"


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"device_class": UNKNOWN}, "class-not-known"),
        ({"count": UNKNOWN}, "value-not-known"),
        ({"selectors": [{"cel": {"expression": UNKNOWN}}]}, "value-not-known"),
        ({"selectors": [{"cel": {"expression": SECRET}}]}, "value-not-known"),
    ],
)
def test_unknown_value_in_a_claim_is_not_decided(build, request_, code):
    answer = build.place_request(build.a_fleet(build.gpus("a")), build.a_request(**request_))
    assert (answer.verdict, build.codes(answer)) == ("not-decided", [code])
    assert "is only known after `pulumi up`" in answer.reasons[0].message


def test_unknown_selector_of_a_class_is_not_decided(build):
    template = build.a_template("t", build.a_request())
    answer = build.place_one(
        build.a_fleet(build.gpus("a")),
        build.a_class("gpu", UNKNOWN),
        template,
        build.a_pod("p", "template:t"),
    )
    assert build.codes(answer) == ["value-not-known"]


def test_unknown_configuration_decides_nothing(build):
    template = build.a_template("t", build.a_request())
    opaque = {"driver": "gpu.example.com", "parameters": {"key": SECRET}}
    template["spec"]["spec"]["devices"]["config"] = [{"opaque": opaque}]
    answer = build.place_one(
        build.a_fleet(build.gpus("a")), build.a_class(), template, build.a_pod("p", "template:t")
    )
    assert answer.verdict == "fits"


@pytest.mark.parametrize(
    "pod",
    [
        {"nodeSelector": {"a": UNKNOWN}},
        {"requests": {"cpu": UNKNOWN}},
        {"tolerations": UNKNOWN},
        {"resourceClaims": UNKNOWN},
    ],
)
def test_unknown_value_in_a_pod_is_not_decided(build, pod):
    answer = build.place_request(build.a_fleet(build.gpus("a")), build.a_request(), **pod)
    assert (answer.verdict, set(build.codes(answer))) == ("not-decided", {"value-not-known"})


def test_unknown_number_of_replicas_is_not_decided(build):
    template = build.a_template("t", build.a_request())
    deployment = build.a_deployment("d", "template:t", replicas=UNKNOWN)
    answer = build.place_one(build.a_fleet(build.gpus("a")), build.a_class(), template, deployment)
    assert build.codes(answer) == ["value-not-known"]
    assert "spec.replicas" in answer.reasons[0].message


def test_pod_spec_that_is_not_known_is_noted(build):
    deployment = build.a_deployment("d")
    deployment["spec"]["template"] = UNKNOWN
    placement = place([deployment], build.a_fleet(build.gpus("a")))
    assert placement.workloads == ()
    assert placement.notes == (
        "Deployment ml/d is not looked at: its pod spec is only known after `pulumi up`",
    )


def test_version_that_is_none_is_named(build):
    template = build.a_template("t", build.a_request()) | {"apiVersion": "resource.k8s.io/v2"}
    answer = build.place_one(
        build.a_fleet(build.gpus("a")), build.a_class(), template, build.a_pod("p", "template:t")
    )
    assert build.codes(answer) == ["object-malformed"]
    assert "resource.k8s.io/v2 is none of resource.k8s.io (v1, v1beta2, v1beta1)" in answer.reasons[0].message


def test_malformed_claim_is_named_with_its_path(build):
    answer = build.place_request(build.a_fleet(build.gpus("a")), build.a_request(cuont=2))
    assert build.codes(answer) == ["object-malformed"]
    assert "spec.spec.devices.requests[0].exactly.cuont" in answer.reasons[0].message


def test_malformed_quantity_of_a_container_is_named(build):
    answer = build.place_request(build.a_fleet(build.gpus("a")), build.a_request(), requests={"cpu": "lots"})
    assert build.codes(answer) == ["object-malformed"]
    assert "containers[0].resources cpu: 'lots'" in answer.reasons[0].message


def test_claim_named_by_two_entries_is_not_decided(build):
    claim = build.a_claim("c", build.a_request())
    answer = build.place_one(
        build.a_fleet(build.gpus("a")), build.a_class(), claim, build.a_pod("p", "claim:c", "claim:c")
    )
    assert build.codes(answer) == ["not-modelled"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"schedulerName": "mine"}, "spec.schedulerName"),
        ({"schedulingGates": [{"name": "x"}]}, "spec.schedulingGates"),
        ({"priorityClassName": "high"}, "spec.priorityClassName"),
        ({"runtimeClassName": "kata"}, "spec.runtimeClassName"),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]}, "spec.volumes[0]"),
    ],
)
def test_plugin_that_is_not_modelled_is_named_beside_the_answer(build, spec, path):
    answer = build.place_request(build.a_fleet(build.gpus("a")), build.a_request(), **spec)
    assert answer.verdict == "fits"
    (named,) = answer.unmodelled
    assert named.startswith(path)


def test_other_pods_are_named_where_these_are_not_looked_at(build):
    term = {"topologyKey": "x"}
    affinity = {
        name: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        for name in ("podAffinity", "podAntiAffinity")
    }
    pod = build.a_pod(
        "p",
        affinity=affinity,
        topologySpreadConstraints=[{"maxSkew": 1}],
        containers=[
            {"name": "c", "ports": [{"hostPort": 80}]},
            {"name": "d", "ports": [{"containerPort": 80}]},
        ],
    )
    (template,) = find_pod_templates(pod)
    assert [each.partition(" ")[0] for each in find_unmodelled(template, pod)] == [
        "spec.affinity.podAffinity",
        "spec.affinity.podAntiAffinity",
        "spec.containers[0].ports",
        "spec.topologySpreadConstraints",
    ]
    assert find_unmodelled(template, pod, PodAdmission(())) == ()


def test_plain_pod_uses_nothing_that_is_not_modelled(build):
    spread = [{"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}]
    answer = build.place_request(
        build.a_fleet(build.gpus("a")),
        build.a_request(),
        topologySpreadConstraints=spread,
        schedulerName="default-scheduler",
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    assert answer.unmodelled == ()


def test_pods_without_claims_are_not_reported(build):
    placement = place([build.a_deployment("d"), build.a_pod("p")], build.a_fleet(build.gpus("a")))
    assert placement.workloads == ()
    assert placement.joint.verdict == "always"


def test_one_claim_can_be_asked_for_alone(build):
    fleet = build.a_fleet(build.gpus("a"))
    manifests = [
        build.a_class(),
        build.a_template("t", build.a_request(count=8)),
        build.a_claim("c", build.a_request(count=9)),
    ]
    template = place_claim(ask(manifests, fleet), build.ref("ResourceClaimTemplate", "t", "ml"))
    claim = place_claim(ask(manifests, fleet), build.ref("ResourceClaim", "c", "ml"))
    assert (template.verdict, len(template.nodes[0].devices)) == ("fits", 8)
    assert (claim.verdict, build.codes(claim)) == ("does-not-fit", ["too-few-devices"])


def test_claim_that_is_asked_for_and_not_there_is_not_known(build):
    answer = place_claim(ask([], build.a_fleet(build.gpus("a"))), build.ref("ResourceClaim", "c", "ml"))
    assert build.codes(answer) == ["claim-not-known"]
