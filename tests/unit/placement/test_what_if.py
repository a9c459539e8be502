"""Fleets with something changed, and programs with other numbers of pods."""

from __future__ import annotations

import pytest

from dra_infra.catalog import load_fleet
from dra_infra.errors import FleetError, InvalidSpecError
from dra_infra.placement import what_if as changing
from dra_infra.placement.cluster import newest_release
from dra_infra.placement.what_if import WhatIf, scale
from dra_infra.target import ClusterTarget
from tests.support.placing import place


def change_fleet(fleet, what_if, release=None):
    return changing.change_fleet(fleet, what_if, release or newest_release())


def codes(error):
    return [(problem.path, problem.code) for problem in error.value.problems]


def fits(build, fleet, count=8, replicas=1):
    manifests = [
        build.a_class("gpu", "device.driver == 'gpu.nvidia.com'"),
        build.a_template("t", build.a_request(count=count)),
        build.a_deployment("d", "template:t", replicas=replicas),
    ]
    (answer,) = place(manifests, fleet).workloads
    return answer


def test_added_nodes_get_names_of_their_own_and_can_be_used(build):
    fleet = load_fleet("hgx-h100 x 1")
    more = change_fleet(fleet, WhatIf(add=(load_fleet("hgx-h100 x 2"),)))
    assert len({node.name for node in more.nodes}) == 3
    assert fits(build, more, replicas=3).verdict == "fits"
    assert more.notes == ("what if: with hgx-h100 x 2 added",)


def test_removed_nodes_take_their_devices_with_them(build):
    fleet = load_fleet("hgx-h100 x 3")
    less = change_fleet(fleet, WhatIf(remove=(fleet.nodes[0].name, fleet.nodes[1].name)))
    assert [node.name for node in less.nodes] == [fleet.nodes[2].name]
    assert fits(build, less, replicas=2).verdict == "does-not-fit"
    assert all(slice_.spec.node_name in (None, fleet.nodes[2].name) for slice_ in less.slices)


def test_drained_nodes_take_no_more_pods(build):
    fleet = load_fleet("hgx-h100 x 2")
    drained = change_fleet(fleet, WhatIf(drain=("*-0",)))
    answer = fits(build, drained)
    assert [node.node for node in answer.nodes] == [fleet.nodes[1].name]


def test_failed_devices_keep_pods_away(build):
    fleet = load_fleet("hgx-h100 x 1")
    node = fleet.nodes[0].name
    failed = change_fleet(fleet, WhatIf(fail=(f"{node}/gpu-3",)))
    assert fits(build, failed).verdict == "does-not-fit"
    assert fits(build, failed, count=7).verdict == "fits"


def test_where_servers_keep_no_taints_a_failed_device_is_no_longer_published():
    fleet = load_fleet("hgx-h100 x 1")
    release = ClusterTarget(kubernetes="1.35").releases[0]
    failed = change_fleet(fleet, WhatIf(fail=("*/gpu-3",)), release)
    names = {device.name for slice_ in failed.slices for device in slice_.spec.devices or ()}
    assert "gpu-2" in names
    assert "gpu-3" not in names
    assert failed.notes[-1].endswith("no longer published: 1.35 keeps no taints of devices")


@pytest.mark.parametrize(
    ("what_if", "path", "code", "hint"),
    [
        (WhatIf(remove=("hgx-h100-O",)), "--remove", "what-if-node", "write --remove "),
        (WhatIf(drain=("zzz",)), "--drain", "what-if-node", "write --drain "),
        (WhatIf(fail=("node/gpu-99",)), "--fail", "what-if-device", "write --fail "),
    ],
)
def test_names_that_are_not_there_get_the_nearest_one(what_if, path, code, hint):
    with pytest.raises(FleetError) as error:
        change_fleet(load_fleet("hgx-h100 x 2"), what_if)
    assert codes(error) == [(path, code)]
    assert error.value.problems[0].hint.startswith(hint)


def test_all_mistakes_are_told_at_once():
    with pytest.raises(FleetError) as error:
        change_fleet(load_fleet("hgx-h100"), WhatIf(remove=("a",), drain=("b",), fail=("c/d",)))
    assert len(error.value.problems) == 3


@pytest.mark.parametrize("target", ["deployment/d", "Deployment/d", "ml/deployment/d"])
def test_workloads_are_scaled_by_kind_and_name(build, target):
    manifests = [build.a_template("t", build.a_request()), build.a_deployment("d", "template:t", replicas=2)]
    scaled, notes = scale(manifests, {target: 40})
    assert scaled[1]["spec"]["replicas"] == 40
    assert manifests[1]["spec"]["replicas"] == 2
    assert notes == (f"what if: {target} has 40 pods instead of 2",)


def test_a_job_is_scaled_by_its_parallelism():
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {}}}
    scaled, _ = scale([job], {"job/j": 8})
    assert scaled[0]["spec"]["parallelism"] == 8


@pytest.mark.parametrize(
    ("number", "completions", "more"),
    [(9, 9, "; its completions are 9 instead of 4"), (4, 4, ""), (2, 4, "")],
)
def test_a_job_is_scaled_beyond_its_completions(number, completions, more):
    spec = {"parallelism": 6, "completions": 4, "template": {}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": spec}
    scaled, notes = scale([job], {"job/j": number})
    assert (scaled[0]["spec"]["parallelism"], scaled[0]["spec"]["completions"]) == (number, completions)
    assert notes == (f"what if: job/j has {number} pods instead of 4{more}",)


def test_scaling_what_an_autoscaler_scales_sets_its_fewest_and_its_most(build):
    target = {"kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 6}
    manifests = [
        build.a_class("gpu", "device.driver == 'gpu.nvidia.com'"),
        build.a_template("t", build.a_request(count=8)),
        build.a_deployment("d", "template:t", replicas=2),
        build.an_object("HorizontalPodAutoscaler", "h", apiVersion="autoscaling/v2", spec=spec),
    ]
    scaled, notes = scale(manifests, {"deployment/d": 9})
    (answer,) = place(scaled, load_fleet("hgx-h100 x 10")).workloads
    assert (answer.replicas, answer.most, answer.more_pods) == (9, 9, 1)
    told = "what if: deployment/d has 9 pods instead of 2 to 6; minReplicas and maxReplicas of"
    assert notes == (f"{told} HorizontalPodAutoscaler h are 9",)


def test_an_autoscaler_of_kubernetes_has_no_most_but_its_own(build):
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "minReplicas": 2}
    scaler = build.an_object("HorizontalPodAutoscaler", "h", apiVersion="autoscaling/v2", spec=spec)
    _, notes = scale([build.a_deployment("d", "template:t"), scaler], {"deployment/d": 9})
    assert notes[0].startswith("what if: deployment/d has 9 pods instead of 2 or more; ")


@pytest.mark.parametrize(
    ("target", "number", "code"), [("deployment/x", 3, "scale-unknown"), ("deployment/d", -1, "scale-number")]
)
def test_scaling_what_is_not_there_is_refused_with_the_line_to_write(build, target, number, code):
    with pytest.raises(InvalidSpecError) as error:
        scale([build.a_deployment("d", "template:t")], {target: number})
    assert codes(error) == [("--scale", code)]
    assert error.value.problems[0].hint.startswith("write --scale deployment/d=")


@pytest.mark.parametrize("target", ["trainingrun/run/a", "jobset/train"])
def test_scaling_a_kind_whose_number_is_not_known_says_which_kinds_can_be_scaled(build, target):
    with pytest.raises(InvalidSpecError) as error:
        scale([build.a_deployment("web", "template:t")], {target: 3})
    assert codes(error) == [("--scale", "scale-unknown")]
    assert error.value.problems[0].hint.startswith(
        "--scale changes objects of CronJob, Deployment, Job, LeaderWorkerSet,"
    )
