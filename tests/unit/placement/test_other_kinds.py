from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.kubernetes.scheduler import Taken
from dra_infra.placement.what_if import scale
from dra_infra.target import ClusterTarget
from tests.support.placing import place


def a_template(build, *claims, **spec):
    return {"spec": build.pod_spec(*claims, **spec)}


def a_job_set(build, name, *jobs):
    """A JobSet; a job is a name, a number of pods, and its claims."""
    replicated = [
        {
            "name": job,
            "replicas": pods,
            "template": {"spec": {"template": a_template(build, *claims)}},
        }
        for job, pods, *claims in jobs
    ]
    return build.an_object(
        "JobSet", name, apiVersion="jobset.x-k8s.io/v1alpha2", spec={"replicatedJobs": replicated}
    )


def a_volcano_job(build, name, *tasks):
    return build.an_object(
        "Job",
        name,
        apiVersion="batch.volcano.sh/v1alpha1",
        spec={
            "tasks": [
                {"name": task, "replicas": pods, "template": a_template(build, *claims)}
                for task, pods, *claims in tasks
            ]
        },
    )


def an_autoscaler(build, least, most, kind="Deployment", name="serve"):
    spec = {"scaleTargetRef": {"kind": kind, "name": name}, "maxReplicas": most}
    if least is not None:
        spec["minReplicas"] = least
    return build.an_object("HorizontalPodAutoscaler", "scale", apiVersion="autoscaling/v2", spec=spec)


def classes(build):
    return [build.a_class(), *(build.a_template(f"t{n}", build.a_request(count=n)) for n in (1, 4, 8))]


def verdicts(placement):
    return {str(each.owner): (each.replicas, each.verdict) for each in placement.workloads}


def test_each_part_of_a_job_set_is_placed_with_its_own_claims(build):
    job_set = a_job_set(build, "train", ("driver", 1, "template:t1"), ("workers", 2, "template:t4"))
    placement = place([*classes(build), job_set], build.a_fleet(build.gpus("a", 8), build.gpus("b", 8)))
    assert verdicts(placement) == {
        "JobSet ml/train/driver": (1, "fits"),
        "JobSet ml/train/workers": (2, "fits"),
    }
    assert placement.notes == ()
    assert placement.joint.verdict == "always"


def test_parts_of_an_object_that_do_not_fit_beside_each_other_are_told_by_the_joint_verdict(build):
    job_set = a_job_set(build, "train", ("driver", 1, "template:t4"), ("workers", 1, "template:t8"))
    placement = place([*classes(build), job_set], build.a_fleet(build.gpus("a", 8)))
    assert {each.verdict for each in placement.workloads} == {"fits"}
    assert placement.joint.verdict == "never"


def test_a_suspended_object_is_placed_and_that_it_sleeps_is_told(build):
    job_set = a_job_set(build, "train", ("workers", 1, "template:t1"))
    job_set["spec"]["suspend"] = True
    (workload,) = place([*classes(build), job_set], build.a_fleet(build.gpus("a", 8))).workloads
    assert workload.verdict == "fits"
    assert workload.unmodelled == (
        "spec.suspend (no pods until it is resumed; they are placed as if it were)",
    )


def test_a_gang_fits_only_with_all_of_its_parts(build):
    gang = a_volcano_job(build, "train", ("driver", 1, "template:t4"), ("workers", 1, "template:t8"))
    fleet = build.a_fleet(build.gpus("a", 8))
    placement = place([*classes(build), gang], fleet)
    assert {each.verdict for each in placement.workloads} == {"does-not-fit"}
    assert {each.reasons[0].code for each in placement.workloads} == {"gang-does-not-fit"}
    placement = place([*classes(build), gang], build.a_fleet(build.gpus("a", 8), build.gpus("b", 8)))
    assert {each.verdict for each in placement.workloads} == {"fits"}


@pytest.mark.parametrize(
    ("least", "verdict", "told"),
    [
        (2, "fits", ""),
        (3, "does-not-fit", "needs 3 of its pods, and they never fit at once"),
        (4, "does-not-fit", "needs all of its pods, and its parts never fit at once"),
        (7, "does-not-fit", "needs 7 pods at once, and there are fewer"),
    ],
)
def test_a_gang_fits_with_as_many_pods_as_it_needs_and_never_with_more_than_it_has(
    build, least, verdict, told
):
    job = a_volcano_job(build, "train", ("a", 2, "template:t4"), ("b", 2, "template:t4"))
    job["spec"]["minAvailable"] = least
    placement = place([*classes(build), job], build.a_fleet(build.gpus("a", 8)))
    assert [each.verdict for each in placement.workloads] == [verdict] * 2
    for each in placement.workloads if told else ():
        assert each.reasons[0].code == "gang-does-not-fit"
        assert told in each.reasons[0].message


def test_parts_of_a_gang_of_which_enough_pods_fit_in_one_way_fit(build):
    """One of 8 devices and one of 4 have no room beside each other, and two of 4 have."""
    job = a_volcano_job(build, "train", ("a", 1, "template:t8"), ("b", 2, "template:t4"))
    job["spec"]["minAvailable"] = 2
    placement = place([*classes(build), job], build.a_fleet(build.gpus("a", 8)))
    assert {each.verdict for each in placement.workloads} == {"fits"}


def test_a_volcano_job_needs_no_more_pods_than_it_says(build):
    fleet = build.a_fleet(build.gpus("a", 4), build.gpus("b", 8))
    job = a_volcano_job(build, "train", ("driver", 1, "template:t4"), ("workers", 2, "template:t8"))
    other = build.a_deployment("c", "template:t4", kind="StatefulSet")
    placed = {}
    for least in (3, 2):
        job["spec"]["minAvailable"] = least
        answer = place([*classes(build), job, other], fleet)
        placed[least] = {each.owner.part or each.owner.name: len(each.pods) for each in answer.workloads}
        assert answer.joint.verdict == "never"
    assert placed == {3: {"c": 1, "driver": 0, "workers": 0}, 2: {"c": 0, "driver": 1, "workers": 1}}


def test_a_train_job_whose_runtime_has_a_pod_group_is_a_gang(build):
    template = a_template(build, "template:t8")
    job = {"name": "node", "template": {"metadata": {"labels": {}}, "spec": {"template": template}}}
    spec = {
        "podGroupPolicy": {"coscheduling": {}},
        "template": {"spec": {"replicatedJobs": [job, {**job, "name": "b"}]}},
    }
    runtime = build.an_object("TrainingRuntime", "r", apiVersion="trainer.kubeflow.org/v1alpha1", spec=spec)
    ref = {"runtimeRef": {"kind": "TrainingRuntime", "name": "r"}}
    train = build.an_object("TrainJob", "train", apiVersion="trainer.kubeflow.org/v1alpha1", spec=ref)
    answer = place([*classes(build), runtime, train], build.a_fleet(build.gpus("a", 8)))
    assert {each.reasons[0].code for each in answer.workloads} == {"gang-does-not-fit"}


GROUPED = ClusterTarget(
    kubernetes="1.37", gates={"GenericWorkload": True, "DRAWorkloadResourceClaims": True}
).releases[0]


OLDER = ClusterTarget(kubernetes="1.36", gates={"GenericWorkload": True}).releases[0]


def a_pod_group(build, least, **spec):
    policy = {"gang": {"minCount": least}} if least else {"basic": {}}
    return build.an_object(
        "PodGroup", "g", apiVersion="scheduling.k8s.io/v1beta1", spec={"schedulingPolicy": policy, **spec}
    )


def two_of_a_group(build):
    group = {"schedulingGroup": {"podGroupName": "g"}}
    return [
        build.a_deployment("a", "template:t4", replicas=1, **group),
        build.a_deployment("b", "template:t8", replicas=1, **group),
    ]


@pytest.mark.parametrize(
    ("least", "release", "verdicts", "reason"),
    [
        (2, GROUPED, {"does-not-fit"}, "12 devices asked"),
        (1, GROUPED, {"fits"}, "12 devices asked"),
        (0, GROUPED, {"fits"}, "12 devices asked"),
        (
            3,
            GROUPED,
            {"does-not-fit"},
            "Deployment ml/a waits for 3 pods of PodGroup ml/g, and there are fewer",
        ),
        (2, None, {"fits"}, "12 devices asked"),
        (2, OLDER, {"fits"}, "12 devices asked"),
    ],
    ids=["both", "one of them", "no gang", "more than there are", "the gate is off", "1.36 has another gate"],
)
def test_pods_of_a_pod_group_with_a_gang_start_together(build, least, release, verdicts, reason):
    manifests = [*classes(build), *two_of_a_group(build), a_pod_group(build, least)]
    answer = place(manifests, build.a_fleet(build.gpus("a", 8)), release=release)
    assert {each.verdict for each in answer.workloads} == verdicts
    assert (answer.joint.verdict, answer.joint.reasons[0][: len(reason)]) == ("never", reason)
    named = "spec.template.spec.schedulingGroup (gang scheduling)"
    assert all((named in each.unmodelled) == (release is not GROUPED) for each in answer.workloads)


def test_a_pod_group_is_one_gang_for_pods_with_the_default_namespace_and_without_one(build):
    manifests = [*classes(build), *two_of_a_group(build), a_pod_group(build, 2)]
    for each in manifests:
        each["metadata"]["namespace"] = "default"
    manifests[-3]["metadata"].pop("namespace")
    answer = place(manifests, build.a_fleet(build.gpus("a", 8), build.gpus("b", 4)), release=GROUPED)
    assert answer.joint.verdict == "depends-on-order"


@pytest.mark.parametrize(("running", "verdict"), [(1, "never"), (2, "always"), (4, "always")])
def test_pods_of_a_pod_group_that_run_count_for_its_gang(build, running, verdict):
    manifests = [*classes(build), *two_of_a_group(build), a_pod_group(build, 4)]
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 8))
    taken = Taken(grouped={("ml", "g"): running})
    answer = place(manifests, fleet, taken=taken, release=GROUPED)
    assert answer.joint.verdict == verdict
    assert sum(len(each.pods) for each in answer.workloads) == (2 if verdict == "always" else 0)


def test_a_claim_for_all_pods_of_a_pod_group_is_not_decided(build):
    claims = [{"name": "entry-0", "resourceClaimTemplateName": "t4"}]
    manifests = [*classes(build), *two_of_a_group(build), a_pod_group(build, 0, resourceClaims=claims)]
    answer = place(manifests, build.a_fleet(build.gpus("a", 8)), release=GROUPED)
    assert {each.reasons[0].code for each in answer.workloads} == {"not-modelled"}


def test_a_job_in_a_queue_of_kueue_is_told_to_wait(build):
    job_set = a_job_set(build, "train", ("workers", 1, "template:t1"))
    job_set["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "team"}
    (workload,) = place([*classes(build), job_set], build.a_fleet(build.gpus("a", 8))).workloads
    assert (workload.verdict, len(workload.unmodelled)) == ("fits", 1)
    assert workload.unmodelled[0].startswith("metadata.labels.kueue.x-k8s.io/queue-name (no pods until")


def test_jobs_of_two_groups_may_have_one_name(build):
    spec = {"template": a_template(build, "template:t4")}
    pods = build.an_object("Job", "train", apiVersion="batch/v1", spec=spec)
    gang = a_volcano_job(build, "train", ("w", 1, "template:t4"))
    placement = place([*classes(build), pods, gang], build.a_fleet(build.gpus("a", 8)))
    assert {str(each.owner).split()[0]: each.verdict for each in placement.workloads} == {
        "Job": "fits",
        "Job.batch.volcano.sh": "fits",
    }


def test_a_gang_that_does_not_find_room_for_all_of_its_pods_leaves_theirs_to_others(build):
    # Both fit alone; what is placed together is the gang that is first, and not half of the second.
    first = a_volcano_job(build, "a", ("workers", 1, "template:t8"))
    second = a_volcano_job(build, "b", ("workers", 2, "template:t4"))
    third = build.a_deployment("c", "template:t4", kind="StatefulSet")
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 4))
    placed = {
        each.owner.name: len(each.pods)
        for each in place([*classes(build), first, second, third], fleet).workloads
    }
    assert placed == {"a": 1, "b": 0, "c": 1}


def test_pods_of_a_gang_that_run_elsewhere_are_there_for_its_others(build):
    job = a_volcano_job(build, "train", ("driver", 1), ("workers", 2, "template:t4"))
    job["spec"]["tasks"][1]["template"]["spec"]["tolerations"] = [{"operator": "Exists"}]
    job["spec"]["minAvailable"] = 3
    node = build.a_node("a", taints=[{"key": "gpu", "value": "", "effect": "NoSchedule"}])
    fleet = build.a_fleet(build.gpus("a", 8), nodes=[node])
    partial = place([*classes(build), job], replace(fleet, is_partial=True))
    assert [each.owner.part for each in partial.left_out] == ["driver"]
    assert (partial.joint.verdict, len(partial.workloads[0].pods)) == ("always", 2)
    whole = place([*classes(build), job], fleet)
    assert [(each.owner.part, each.verdict) for each in whole.workloads] == [
        ("driver", "does-not-fit"),
        ("workers", "fits"),
    ]
    assert whole.joint.verdict == "never"


def test_an_autoscaled_workload_is_placed_with_the_fewest_and_with_the_most_pods(build):
    serve = build.a_deployment("serve", "template:t4", replicas=1)
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 4))
    manifests = [*classes(build), serve, an_autoscaler(build, 2, 6)]
    placement = place(manifests, fleet)
    (workload,) = placement.workloads
    assert (workload.replicas, workload.most, workload.verdict) == (2, 6, "fits")
    assert [(each.code, each.message) for each in workload.reasons] == [
        (
            "autoscaled-beyond-room",
            "an autoscaler makes up to 6 pods, of which 3 find room on the free fleet",
        )
    ]
    assert placement.joint.verdict == "always"
    assert placement.joint_at_most is not None
    assert placement.joint_at_most.verdict == "never"


def test_autoscaled_pods_without_devices_count_with_the_fewest_and_the_most_too(build):
    web = build.a_deployment("serve", requests={"cpu": "3"}, replicas=9)
    train = build.a_deployment("train", "template:t1", requests={"cpu": "3"})
    node = build.a_node("a", allocatable={"cpu": "10", "memory": "64Gi", "pods": "110"})
    fleet = build.a_fleet(build.gpus("a", 8), nodes=(node,))
    placement = place([*classes(build), web, train, an_autoscaler(build, 2, 3)], fleet)
    assert (placement.joint.verdict, placement.joint_at_most.verdict) == ("always", "never")


def test_an_autoscaler_without_a_least_number_keeps_one_pod(build):
    serve = build.a_deployment("serve", "template:t4", replicas=5)
    placement = place(
        [*classes(build), serve, an_autoscaler(build, None, 3)], build.a_fleet(build.gpus("a", 8))
    )
    assert [(each.replicas, each.most) for each in placement.workloads] == [(1, 3)]


@pytest.mark.parametrize(
    ("bounds", "told"),
    [({}, (1, 100)), ({"minReplicaCount": 0, "maxReplicaCount": 30}, (1, 30)), ({"minReplicaCount": 3}, (3, 100)),
     ({"minReplicaCount": 0, "maxReplicaCount": 0}, (0, 0))],
)  # fmt: skip
def test_an_autoscaler_of_keda_counts_as_one_of_kubernetes(build, bounds, told):
    spec = {"scaleTargetRef": {"name": "serve"}, **bounds}
    scaler = build.an_object("ScaledObject", "scale", apiVersion="keda.sh/v1alpha1", spec=spec)
    serve = build.a_deployment("serve", "template:t1", replicas=2)
    placement = place([*classes(build), serve, scaler], build.a_fleet(build.gpus("a", 8)))
    assert [(each.replicas, each.most) for each in placement.workloads] == [told]
    scaled, notes = scale([serve, scaler], {"deployment/serve": 4})
    assert scaled[1]["spec"]["maxReplicaCount"] == 4
    assert notes[0].endswith("minReplicaCount and maxReplicaCount of ScaledObject scale are 4")


def test_an_autoscaler_of_another_object_changes_nothing(build):
    serve = build.a_deployment("serve", "template:t1", replicas=2)
    for other in (an_autoscaler(build, 1, 9, name="other"), an_autoscaler(build, 1, 9, kind="StatefulSet")):
        placement = place([*classes(build), serve, other], build.a_fleet(build.gpus("a", 8)))
        assert [(each.replicas, each.most) for each in placement.workloads] == [(2, None)]
        assert placement.joint_at_most is None


def test_an_autoscaler_of_groups_scales_all_of_their_pods(build):
    spec = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": a_template(build, "template:t1")}}
    groups = build.an_object("LeaderWorkerSet", "serve", apiVersion="leaderworkerset.x-k8s.io/v1", spec=spec)
    scaler = an_autoscaler(build, 1, 2, kind="LeaderWorkerSet")
    placement = place([*classes(build), groups, scaler], build.a_fleet(build.gpus("a", 8)))
    assert [(each.owner.part, each.replicas, each.most) for each in placement.workloads] == [
        ("leader", 1, 2),
        ("workers", 2, 4),
    ]


@pytest.mark.parametrize(("jobs", "verdict"), [(2, "always"), (3, "never")])
def test_jobs_that_need_more_domains_of_their_own_than_there_are_never_all_run(build, jobs, verdict):
    train = a_job_set(build, "train", ("w", jobs, "template:t1"))
    train["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "zone"}
    nodes = [build.a_node(name, labels={"zone": name}) for name in "ab"]
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 8), nodes=nodes)
    joint = place([*classes(build), train], fleet).joint
    assert joint.verdict == verdict
    if verdict == "never":
        assert joint.reasons == ("JobSet ml/train needs 3 domains of zone of its own, and there are 2",)


def test_an_annotation_of_groups_says_nothing_of_pods_of_other_kinds(build):
    serve = build.a_deployment("serve", "template:t1", replicas=3)
    serve["metadata"]["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": "zone"}
    fleet = build.a_fleet(build.gpus("a", 8), nodes=[build.a_node("a", labels={"zone": "a"})])
    assert place([*classes(build), serve], fleet).joint.verdict == "always"


def a_runtime(build, kind="ClusterTrainingRuntime", **policy):
    """A runtime with a job that gets the data, and one that trains."""
    jobs = [
        {
            "name": "dataset",
            "template": {"spec": {"template": a_template(build)}},
        },
        {
            "name": "node",
            "template": {
                "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                "spec": {"template": a_template(build, "template:t4")},
            },
        },
    ]
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs}}}
    runtime = build.an_object(kind, "torch", apiVersion="trainer.kubeflow.org/v1alpha1", spec=spec)
    if kind == "ClusterTrainingRuntime":
        del runtime["metadata"]["namespace"]
    return runtime


def a_train_job(build, kind=None, **trainer):
    ref = {"name": "torch", **({"kind": kind} if kind else {})}
    spec = {"runtimeRef": ref, "trainer": trainer}
    return build.an_object("TrainJob", "tune", apiVersion="trainer.kubeflow.org/v1alpha1", spec=spec)


def test_a_train_job_has_the_pods_of_its_runtime(build):
    fleet = build.a_fleet(build.gpus("a", 8), build.gpus("b", 8))
    for runtime, job, pods in (
        (a_runtime(build), a_train_job(build), 1),
        (a_runtime(build, numNodes=2), a_train_job(build), 2),
        (a_runtime(build, numNodes=2), a_train_job(build, numNodes=3), 3),
        (a_runtime(build, "TrainingRuntime"), a_train_job(build, "TrainingRuntime", numNodes=2), 2),
    ):
        placement = place([*classes(build), runtime, job], fleet)
        assert verdicts(placement) == {"TrainJob ml/tune/node": (pods, "fits")}
        assert placement.notes == ()


def test_what_a_train_job_asks_for_each_node_is_asked_for_its_container(build):
    runtime = a_runtime(build)
    (container,) = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]["spec"]["template"][
        "spec"
    ]["containers"]
    container["name"] = "node"
    fleet = build.a_fleet(
        build.gpus("a", 8), nodes=[build.a_node("a", allocatable={"cpu": "8", "pods": "10"})]
    )
    for cpu, verdict in (("4", "fits"), ("16", "does-not-fit")):
        job = a_train_job(build, resourcesPerNode={"requests": {"cpu": cpu}})
        (workload,) = place([*classes(build), runtime, job], fleet).workloads
        assert workload.verdict == verdict


@pytest.mark.parametrize(
    ("of_runtime", "own", "verdict"),
    [
        ({"requests": {"cpu": "16"}}, {"limits": {"memory": "1Gi"}}, "does-not-fit"),
        ({"requests": {"cpu": "4"}}, {"limits": {"memory": "1Gi"}}, "fits"),
        ({"requests": {"cpu": "16"}}, {"requests": {"cpu": "4"}}, "fits"),
        ({"limits": {"cpu": "16"}}, {"requests": {"memory": "1Gi"}}, "does-not-fit"),
        ({"claims": [{"name": "gpu"}]}, {"requests": {"cpu": "4"}}, "fits"),
    ],
)
def test_what_a_train_job_asks_for_is_merged_with_what_its_runtime_asks_for(build, of_runtime, own, verdict):
    runtime = a_runtime(build)
    (container,) = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]["template"]["spec"]["template"][
        "spec"
    ]["containers"]
    container |= {"name": "node", "resources": of_runtime}
    fleet = build.a_fleet(
        build.gpus("a", 8),
        nodes=[build.a_node("a", allocatable={"cpu": "8", "memory": "8Gi", "pods": "10"})],
    )
    job = a_train_job(build, resourcesPerNode=own)
    (workload,) = place([*classes(build), runtime, job], fleet).workloads
    assert workload.verdict == verdict


def test_a_train_job_whose_pods_are_not_known_is_named(build):
    for manifests in ([], [a_runtime(build, mpi={}, numNodes=2)], [a_runtime(build, "TrainingRuntime")]):
        placement = place(
            [*classes(build), *manifests, a_train_job(build)], build.a_fleet(build.gpus("a", 8))
        )
        assert placement.workloads == ()
        assert placement.notes == (
            "TrainJob ml/tune is not placed here: its runtime is not in the input, or runs MPI",
        )


def a_nim(build, name="llm", **spec):
    return build.an_object("NIMService", name, apiVersion="apps.nvidia.com/v1alpha1", spec=spec)


def a_workflow(build, name="train", **spec):
    return build.an_object("Workflow", name, apiVersion="argoproj.io/v1alpha1", spec=spec)


def test_a_nim_service_is_placed_with_the_claims_of_its_dra_resources(build):
    claims = [{"resourceClaimTemplateName": "t4"}]
    services = [
        a_nim(build, "two", replicas=2, draResources=claims),
        a_nim(build, "far", draResources=claims),
    ]
    services[1]["spec"]["nodeSelector"] = {"pool": "nowhere"}
    placement = place([*classes(build), *services], build.a_fleet(build.gpus("a", 8)))
    assert verdicts(placement) == {"NIMService ml/far": (1, "does-not-fit"), "NIMService ml/two": (2, "fits")}
    assert placement.notes == ()


def test_a_claim_that_the_nim_operator_makes_is_not_decided(build):
    service = a_nim(build, draResources=[{"claimCreationSpec": {"devices": []}}])
    (workload,) = place([*classes(build), service], build.a_fleet(build.gpus("a", 8))).workloads
    assert [each.code for each in workload.reasons] == ["not-modelled"]
    assert "spec.draResources" in workload.reasons[0].message


def test_each_step_of_a_workflow_is_placed_with_its_own_claims(build):
    def step(name, template, **more):
        claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
        return {"name": name, "container": {"image": "a"}, "resourceClaims": claims, **more}

    chosen = {"pool": "{{inputs.parameters.pool}}"}
    steps = [step("one", "t1"), step("eight", "t8"), step("chosen", "t1", nodeSelector=chosen)]
    order = {"name": "all", "dag": {"tasks": [{"name": "a", "template": "one"}]}}
    workflow = a_workflow(build, templates=[order, *steps])
    placement = place([*classes(build), workflow], build.a_fleet(build.gpus("a", 4)))
    assert verdicts(placement) == {
        "Workflow ml/train/one": (1, "fits"),
        "Workflow ml/train/eight": (1, "does-not-fit"),
        "Workflow ml/train/chosen": (1, "not-decided"),
    }
    one = next(each for each in placement.workloads if each.owner.part == "one")
    assert any(each.startswith("spec.templates[0].dag (which pods run at once") for each in one.unmodelled)
    chosen = next(each for each in placement.workloads if each.owner.part == "chosen")
    assert [
        (each.code, "spec.templates[3].nodeSelector.pool" in each.message) for each in chosen.reasons
    ] == [("value-not-known", True)]


def test_a_workflow_whose_claims_or_templates_are_elsewhere_is_named(build):
    patched = {"name": "a", "container": {}, "podSpecPatch": '{"resourceClaims": [{"name": "gpu"}]}'}
    workflows = [
        a_workflow(build, "patched", templates=[patched]),
        a_workflow(build, "elsewhere", workflowTemplateRef={"name": "t"}),
    ]
    placement = place(workflows, build.a_fleet(build.gpus("a", 4)))
    assert placement.workloads == ()
    assert placement.notes == (
        "Workflow ml/patched uses claims and is not placed here: they are not where its kind is known to have those of its pods",
        "Workflow ml/elsewhere is not placed here: spec.workflowTemplateRef (its templates are those of another object)",
    )
