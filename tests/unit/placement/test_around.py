"""Placements where other pods, extended resources and quotas decide."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import Taken, read_shape
from dra_infra.placement.rolling import Rollover, step_rollovers
from dra_infra.target import ClusterTarget
from tests.support.placing import ask, place

HOST, ZONE = "kubernetes.io/hostname", "zone"
GPU = "example.com/gpu"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RELEASES = {minor: ClusterTarget(kubernetes=minor).releases[0] for minor in ("1.34", "1.35", "1.36", "1.37")}


def term(key=HOST, **labels):
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels or {"app": "web"}}}


def near(*terms):
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms):
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def spread(key=ZONE, **rest):
    return [{**term(key), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **rest}]


def zones(build, *zones, count=8):
    """A node with GPUs for each letter, in that zone."""
    names = [f"n{number}" for number in range(len(zones))]
    nodes = [build.a_node(name, labels={ZONE: zone}) for name, zone in zip(names, zones, strict=True)]
    return build.a_fleet(*(build.gpus(name, count) for name in names), nodes=nodes)


def program(build, *workloads):
    return [build.a_class(), build.a_template("t", build.a_request()), *workloads]


def web(build, name="web", **rest):
    return build.a_deployment(name, "template:t", labels={"app": "web"}, **rest)


def nodes(answer):
    return [each.node for each in answer.nodes]


def pods(answer):
    return [each.node for each in answer.pods]


def running(node, app="web", **spec):
    return node, read_shape(spec, "ml", {"app": app})


def test_anti_affinity_within_a_workload_needs_a_node_for_each_pod(build):
    fleet = zones(build, "a", "a", "b")
    (answer,) = place(program(build, web(build, replicas=3, affinity=apart(term()))), fleet).workloads
    assert (answer.verdict, answer.more_pods, pods(answer)) == ("fits", 0, ["n0", "n1", "n2"])
    (answer,) = place(program(build, web(build, replicas=3, affinity=apart(term(ZONE)))), fleet).workloads
    assert answer.verdict == "does-not-fit"
    assert answer.reasons[0].message == "2 of 3 pods fit on the free fleet"
    assert pods(answer) == ["n0", "n2"]


def test_pods_that_run_keep_others_off_and_are_named(build):
    taken = Taken(pods=(running("n0"), running("n1", app="db", affinity=apart(term()))))
    fleet = zones(build, "a", "a", "b")
    (answer,) = place(program(build, web(build, affinity=apart(term()))), fleet, taken=taken).workloads
    assert nodes(answer) == ["n2"]
    assert {each.code for each in answer.reasons} == {"other-pods-in-the-way"}
    assert [each.example for each in answer.reasons] == ["n0", "n1"]


def test_anti_affinity_between_workloads_decides_together(build):
    fleet = zones(build, "a")
    both = program(build, web(build), web(build, "work", affinity=apart(term())))
    placement = place(both, fleet)
    assert [each.verdict for each in placement.workloads] == ["fits", "fits"]
    assert placement.joint.verdict == "never"


def test_spreading_alternates_between_zones(build):
    fleet = zones(build, "a", "b")
    asks = web(build, replicas=4, topologySpreadConstraints=spread())
    (answer,) = place(program(build, asks), fleet).workloads
    assert (answer.verdict, pods(answer), answer.more_pods) == ("fits", ["n0", "n1", "n0", "n1"], 12)


def test_spreading_is_bound_by_the_smaller_zone(build):
    nodes_ = [build.a_node("n0", labels={ZONE: "a"}), build.a_node("n1", labels={ZONE: "b"})]
    fleet = build.a_fleet(build.gpus("n0", 8), build.gpus("n1", 2), nodes=nodes_)
    asks = web(build, replicas=6, topologySpreadConstraints=spread())
    (answer,) = place(program(build, asks), fleet).workloads
    assert answer.verdict == "does-not-fit"
    assert answer.reasons[0].message == "5 of 6 pods fit on the free fleet"


def test_pods_that_want_to_be_together_go_where_the_first_is(build):
    fleet = zones(build, "a", "b", count=2)
    asks = web(build, replicas=2, affinity=near(term(ZONE)))
    (answer,) = place(program(build, asks), fleet).workloads
    assert (answer.verdict, pods(answer), answer.more_pods) == ("fits", ["n0", "n0"], 0)
    (answer,) = place(program(build, web(build, replicas=3, affinity=near(term(ZONE)))), fleet).workloads
    assert answer.verdict == "does-not-fit"


def test_a_workload_comes_behind_the_one_that_it_wants_to_be_near(build):
    fleet = zones(build, "a", "b")
    first = build.a_deployment("a-first", "template:t", affinity=near(term(ZONE)))
    asked = program(build, first, web(build, nodeSelector={ZONE: "b"}))
    answers = place(asked, fleet).workloads
    assert [(each.owner.name, pods(each)) for each in answers] == [("a-first", ["n1"]), ("web", ["n1"])]
    assert nodes(answers[0]) == ["n0", "n1"]


def test_affinity_to_pods_that_are_not_known_is_left_out_and_named(build):
    fleet = zones(build, "a")
    lonely = build.a_deployment("work", "template:t", affinity=near(term()))
    (answer,) = place(program(build, lonely), fleet).workloads
    assert answer.verdict == "fits"
    assert answer.unmodelled == ("affinity.podAffinity (near pods that are not in this input)",)
    nowhere = build.a_deployment("cache", labels={"app": "web"}, nodeSelector={ZONE: "other"})
    partial = dataclasses.replace(fleet, is_partial=True)
    (answer,) = place(program(build, lonely, nowhere), partial).workloads
    assert answer.unmodelled == (
        "affinity.podAffinity (near pods of Deployment ml/cache, which are not placed)",
    )


@pytest.mark.parametrize(("zone", "places", "verdict"), [("b", ["n1"], "always"), ("c", [], "never")])
def test_pods_go_where_those_without_claims_are_that_they_want_to_be_near(build, zone, places, verdict):
    empty = build.a_node("n2", labels={ZONE: "c"})
    fleet = zones(build, "a", "b")
    fleet = dataclasses.replace(fleet, nodes=(*fleet.nodes, empty))
    lonely = build.a_deployment("work", "template:t", affinity=near(term()))
    bystander = build.a_deployment("cache", labels={"app": "web"}, nodeSelector={ZONE: zone})
    placement = place(program(build, lonely, bystander), fleet)
    (answer,) = placement.workloads
    assert (answer.verdict, nodes(answer), answer.unmodelled) == ("fits", ["n0", "n1"], ())
    assert (pods(answer), placement.joint.verdict) == (places, verdict)


def test_affinity_to_no_pod_of_a_known_cluster_refuses_every_node(build):
    lonely = build.a_deployment("work", "template:t", affinity=near(term()))
    (answer,) = place(program(build, lonely), zones(build, "a"), taken=Taken(pods=())).workloads
    assert (answer.verdict, build.codes(answer)) == ("does-not-fit", ["other-pods-in-the-way"])
    (answer,) = place(
        program(build, lonely), zones(build, "a", "a"), taken=Taken(pods=(running("n1"),))
    ).workloads
    assert nodes(answer) == ["n1"]


def test_host_ports_allow_one_pod_per_node(build):
    asks = web(build, replicas=3, containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    (answer,) = place(program(build, asks), zones(build, "a", "b")).workloads
    assert answer.verdict == "does-not-fit"
    (answer,) = place(program(build, asks), zones(build, "a", "b", "c")).workloads
    assert pods(answer) == ["n0", "n1", "n2"]


def test_a_daemon_set_skips_nodes_that_other_pods_close(build):
    daemon = build.a_deployment("agent", "template:t", kind="DaemonSet", affinity=apart(term()))
    taken = Taken(pods=(running("n0"),))
    (answer,) = place(program(build, daemon), zones(build, "a", "b"), taken=taken).workloads
    assert pods(answer) == ["n1"]


def test_what_pods_use_is_no_longer_named_once_it_is_modelled(build):
    asks = web(
        build,
        affinity=apart(term()),
        topologySpreadConstraints=spread(),
        containers=[{"name": "c", "ports": [{"hostPort": 80}]}],
        runtimeClassName="r",
        overhead={"cpu": "1"},
    )
    runtime = build.an_object("RuntimeClass", "r", overhead={"podFixed": {"cpu": "1"}})
    (answer,) = place(program(build, asks, runtime), zones(build, "a")).workloads
    assert answer.unmodelled == ()
    (answer,) = place(program(build, asks), zones(build, "a")).workloads
    assert [each.partition(" ")[0] for each in answer.unmodelled] == ["spec.template.spec.runtimeClassName"]


def by_resource(build, name="p", amount="2", resource=GPU, *claims):
    return build.a_pod(name, *claims, requests={resource: amount})


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
@pytest.mark.parametrize("resource", [GPU, "deviceclass.resource.kubernetes.io/gpu"])
def test_an_extended_resource_gets_devices_without_a_claim(build, minor, resource):
    manifests = [build.a_class(extendedResourceName=GPU), by_resource(build, resource=resource)]
    (answer,) = place(manifests, build.a_fleet(build.gpus("n")), release=RELEASES[minor]).workloads
    assert (answer.verdict, answer.more_pods) == ("fits", 3)
    (only,) = answer.nodes
    assert [(each.entry, each.request, each.device) for each in only.devices] == [
        ("<extended-resources>", "container-0-request-0", "gpu-0"),
        ("<extended-resources>", "container-0-request-0", "gpu-1"),
    ]
    assert answer.pods == (only,)


@pytest.mark.parametrize("minor", ["1.34", "1.35"])
def test_with_the_gate_off_an_extended_resource_is_one_of_the_node(build, minor):
    manifests = [build.a_class(extendedResourceName=GPU), by_resource(build)]
    placement = place(manifests, build.a_fleet(build.gpus("n")), release=RELEASES[minor])
    # As fit.go of the scheduler has it: no device plugin gives any of it out.
    (workload,) = placement.workloads
    assert (workload.verdict, [reason.code for reason in workload.reasons]) == (
        "does-not-fit",
        ["node-too-small"],
    )
    assert placement.joint.verdict == "never"


def test_the_device_plugin_of_a_node_serves_it_there(build):
    room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    fleet = build.a_fleet(
        build.gpus("dra"),
        build.gpus("plugin"),
        nodes=[
            build.a_node("dra", allocatable=room),
            build.a_node("plugin", allocatable={**room, GPU: "4"}),
            build.a_node("small", allocatable={**room, GPU: "1"}),
        ],
    )
    manifests = [build.a_class(extendedResourceName=GPU), by_resource(build)]
    (answer,) = place(manifests, fleet).workloads
    assert [(each.node, len(each.devices)) for each in answer.nodes] == [("dra", 2), ("plugin", 0)]
    assert answer.more_pods == 4 + 2 - 1
    assert [(each.code, each.example) for each in answer.reasons] == [("node-too-small", "small")]


def test_only_a_device_plugin_serves_an_extended_resource_to_a_pod_that_names_its_node(build):
    room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    nodes = [
        build.a_node("dra", allocatable=room),
        build.a_node("plugin", allocatable={**room, GPU: "4"}),
    ]
    fleet = build.a_fleet(build.gpus("dra"), nodes=nodes)

    def answer(node, **more):
        pod = build.a_pod("p", requests={GPU: "2"}, nodeName=node) | more
        (found,) = place([build.a_class(extendedResourceName=GPU), pod], fleet).workloads
        return found

    assert [(each.node, len(each.devices)) for each in answer("plugin").nodes] == [("plugin", 0)]
    assert [(each.node, len(each.devices)) for each in answer("dra", status={"phase": "Running"}).nodes] == [
        ("dra", 2)
    ]
    unserved = answer("dra")
    assert unserved.verdict == "does-not-fit"
    told = "spec.nodeName dra takes the pod round the scheduler, which alone makes the claim for its extended"
    assert any(told in each.message for each in unserved.reasons)


def test_a_pod_may_have_claims_beside_extended_resources(build):
    manifests = program(build, by_resource(build, "p", "2", GPU, "template:t"))
    manifests[0] = build.a_class(extendedResourceName=GPU)
    (answer,) = place(manifests, build.a_fleet(build.gpus("n", 3))).workloads
    assert [each.entry for each in answer.nodes[0].devices] == ["entry-0", *["<extended-resources>"] * 2]
    (answer,) = place(manifests, build.a_fleet(build.gpus("n", 2))).workloads
    assert answer.verdict == "does-not-fit"


def test_a_pod_with_claims_is_stuck_where_the_device_plugin_serves_the_rest(build):
    room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    fleet = build.a_fleet(
        build.gpus("dra"),
        build.gpus("plugin"),
        nodes=[
            build.a_node("dra", allocatable=room),
            build.a_node("plugin", allocatable={**room, GPU: "4"}),
        ],
    )
    manifests = program(build, by_resource(build, "p", "2", GPU, "template:t"))
    manifests[0] = build.a_class(extendedResourceName=GPU)
    (answer,) = place(manifests, fleet).workloads
    assert nodes(answer) == pods(answer) == ["dra"]
    assert [(each.code, each.example) for each in answer.reasons] == [("node-refuses-pod", "plugin")]
    assert "nil or empty request mappings" in answer.reasons[0].message


def test_too_few_devices_for_an_extended_resource_are_explained(build):
    manifests = [build.a_class(extendedResourceName=GPU), by_resource(build, amount="9")]
    (answer,) = place(manifests, build.a_fleet(build.gpus("n"))).workloads
    assert build.codes(answer) == ["too-few-devices"]


def test_an_implicit_name_of_no_class_is_not_decided(build):
    manifests = [by_resource(build, resource="deviceclass.resource.kubernetes.io/none")]
    (answer,) = place(manifests, build.a_fleet(build.gpus("n"))).workloads
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["class-not-known"])


def test_a_class_that_may_have_lost_its_implicit_name_is_not_decided(build):
    manifests = [
        build.a_class("gpu", extendedResourceName=GPU),
        build.a_class("other", extendedResourceName=GPU),
        by_resource(build, resource="deviceclass.resource.kubernetes.io/other"),
    ]
    (answer,) = place(manifests, build.a_fleet(build.gpus("n"))).workloads
    assert (answer.verdict, build.codes(answer)) == ("not-decided", ["not-modelled"])
    assert "gpu, other" in answer.reasons[0].message


def a_quota(build, name="team", **hard):
    return build.an_object("ResourceQuota", name, spec={"hard": hard})


def test_a_quota_bounds_the_pods_of_a_workload(build):
    quota = a_quota(build, **{"gpu.deviceclass.resource.k8s.io/devices": "3"})
    fleet = build.a_fleet(build.gpus("n"))
    (answer,) = place(program(build, web(build, replicas=2), quota), fleet).workloads
    assert (answer.verdict, answer.more_pods) == ("fits", 1)
    (answer,) = place(program(build, web(build, replicas=4), quota), fleet).workloads
    assert (answer.verdict, len(answer.pods)) == ("does-not-fit", 3)
    assert answer.reasons[0].code == "quota-refuses"
    assert answer.reasons[0].message == (
        "3 of 4 pods are made: the claim of its entry entry-0 is refused, for ResourceQuota ml/team allows 3 of "
        "gpu.deviceclass.resource.k8s.io/devices, 3 are in use, and it takes 1"
    )


def test_quotas_count_what_others_and_other_workloads_make(build):
    quota = a_quota(build, pods="3")
    fleet = build.a_fleet(build.gpus("n"))
    both = program(build, web(build, replicas=2), web(build, "work", replicas=2))
    placement = place([*both, quota], fleet)
    assert [each.verdict for each in placement.workloads] == ["fits", "fits"]
    assert placement.joint.verdict == "never"
    (reason,) = placement.joint.reasons
    assert reason.startswith("Deployment ml/work gets 1 of 2 pods beside the others: ")
    assert reason not in placement.notes
    taken = Taken(pods=(), policies=(quota,), made={"ml": Counter({"pods": 2})})
    answers = place(both, fleet, taken=taken).workloads
    assert {each.code for answer in answers for each in answer.reasons} == {"quota-refuses"}


def test_extended_resources_count_for_quotas(build):
    quota = a_quota(build, **{f"requests.{GPU}": "3"})
    manifests = [
        build.a_class(extendedResourceName=GPU),
        build.a_deployment("d", replicas=2, requests={GPU: "2"}),
        quota,
    ]
    (answer,) = place(manifests, build.a_fleet(build.gpus("n"))).workloads
    assert build.codes(answer) == ["quota-refuses"]
    assert "1 of 2 pods is made: a pod is refused" in answer.reasons[0].message


def test_limit_ranges_fill_in_requests_and_their_bounds_are_named(build):
    fleet = build.a_fleet(
        build.gpus("n"), nodes=[build.a_node("n", allocatable={"cpu": "3", "memory": "1Gi", "pods": "9"})]
    )
    limits = [{"type": "Container", "defaultRequest": {"cpu": "2"}, "max": {"cpu": "4"}}]
    held = build.an_object("LimitRange", "defaults", spec={"limits": limits})
    placement = place(program(build, web(build), held), fleet)
    assert placement.workloads[0].more_pods == 0
    assert placement.notes == ("bounds of LimitRange ml/defaults are not taken into account",)


def test_what_is_not_looked_at_in_a_quota_is_named(build):
    quota = a_quota(build, **{"limits.cpu": "1"})
    placement = place(program(build, web(build), quota), build.a_fleet(build.gpus("n")))
    assert placement.notes == ("limits.cpu of ResourceQuota ml/team are not taken into account",)
    elsewhere = {**quota, "metadata": {"name": "team", "namespace": "other"}}
    assert place(program(build, web(build), elsewhere), build.a_fleet(build.gpus("n"))).notes == ()


def test_a_rollover_waits_where_anti_affinity_leaves_no_node(build):
    def rolled(*letters):
        manifests = program(
            build,
            web(build, replicas=2, affinity=apart(term())),
            web(build, "new", replicas=2, affinity=apart(term())),
        )
        told = Rollover(
            old=build.ref("Deployment", "web", "ml"),
            new=build.ref("Deployment", "new", "ml"),
            replicas=2,
            running=2,
            surge=1,
            unavailable=0,
        )
        return step_rollovers(ask(manifests, zones(build, *letters)), [told])[told.new]

    held = rolled("a", "b")
    assert (held.started, held.wanted, held.ends) == (0, 2, False)
    assert held.nearest.refused == "is closed to it by other pods"
    assert rolled("a", "b", "c").ends


def test_devices_count_against_their_node_where_the_gate_is_on(build):
    target = ClusterTarget(kubernetes="1.37", gates={"DRANodeAllocatableResources": True})
    costs = {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "30"}}}}
    fleet = build.a_fleet(build.a_slice("n", [build.a_device(f"d{number}", **costs) for number in range(4)]))
    asked = program(build, web(build, replicas=2))
    (answer,) = place(asked, fleet, release=target.releases[0]).workloads
    assert (answer.verdict, answer.more_pods) == ("fits", 0)
    (answer,) = place(asked, fleet).workloads
    assert answer.more_pods == 2
    heavy = [*asked[:1], build.a_template("t", build.a_request(count=3)), asked[2]]
    (answer,) = place(heavy, fleet, release=target.releases[0]).workloads
    assert build.codes(answer) == ["node-too-small"]
    assert "with its devices the pod takes 90 cpu" in answer.reasons[0].message


@pytest.mark.parametrize("is_daemon_first", [True, False])
def test_devices_that_pods_of_a_daemon_set_leave_are_there_for_other_rollouts(build, is_daemon_first):
    """Its new pods ask for more than there is, so that the old ones only stop."""
    fleet = build.a_fleet(build.gpus("n", 1))
    manifests = [
        build.a_class(),
        build.a_template("one", build.a_request()),
        build.a_template("two", build.a_request(count=2)),
        build.a_deployment("agent", "template:one", kind="DaemonSet"),
        build.a_deployment("agent-new", "template:two", kind="DaemonSet"),
        build.a_deployment("web-new", "template:one"),
    ]
    kinds = {"agent": "DaemonSet", "web": "Deployment"}
    agent, web = (
        Rollover(
            old=ObjectRef(kind, name, "ml"),
            new=ObjectRef(kind, f"{name}-new", "ml"),
            replicas=number,
            running=number,
            surge=number,
            unavailable=1 - number,
            on_each=not number,
        )
        for number, (name, kind) in enumerate(kinds.items())
    )
    order = [agent, web] if is_daemon_first else [web, agent]
    came = step_rollovers(ask(manifests, fleet), order)
    assert [(came[each.new].started, came[each.new].wanted) for each in (agent, web)] == [(0, 1), (1, 1)]
