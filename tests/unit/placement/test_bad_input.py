"""Whatever a program holds, there is an answer."""

from __future__ import annotations

import copy

import pytest

from dra_infra.program_objects import UNKNOWN
from tests.support.placing import place

JUNK = [None, UNKNOWN, "x", 1, -1, True, 1.5, [], {}, [1], ["x"], [{}], [[]], {"a": 1}, {"a": None}]


def program(build):
    terms = [{"matchExpressions": [{"key": "k", "operator": "NotIn", "values": ["x"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    web = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}
    term = {"topologyKey": "zone", "labelSelector": web, "matchLabelKeys": ["app"], "namespaceSelector": {}}
    pods = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "labelSelector": web, "minDomains": 1}
    constraint = {"matchAttribute": "gpu.example.com/a", "requests": ["gpu"]}
    deployment = build.a_deployment(
        "d",
        "template:t",
        "claim:c",
        replicas=1,
        requests={"cpu": "1"},
        nodeSelector={"kubernetes.io/hostname": "n"},
        affinity={"nodeAffinity": required, "podAntiAffinity": pods},
        containers=[{"name": "c", "ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "TCP"}]}],
        overhead={"cpu": "1m"},
        runtimeClassName="r",
        tolerations=[{"key": "k", "operator": "Exists"}],
        initContainers=[{"name": "i", "restartPolicy": "Always", "resources": {"limits": {"cpu": "1"}}}],
        volumes=[{"name": "v", "emptyDir": {}}],
        topologySpreadConstraints=[spread],
    )
    limits = [{"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}]
    return [
        build.a_class("gpu", "true"),
        build.a_template("t", build.a_request("gpu", "true", count=2), constraints=[constraint]),
        build.a_claim("c", build.a_request(tolerations=[{"operator": "Exists"}])),
        deployment,
        build.an_object("LimitRange", "l", spec={"limits": limits}),
        build.an_object("ResourceQuota", "q", spec={"hard": {"pods": "5"}}),
        build.an_object("RuntimeClass", "r", overhead={"podFixed": {"cpu": "1m"}}),
        build.an_object("Namespace", "ml", labels={"a": "b"}),
    ]


def paths_of(value, path=()):
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in steps:
        yield from paths_of(item, (*path, step))


@pytest.mark.parametrize("number", range(8))
def test_junk_in_any_field_is_answered(build, number):
    fleet = build.a_fleet(build.gpus("n", a=1))
    manifests = program(build)
    assert place(manifests, fleet).workloads[0].verdict == "fits"
    for path in paths_of(manifests[number]):
        if not path or path[0] == "metadata":
            continue
        for junk in JUNK:
            changed = copy.deepcopy(manifests)
            holder = changed[number]
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = junk
            for answer in place(changed, fleet).workloads:
                assert answer.verdict in ("fits", "does-not-fit", "not-decided")
                assert answer.verdict == "fits" or answer.reasons
                assert len(tuple(answer.nodes)) <= 1


@pytest.mark.parametrize("number", ["40", "many", 1.5, -1, True, 2**31])
def test_a_count_that_is_no_number_of_pods_is_not_decided(build, number):
    manifests = program(build)
    manifests[3]["spec"]["replicas"] = number
    (answer,) = place(manifests, build.a_fleet(build.gpus("n", a=1))).workloads
    assert answer.verdict == "not-decided"
    assert [reason.code for reason in answer.reasons] == ["object-malformed"]


def test_a_workload_whose_name_the_server_makes_up_is_called_by_its_start(build):
    manifests = program(build)
    manifests[3]["metadata"] = {"generateName": "train-", "namespace": "ml"}
    (answer,) = place(manifests, build.a_fleet(build.gpus("n", a=1))).workloads
    assert answer.owner.name == "train-*"


def test_no_input_at_all_is_an_empty_answer(build):
    placement = place([], build.a_fleet())
    assert (placement.workloads, placement.joint.verdict, placement.fits_count) == ((), "always", 0)
