from __future__ import annotations

from dataclasses import replace

import pytest

from dra_infra.catalog.workload_kinds import read_workload_kinds
from dra_infra.review.changes import compare_programs
from dra_infra.review.comparison import Comparison
from dra_infra.review.reviews import find_dangers

H100 = "H100 80GB HBM3"


def dangers(make, before, after, *, placed=None, kinds=None):
    base, head = make.program(*before), make.program(*after)
    return find_dangers(Comparison.of(compare_programs(base, head), base, head, after=placed, kinds=kinds))


def codes(found):
    return [danger.code for danger in found]


def test_equal_programs_hold_no_danger(make):
    objects = [
        make.device_class(),
        make.template("t", "t-1"),
        make.workload("Job", "a", make.pod_spec(template="t-1")),
    ]
    assert dangers(make, objects, objects) == ()


def test_a_job_of_a_template_that_rolls_over_is_replaced_because_of_it(make):
    def side(name, count):
        return [
            make.template("trainer", name, count=count),
            make.workload("Job", "train", make.pod_spec(template=name)),
        ]

    (danger,) = dangers(make, side("trainer-1", 1), side("trainer-2", 2))
    assert str(danger) == (
        'GpuClaimTemplate("trainer") changes: Job ml/train is replaced (spec.template), its running pods are killed'
    )
    assert danger.code == "job-replaced"


def test_a_job_whose_image_changes_is_replaced_without_another_cause(make):
    before, after = (
        make.workload("Job", "a", make.pod_spec()),
        make.workload("Job", "a", make.pod_spec(image="new")),
    )
    (danger,) = dangers(make, [before], [after])
    assert (danger.code, danger.cause) == ("job-replaced", "")


def test_a_pod_that_is_replaced_is_a_danger(make):
    found = dangers(make, [make.pod("p", make.pod_spec())], [make.pod("p", make.pod_spec(image="new"))])
    assert codes(found) == ["pod-replaced"]


def test_a_deployment_with_another_selector_stops_all_pods_first(make):
    before = make.workload("Deployment", "serve", make.pod_spec())
    after = make.workload("Deployment", "serve", make.pod_spec(), selector={"matchLabels": {"app": "other"}})
    (danger,) = dangers(make, [before], [after])
    assert danger.code == "workload-replaced"
    assert danger.message.endswith("all its pods are stopped before new ones start")


def rolled(make, kind="Deployment", *, count=2, placed=None, **spec):
    def side(name):
        pods = make.pod_spec(template=name)
        template = make.template("server", name, count=count, expression=name)
        return [template, make.workload(kind, "serve", pods, **spec)]

    return dangers(make, side("server-1"), side("server-2"), placed=placed)


@pytest.mark.parametrize(
    ("replicas", "surge", "devices"), [(1, "1 surge pod", "2 more devices"), (4, "1 surge pod", "2 more devices"), (5, "2 surge pods", "4 more devices")]
)  # fmt: skip
def test_a_rollover_needs_a_quarter_more_pods_rounded_up(make, replicas, surge, devices):
    (danger,) = rolled(make, replicas=replicas)
    assert danger.code == "workload-rolls"
    assert danger.message == f"rolls over and needs {devices} for {surge} until the old ones are gone"
    assert danger.cause == 'GpuClaimTemplate("server")'


def test_a_rollover_without_surge_needs_no_more_devices(make):
    strategy = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    (danger,) = rolled(make, replicas=4, strategy=strategy)
    assert danger.message == "rolls over, 1 pod at a time; no more devices are needed meanwhile"


def test_a_recreated_deployment_stops_all_pods_first(make):
    (danger,) = rolled(make, replicas=4, strategy={"type": "Recreate"})
    assert danger.message == "rolls over, its 4 pods all stop before new ones start"


@pytest.mark.parametrize(
    ("kind", "spec"), [("StatefulSet", {}), ("Deployment", {"strategy": {"type": "Recreate"}})]
)
def test_the_only_pod_stops_before_the_new_one_starts(make, kind, spec):
    (danger,) = rolled(make, kind, replicas=1, **spec)
    assert danger.message == "rolls over, its pod stops before the new one starts"


@pytest.mark.parametrize(
    ("kind", "how"), [("StatefulSet", "one after the other"), ("DaemonSet", "node by node")]
)
def test_other_kinds_roll_over_without_surge(make, kind, how):
    (danger,) = rolled(make, kind, replicas=3)
    assert how in danger.message


def test_devices_of_all_mode_are_not_counted_without_a_fleet(make):
    def side(name):
        template = make.template("server", name)
        manifest = make.copy(template.manifest)
        manifest["spec"]["spec"]["devices"]["requests"][0]["exactly"] = {
            "deviceClassName": "h100",
            "allocationMode": "All",
            "selectors": [{"cel": {"expression": name}}],
        }
        pods = make.pod_spec(template=name)
        return [replace(template, manifest=manifest), make.workload("Deployment", "serve", pods)]

    (danger,) = dangers(make, side("server-1"), side("server-2"))
    assert "needs more devices for 1 surge pod" in danger.message


def test_a_rollout_without_room_and_without_a_pod_to_spare_may_never_end(make):
    fleet = make.fleet(make.node("n0", gpus=6), name="small")
    placed = make.place(fleet, ("Deployment", "serve", 3, 2, H100))
    (danger,) = rolled(make, replicas=3, placed=placed)
    assert danger.message.endswith("but small has room for no more pods: the rollout may wait without end")
    assert "maxUnavailable" in danger.hint


def test_a_rollout_without_room_but_with_pods_to_spare_goes_on(make):
    fleet = make.fleet(make.node("n0", gpus=8), name="small")
    placed = make.place(fleet, ("Deployment", "serve", 4, 2, H100))
    (danger,) = rolled(make, replicas=4, placed=placed)
    assert danger.message.endswith("it may have to wait until old pods stop")


def test_a_new_image_is_no_danger_while_there_is_room_for_the_surge(make):
    fleet = make.fleet(make.node("n0", gpus=8))
    template = make.template("server", "server-1", count=2)
    sides = [
        [
            template,
            make.workload("Deployment", "serve", make.pod_spec(template="server-1", image=image), replicas=3),
        ]
        for image in ("a", "b")
    ]
    roomy = make.place(fleet, ("Deployment", "serve", 3, 2, H100))
    assert dangers(make, *sides, placed=roomy) == ()
    full = make.place(make.fleet(make.node("n0", gpus=6)), ("Deployment", "serve", 3, 2, H100))
    assert codes(dangers(make, *sides, placed=full)) == ["workload-rolls"]


def test_a_change_of_replicas_alone_rolls_nothing(make):
    template = make.template("server", "server-1")
    before = make.workload("Deployment", "serve", make.pod_spec(template="server-1"), replicas=1)
    after = make.workload("Deployment", "serve", make.pod_spec(template="server-1"), replicas=2)
    assert dangers(make, [template, before], [template, after]) == ()


def test_a_shared_claim_that_rolls_over_holds_its_devices_twice(make):
    def side(name, count):
        return [
            make.claim("pair", name, count=count),
            make.workload("Deployment", "serve", make.pod_spec(claim=name)),
        ]

    found = dangers(make, side("pair-1", 2), side("pair-2", 3))
    assert codes(found) == ["workload-rolls", "claim-rolls"]
    assert "holds 3 more devices until the last old pod is gone" in found[1].message


def test_a_claim_that_nobody_uses_rolls_over_without_danger(make):
    assert dangers(make, [make.claim("pair", "pair-1")], [make.claim("pair", "pair-2", count=2)]) == ()


def test_a_claim_that_is_deleted_first_waits_for_its_pods(make):
    user = make.workload("Deployment", "serve", make.pod_spec(claim="pair"))
    after = make.claim("pair", "pair", count=2, replacement="delete-first")
    (danger,) = dangers(make, [make.claim("pair", "pair"), user], [after, user])
    assert danger.code == "claim-replaced"
    assert "waits until the last pod is gone (used by Deployment ml/serve)" in danger.message


def test_a_template_that_is_deleted_first_leaves_running_pods_alone(make):
    after = make.template("t", "t", count=2, replacement="delete-first")
    (danger,) = dangers(make, [make.template("t", "t")], [after])
    assert (
        "running pods keep the old devices until restarted (used by nobody in this program)" in danger.message
    )


def test_a_class_that_selects_something_else_names_who_uses_it(make):
    template = make.template("trainer", "trainer-1")
    (danger,) = dangers(
        make, [make.device_class(), template], [make.device_class(expression="true"), template]
    )
    assert (danger.code, str(danger.who)) == ("class-changed", "DeviceClass h100")
    assert "ResourceClaimTemplate ml/trainer-1" in danger.message


def test_labels_of_a_class_are_no_danger(make):
    before = make.device_class()
    manifest = make.copy(before.manifest)
    manifest["metadata"]["labels"] = {"a": "b"}
    assert dangers(make, [before], [replace(before, manifest=manifest)]) == ()


@pytest.mark.parametrize("kind", ["template", "claim"])
def test_a_deleted_object_that_pods_still_name_is_a_danger(make, kind):
    gone = getattr(make, kind)("pair", "pair")
    user = make.workload("Deployment", "serve", make.pod_spec(**{kind: "pair"}))
    (danger,) = dangers(make, [gone, user], [user])
    assert (danger.code, danger.who) == ("used-object-deleted", gone.ref)
    assert "Deployment ml/serve still names it: new pods cannot start" in danger.message


def test_a_template_that_rolls_over_under_a_pod_with_its_name_written_out_is_a_danger(make):
    user = make.workload("Deployment", "serve", make.pod_spec(template="t-1"))
    found = dangers(make, [make.template("t", "t-1"), user], [make.template("t", "t-2", count=2), user])
    assert codes(found) == ["used-object-deleted"]
    assert "attach()" in found[0].hint


def test_a_deleted_class_that_claims_still_name_is_a_danger(make):
    template = make.template("t", "t-1")
    (danger,) = dangers(make, [make.device_class(), template], [template])
    assert (danger.code, str(danger.who)) == ("used-object-deleted", "DeviceClass h100")


@pytest.mark.parametrize(
    ("kind", "use"),
    [
        ("ConfigMap", {"volumes": [{"name": "v", "configMap": {"name": "gone"}}]}),
        ("Secret", {"volumes": [{"name": "v", "secret": {"secretName": "gone"}}]}),
        (
            "PersistentVolumeClaim",
            {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "gone"}}]},
        ),
        ("ServiceAccount", {"serviceAccountName": "gone"}),
        ("Secret", {"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "gone"}}]}]}),
    ],
)
def test_other_objects_that_pods_cannot_start_without_are_watched_too(make, kind, use):
    gone = make.object(kind, "gone", None)
    user = make.workload("Deployment", "serve", make.pod_spec(**use))
    assert codes(dangers(make, [gone, user], [user])) == ["used-object-deleted"]


def test_an_object_of_the_same_name_in_another_namespace_is_not_meant(make):
    gone = make.template("t", "t-1", namespace="other")
    user = make.workload("Deployment", "serve", make.pod_spec(template="t-1"))
    assert dangers(make, [gone, user], [user]) == ()


def test_an_object_that_moves_to_another_resource_is_created_before_it_is_deleted(make):
    before = make.claim("pair", "pair")
    moved = replace(before, urn=before.urn.replace("quickstart::", "quickstart::team:index:Team$"))
    (danger,) = dangers(make, [before], [moved])
    assert danger.code == "object-moved"
    assert before.urn in danger.hint


def test_dangers_do_not_depend_on_the_order_of_objects(make):
    def side(suffix):
        objects = []
        for name in "abc":
            objects += [
                make.template(name, f"{name}-{suffix}"),
                make.workload("Job", name, make.pod_spec(template=f"{name}-{suffix}")),
            ]
        return make.program(*objects)

    base, head = side(1), side(2)
    found = find_dangers(Comparison.of(compare_programs(base, head), base, head))
    turned = replace(head, objects=tuple(reversed(head.objects)))
    assert find_dangers(Comparison.of(compare_programs(base, turned), base, turned)) == found


def a_job_set(make, name="train", template="trainer-1", image="a", replicas=2):
    job = {"spec": {"template": {"spec": make.pod_spec(template=template, image=image)}}}
    spec = {"replicatedJobs": [{"name": "workers", "replicas": replicas, "template": job}]}
    return make.object("JobSet", name, spec, api_version="jobset.x-k8s.io/v1alpha2")


def test_pods_of_another_projects_object_that_change_are_a_danger_where_they_use_devices(make):
    template = make.template("trainer", "trainer-1")
    found = dangers(make, [template, a_job_set(make)], [template, a_job_set(make, image="b")])
    assert [(str(each.who), each.code) for each in found] == [("JobSet ml/train", "pods-changed")]
    plain = [[a_job_set(make, template="", image=image)] for image in "ab"]
    assert dangers(make, *plain) == ()


def test_more_jobs_of_a_job_set_are_refused_as_its_pods_are(make):
    template = make.template("trainer", "trainer-1")
    (danger,) = dangers(make, [template, a_job_set(make)], [template, a_job_set(make, replicas=3)])
    assert (danger.code, danger.level) == ("pods-changed", "danger")
    assert "which the webhook of JobSet refuses" in danger.message
    one = [template, a_job_set(make, replicas=1)]
    absent = [template, a_job_set(make, replicas=None)]
    assert dangers(make, one, absent) == ()


def a_leader_worker_set(make, size=2, image="a", **spec):
    pods = {"spec": make.pod_spec(template="trainer-1", image=image)}
    spec = {"leaderWorkerTemplate": {"size": size, "workerTemplate": pods}, **spec}
    return make.object("LeaderWorkerSet", "serve", spec, api_version="leaderworkerset.x-k8s.io/v1")


def test_larger_groups_of_a_leader_worker_set_are_exchanged_and_more_groups_are_not(make):
    template = make.template("trainer", "trainer-1")
    before = [template, a_leader_worker_set(make)]
    (danger,) = dangers(make, before, [template, a_leader_worker_set(make, size=3)])
    assert (str(danger.who), danger.code) == ("LeaderWorkerSet ml/serve", "pods-changed")
    assert dangers(make, before, [template, a_leader_worker_set(make, replicas=5)]) == ()


def test_of_a_kind_whose_changes_are_not_known_a_note_says_so(make):
    template = make.template("trainer", "trainer-1")
    entry = {"kind": "TrainingRun", "group": "ml.example.com", "parts": [{"template": "spec.template"}]}
    sides = [
        make.object(
            "TrainingRun",
            "train",
            {"template": {"spec": make.pod_spec(template="trainer-1", image=image)}},
            api_version="ml.example.com/v1",
        )
        for image in "ab"
    ]
    kinds = read_workload_kinds({"kinds": [entry]}, "kinds.yaml")
    (note,) = dangers(make, *([template, each] for each in sides), kinds=kinds)
    assert (str(note.who), note.code, note.level) == ("TrainingRun ml/train", "pods-changed", "note")
    assert note.message.endswith("what its controller does with those that run is not known here")
    assert dangers(make, *([template, sides[0]] for _ in "ab"), kinds=kinds) == ()


@pytest.mark.parametrize(
    ("kind", "api_version", "at", "level", "words"),
    [
        ("CronJob", "batch/v1", "jobTemplate.spec.template", "note", "keeps the Jobs that run"),
        ("ReplicaSet", "apps/v1", "template", "note", "keeps its running pods as they are"),
        ("PyTorchJob", "kubeflow.org/v1", "pytorchReplicaSpecs.Worker.template", "note", "keeps its running pods"),
        ("RayJob", "ray.io/v1", "rayClusterSpec.headGroupSpec.template", "note", "keeps its Ray cluster as it is"),
        ("VirtualMachine", "kubevirt.io/v1", "template", "note", "until that is restarted"),
        ("Notebook", "kubeflow.org/v1", "template", "danger", "stops its pod before the new one starts"),
        ("SparkApplication", "sparkoperator.k8s.io/v1beta2", "driver.template", "danger", "submitted anew"),
        ("LLMInferenceService", "serving.kserve.io/v1alpha2", "", "danger", "as its Deployment does"),
    ],
)  # fmt: skip
def test_what_a_controller_does_with_pods_that_run_is_told_of_each_kind(
    make, kind, api_version, at, level, words
):
    template = make.template("trainer", "trainer-1")

    def side(image):
        pods = make.pod_spec(template="trainer-1", image=image)
        spec = {"spec": pods} if at else {"template": pods}
        for step in reversed(at.split(".") if at else []):
            spec = {step: spec}
        return [template, make.object(kind, "one", spec, api_version=api_version)]

    (found,) = dangers(make, side("a"), side("b"))
    assert (found.code, found.level, bool(found.hint)) == ("pods-changed", level, level == "danger")
    assert words in found.message


def test_the_webhook_of_volcano_refuses_pods_that_change(make):
    template = make.template("trainer", "trainer-1")

    def a_job(image):
        task = {
            "name": "w",
            "replicas": 1,
            "template": {"spec": make.pod_spec(template="trainer-1", image=image)},
        }
        return make.object("Job", "train", {"tasks": [task]}, api_version="batch.volcano.sh/v1alpha1")

    (danger,) = dangers(make, [template, a_job("a")], [template, a_job("b")])
    assert (danger.code, danger.level) == ("pods-changed", "danger")
    assert "the webhook of Volcano refuses" in danger.message
    assert str(danger.who) == "Job.batch.volcano.sh ml/train"


def test_another_projects_object_that_is_deleted_takes_its_pods_with_it(make):
    template = make.template("trainer", "trainer-1")
    found = dangers(make, [template, a_job_set(make)], [template])
    assert [(str(each.who), each.code) for each in found] == [("JobSet ml/train", "workload-deleted")]


def a_nim(make, name="llm", template="trainer-1", **spec):
    spec = {"draResources": [{"resourceClaimTemplateName": template}], **spec}
    return make.object("NIMService", name, spec, api_version="apps.nvidia.com/v1alpha1")


def a_workflow(make, template="trainer-1"):
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec = {"templates": [{"name": "step", "container": {"image": "a"}, "resourceClaims": claims}]}
    return make.object("Workflow", "train", spec, api_version="argoproj.io/v1alpha1")


def test_pods_of_a_nim_service_that_change_are_a_danger_and_other_fields_of_it_are_not(make):
    template = make.template("trainer", "trainer-1")
    before = [template, a_nim(make, image={"tag": "1"}, replicas=1)]
    found = dangers(make, before, [template, a_nim(make, image={"tag": "2"}, replicas=1)])
    assert [(str(each.who), each.code) for each in found] == [("NIMService ml/llm", "pods-changed")]
    assert "spec.draResources is refused" in found[0].message
    assert (
        dangers(make, before, [template, a_nim(make, image={"tag": "1"}, replicas=2, expose={"a": 1})]) == ()
    )


def test_a_nim_service_or_workflow_that_is_deleted_takes_its_pods_with_it(make):
    template = make.template("trainer", "trainer-1")
    found = dangers(make, [template, a_nim(make), a_workflow(make)], [template])
    assert [(str(each.who), each.code) for each in found] == [
        ("NIMService ml/llm", "workload-deleted"),
        ("Workflow ml/train", "workload-deleted"),
    ]
