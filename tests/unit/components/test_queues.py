from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pulumi
import pytest

import dra_infra as dra
from dra_infra.advice.program import check_program
from dra_infra.advice.queues import advise_queued
from dra_infra.kubernetes.api import UNKNOWN
from dra_infra.program.synth import synth_function
from tests.support.components.family import run
from tests.support.growth import takes_linear_time

GPUS = "h100.deviceclass.resource.k8s.io/devices"


def made(body: Any) -> dict[str, dict[str, Any]]:
    """The manifests of a program by kind and namespace."""
    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return {
        " ".join(
            filter(None, (each.manifest["kind"], each.manifest["metadata"].get("namespace")))
        ): each.manifest
        for each in program.objects
    }


def a_queue(**arguments: Any) -> dra.KueueQueue:
    return dra.KueueQueue("gpus", **{"quota": {"h100": 8}, "namespaces": ["vision"], **arguments})


def test_devices_and_other_resources_are_in_one_group_in_one_order():
    found = made(partial(a_queue, resources={"cpu": "960"}, namespaces=["vision", "speech"], cohort="all"))
    assert set(found) == {"ResourceFlavor", "ClusterQueue", "LocalQueue vision", "LocalQueue speech"}
    spec = found["ClusterQueue"]["spec"]
    (group,) = spec["resourceGroups"]
    (flavor,) = group["flavors"]
    assert group["coveredResources"] == [GPUS, "cpu"] == [each["name"] for each in flavor["resources"]]
    assert flavor["resources"][0] == {"name": GPUS, "nominalQuota": 8}
    assert spec["cohortName"] == "all"
    assert spec["namespaceSelector"]["matchExpressions"][0]["values"] == ["vision", "speech"]
    assert found["LocalQueue speech"]["metadata"]["name"] == "gpus"
    assert found["LocalQueue speech"]["spec"] == {"clusterQueue": "gpus"}


def test_a_class_counts_under_the_key_of_its_quota():
    def body() -> None:
        h100 = dra.GpuDeviceClass("h100", object_name="h100")
        queue = a_queue(quota={h100: 8})
        tenant = dra.GpuTenant("vision", quota={h100: 8})
        assert queue.device_class_mappings == [{"name": GPUS, "deviceClassNames": ["h100"]}]
        assert tenant.label

    found = made(body)
    assert GPUS in found["ResourceQuota vision"]["spec"]["hard"]
    assert GPUS in found["ClusterQueue"]["spec"]["resourceGroups"][0]["coveredResources"]


MEMORY = "example.com/mig-memory"
MIG = ["mig.nvidia.com"]


def sourced(**sources: Any) -> Any:
    """A queue with an amount of each source."""
    return partial(a_queue, resources=dict.fromkeys(sources, "800Gi"), sources=sources)


def test_a_source_is_written_as_a_mapping_of_its_classes_behind_those_of_the_quota():
    def body() -> None:
        h100 = dra.gpu.product.contains("H100")
        queue = a_queue(
            resources={MEMORY: "800Gi", "example.com/share": "80Gi"},
            sources={
                MEMORY: dra.CounterSource("memory", device_classes=[*MIG, "mig-small"], select=h100),
                "example.com/share": dra.CapacitySource(
                    "memory", device_classes=["s"], driver="s.example.com"
                ),
            },
        )
        expression = {"expression": h100.expression()}
        counter = {"name": "memory", "driver": "gpu.nvidia.com", "deviceSelector": {"cel": expression}}
        every = {"cel": {"expression": "true"}}
        capacity = {"name": "memory", "driver": "s.example.com", "deviceSelector": every}
        assert queue.device_class_mappings == [
            {"name": GPUS, "deviceClassNames": ["h100"]},
            {"name": MEMORY, "deviceClassNames": [*MIG, "mig-small"], "sources": [{"counter": counter}]},
            {"name": "example.com/share", "deviceClassNames": ["s"], "sources": [{"capacity": capacity}]},
        ]

    (group,) = made(body)["ClusterQueue"]["spec"]["resourceGroups"]
    assert group["coveredResources"] == [GPUS, MEMORY, "example.com/share"]


def test_mappings_of_classes_that_are_known_later_are_whole():
    seen: list[Any] = []

    def body() -> None:
        later = dra.class_ref(pulumi.Output.from_input("h100"))
        mig = dra.class_ref(pulumi.Output.from_input("mig.nvidia.com"))
        queue = a_queue(
            quota={later: 8},
            resources={MEMORY: 1},
            sources={MEMORY: dra.CounterSource("memory", device_classes=[mig])},
        )
        assert isinstance(queue.device_class_mappings, pulumi.Output)
        queue.device_class_mappings.apply(seen.append)

    run(body)
    assert [(each["name"], each["deviceClassNames"]) for each in seen[0]] == [
        (GPUS, ["h100"]),
        (MEMORY, ["mig.nvidia.com"]),
    ]


COUNTER = dra.CounterSource("memory", device_classes=MIG)


@pytest.mark.parametrize(
    ("sources", "code", "path"),
    [
        ({"m": dra.CounterSource("mem.ory", device_classes=MIG)}, "invalid-name", "['m'].name"),
        ({"m": dra.CapacitySource("mem-ory", device_classes=MIG)}, "invalid-name", "['m'].name"),
        (
            {"m": dra.CounterSource("memory", device_classes=MIG, driver="GPU")},
            "invalid-name",
            "['m'].driver",
        ),
        ({"m": dra.CounterSource("memory", device_classes=[])}, "wrong-type", "['m'].device_classes"),
        ({"m": dra.CounterSource("memory", device_classes="mig")}, "wrong-type", "['m'].device_classes"),
        (
            {"m": dra.CounterSource("memory", device_classes=["a" * 64])},
            "invalid-name",
            "['m'].device_classes[0]",
        ),
        (
            {"m": dra.CounterSource("memory", device_classes=[f"c{n}" for n in range(9)])},
            "too-many-items",
            "['m'].device_classes",
        ),
        (
            {"m": dra.CounterSource("memory", device_classes=MIG, select=dra.cel("device.drivr == ''"))},
            "cel-type",
            "['m'].select",
        ),
        ({"m": "memory"}, "wrong-type", "['m']"),
        (
            {"m": dra.CounterSource("memory", device_classes=["h100"])},
            "value-set-twice",
            "['m'].device_classes[0]",
        ),
        ({"m": COUNTER, "n": COUNTER}, "value-set-twice", "['n'].device_classes[0]"),
        (
            {"m": COUNTER, "n": dra.CapacitySource("memory", device_classes=MIG)},
            "value-set-twice",
            "['n'].device_classes[0]",
        ),
    ],
)
def test_a_source_that_keeps_kueue_from_starting_is_refused(sources: dict[str, Any], code: str, path: str):
    program = synth_function(sourced(**sources), config={"dra-infra:kubernetes": "1.37"})
    found = [(each.code, each.path) for each in program.problems if each.severity == "error"]
    assert found == [(code, f'KueueQueue("gpus").sources{path}')]


def test_a_class_may_have_two_counters():
    two = {"m": COUNTER, "n": dra.CounterSource("multiprocessors", device_classes=MIG)}
    assert synth_function(sourced(**two), config={"dra-infra:kubernetes": "1.37"}).problems == ()


BY_MEMORY: Any = {"resources": {"m": 1}, "sources": {"m": COUNTER}}
BY_SM: Any = {"resources": {"sm": 1}, "sources": {"sm": dra.CounterSource("sm", device_classes=MIG)}}
BY_NUMBER: Any = {"quota": {"mig.nvidia.com": 8}}


def of_two(first: dict[str, Any], second: dict[str, Any]) -> list[tuple[str, str]]:
    """The problems of two queues of one program."""

    def body() -> None:
        for name, each in (("a", first), ("b", second)):
            dra.KueueQueue(name, namespaces=["vision"], **each)

    problems = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
    return [(each.code, each.path) for each in problems]


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        (BY_NUMBER, BY_MEMORY, "sources['m']"),
        (BY_MEMORY, BY_NUMBER, "quota['mig.nvidia.com']"),
        (BY_MEMORY, {**BY_MEMORY, "sources": {"m": BY_SM["sources"]["sm"]}}, "sources['m']"),
        (BY_MEMORY, {"resources": {"n": 1}, "sources": {"n": COUNTER}}, "sources['n']"),
    ],
    ids=["number, counter", "counter, number", "two counters of one name", "two names of one counter"],
)
def test_what_two_queues_count_in_two_ways_is_told_at_the_second(first: Any, second: Any, path: str):
    assert of_two(first, second) == [("value-set-twice", f'KueueQueue("b").{path}')]


@pytest.mark.parametrize(
    ("first", "second"), [(BY_NUMBER, BY_NUMBER), (BY_MEMORY, BY_MEMORY), (BY_MEMORY, BY_SM)]
)
def test_queues_may_share_what_they_count_in_one_way(first: Any, second: Any):
    assert of_two(first, second) == []


def test_queues_of_two_clusters_count_as_they_like():
    import pulumi_kubernetes as k8s

    def body() -> None:
        other = pulumi.ResourceOptions(provider=k8s.Provider("other", kubeconfig="{}"))
        dra.KueueQueue("a", namespaces=["vision"], **BY_NUMBER)
        dra.KueueQueue("b", namespaces=["vision"], opts=other, **BY_MEMORY)

    assert synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems == ()


@pytest.mark.parametrize(
    ("classes", "sources", "path"), [(17, 0, "quota"), (16, 1, "quota"), (1, 17, "sources")]
)
def test_too_many_mappings_are_told_where_some_can_be_left_out(classes: int, sources: int, path: str):
    named = {f"m{n}": dra.CounterSource(f"m{n}", device_classes=MIG) for n in range(sources)}
    queue = {
        "quota": {f"c{n}": 1 for n in range(classes)},
        "sources": named,
        "resources": dict.fromkeys(named, 1),
    }
    assert of_two({"quota": {"c0": 1}}, queue) == [("too-many-items", f'KueueQueue("b").{path}')]


def test_a_source_without_an_amount_is_refused():
    body = partial(a_queue, sources={MEMORY: COUNTER})
    (problem,) = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
    assert (problem.code, problem.path) == ("missing-argument", f"KueueQueue(\"gpus\").sources['{MEMORY}']")


@pytest.mark.parametrize("source", [COUNTER, dra.CapacitySource("memory", device_classes=MIG)])
def test_a_cluster_that_drops_what_is_charged_is_told(source: Any):
    (problem,) = synth_function(sourced(m=source), config={"dra-infra:kubernetes": "1.35"}).problems
    assert (problem.code, problem.path) == (
        "needs-newer-kubernetes",
        "KueueQueue(\"gpus\").sources['m'].name",
    )


def test_pods_that_lose_their_way_to_a_class_are_told():
    def body() -> None:
        mig = dra.GpuDeviceClass("mig", extended_resource_name="example.com/mig")
        sourced(m=dra.CounterSource("memory", device_classes=[mig]))()

    (problem,) = synth_function(body, config={"dra-infra:kubernetes": "1.37"}).problems
    path = "KueueQueue(\"gpus\").sources['m'].device_classes[0]"
    assert (problem.code, problem.path, problem.severity) == ("kueue-refuses", path, "warning")


def test_a_flavor_that_is_named_is_not_made():
    found = made(partial(a_queue, flavor="spot"))
    assert "ResourceFlavor" not in found
    (group,) = found["ClusterQueue"]["spec"]["resourceGroups"]
    assert group["flavors"][0]["name"] == "spot"


def test_a_queue_is_there_before_the_queues_of_namespaces():
    _, seen = run(a_queue)
    (local,) = [each for each in seen.requests if each.type.endswith(":LocalQueue")]
    assert any("ClusterQueue::gpus" in each for each in local.dependencies)


def test_a_namespace_that_goes_leaves_the_queues_of_others_alone():
    def names(namespaces: list[str]) -> set[str]:
        _, seen = run(partial(a_queue, namespaces=namespaces))
        return {each.name for each in seen.requests if each.type.endswith(":LocalQueue")}

    assert names(["speech"]) < names(["vision", "speech"])


def test_a_class_that_kueue_cannot_map_is_refused():
    name = "a" * 64
    program = synth_function(partial(a_queue, quota={name: 8}), config={"dra-infra:kubernetes": "1.37"})
    assert [each.code for each in program.problems if each.severity == "error"] == ["invalid-name"]


def test_an_amount_that_the_quota_of_a_class_has_already_is_refused():
    body = partial(a_queue, resources={GPUS: 5})
    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    (problem,) = [each for each in program.problems if each.severity == "error"]
    assert (problem.code, problem.path) == ("value-set-twice", f"KueueQueue(\"gpus\").resources['{GPUS}']")


@pytest.mark.parametrize("amount", ["hush, no amount", "-1", -1, True])
@pytest.mark.parametrize("is_secret", [False, True])
def test_an_amount_that_is_no_quantity_is_refused_and_a_secret_one_not_shown(amount: Any, is_secret: bool):
    def body() -> None:
        a_queue(resources={"cpu": pulumi.Output.secret(amount) if is_secret else amount})

    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    (problem,) = [each for each in program.problems if each.severity == "error"]
    assert problem.code == "wrong-type"
    assert ".resources['cpu']" in problem.path
    assert is_secret == ("[secret]" in str(problem))


def refused(template: dict[str, Any], *, by_name: bool = False) -> list[tuple[str, str]]:
    """Code and path of what is advised of a Job of a queue with one claim."""

    def body() -> None:
        queue = a_queue()
        kind = dra.GpuClaim if by_name else dra.GpuClaimTemplate
        claim = kind("claim", namespace="vision", **template)
        import pulumi_kubernetes as k8s

        pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "main:1"}]}
        k8s.batch.v1.Job(
            "train",
            metadata={"namespace": "vision", "labels": queue.workload_labels},
            spec={"template": {"spec": claim.attach(pod)}},
        )

    program = synth_function(body, config={"dra-infra:kubernetes": "1.37"})
    found = check_program(program)
    return [(each.code, each.path.partition(".")[2]) for each in found if each.code == "kueue-refuses"]


LADDER = [dra.Alternative("a", device_class="h100"), dra.Alternative("b", device_class="a100")]


@pytest.mark.parametrize(
    ("template", "by_name", "path"),
    [
        ({"device_class": "h100", "count": 4}, False, None),
        ({"device_class": "h100", "count": "all"}, False, "exactly.allocationMode"),
        ({"requests": [dra.DeviceRequest("gpu", first_available=LADDER)]}, False, "firstAvailable"),
        ({"device_class": "h100"}, True, "resourceClaimName"),
    ],
    ids=["a number", "all", "alternatives", "by name"],
)
def test_claims_that_kueue_does_not_admit_are_told(template: dict[str, Any], by_name: bool, path: str | None):
    found = refused(template, by_name=by_name)
    if path is None:
        assert found == []
    else:
        ((_, where),) = found
        assert where.endswith(path)


OF_H100 = "deviceclass.resource.kubernetes.io/h100"


@pytest.mark.parametrize(
    ("asked", "amounts", "is_told"),
    [
        (OF_H100, {}, True),
        (OF_H100, {OF_H100: 8}, False),
        ("example.com/h100", {}, False),
    ],
    ids=["by the name of every class", "of which the queue has an amount", "by the name of one class"],
)
def test_a_class_that_kueue_takes_for_another_resource_is_told(
    asked: str, amounts: dict[str, int], is_told: bool
):
    objects = list(made(partial(a_queue, resources=amounts)).values())
    container = {"name": "main", "image": "main:1", "resources": {"limits": {asked: "2"}}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": "train",
            "namespace": "vision",
            "labels": {"kueue.x-k8s.io/queue-name": "gpus"},
        },
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }
    found = [(index, each.code, each.path) for index, each in advise_queued([*objects, job])]
    path = f"spec.template.spec.containers[0].resources.limits[{asked}]"
    assert found == ([(len(objects), "kueue-refuses", path)] if is_told else [])


def a_cluster_queue(**spec: Any) -> dict[str, Any]:
    amounts = spec.pop("amounts", {GPUS: 4, "cpu": 8})
    resources = [{"name": name, "nominalQuota": amount} for name, amount in amounts.items()]
    group = {"coveredResources": list(amounts), "flavors": [{"name": "f", "resources": resources}]}
    return {
        "kind": "ClusterQueue",
        "metadata": {"name": "all"},
        "spec": {"resourceGroups": [group], **spec},
    }


LOCAL = {
    "kind": "LocalQueue",
    "metadata": {"name": "gpus", "namespace": "ml"},
    "spec": {"clusterQueue": "all"},
}
QUOTA = {
    "kind": "ResourceQuota",
    "metadata": {"name": "team", "namespace": "ml"},
    "spec": {"hard": {GPUS: 16}},
}


def a_workload(
    *, kind: str = "Job", device_class: str = "h100", queue: str = "gpus", **more: Any
) -> list[Any]:
    """An object of a queue, and the template of its claims of two devices."""
    requests = [{"name": "g", "exactly": {"deviceClassName": device_class, "count": 2}}]
    template = {
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "ml"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    pods = more.pop("pods", 1)
    numbers = {"replicas": pods} if kind == "Deployment" else {"parallelism": pods}
    container = {"name": "c", "resources": {"requests": more.pop("asks", {})}}
    spec = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}], "containers": [container]}
    labels = {"kueue.x-k8s.io/queue-name": queue}
    holder = {
        "apiVersion": "apps/v1" if kind == "Deployment" else "batch/v1",
        "kind": kind,
        "metadata": {"name": "train", "namespace": "ml", "labels": labels, **more},
        "spec": {**numbers, "template": {"spec": spec}},
    }
    return [holder, template]


TOO_SMALL = (
    "Job ml/train asks for 6 of h100.deviceclass.resource.k8s.io/devices at once, of which ClusterQueue all has 4 and no "
    "cohort to borrow from, while ResourceQuota ml/team allows 16: its pods would be suspended for good"
)


@pytest.mark.parametrize(
    ("workload", "queue", "code", "told"),
    [
        ({"pods": 2}, {}, None, ""),
        ({"pods": 3}, {}, "queue-too-small", TOO_SMALL),
        ({"pods": 3}, {"cohortName": "pool"}, None, ""),
        ({"pods": 3}, {"amounts": {GPUS: UNKNOWN}}, None, ""),
        ({"pods": 3, "kind": "Deployment"}, {}, None, ""),
        ({"pods": 3, "annotations": {"kueue.x-k8s.io/job-min-parallelism": "2"}}, {}, None, ""),
        # A number that no server takes says nothing of the least.
        ({"pods": 2, "annotations": {"kueue.x-k8s.io/job-min-parallelism": "9" * 5000}}, {}, None, ""),
        ({"asks": {"cpu": "9"}}, {}, "queue-too-small", "asks for 9 of cpu at once, of which ClusterQueue all has 8"),
        ({"asks": {"memory": "2Gi"}}, {}, "queue-lacks-resource", "asks for 2Gi of memory at once, of which"),
        ({"device_class": "a100"}, {}, "queue-lacks-resource", "ClusterQueue all has no amount"),
        ({"device_class": "a100"}, {"amounts": {"example.com/any": 9}}, None, ""),
        ({"queue": "gpu"}, {}, "queue-not-known", "goes to LocalQueue ml/gpu, which is not there"),
        ({"queue": UNKNOWN}, {}, None, ""),
    ],
)  # fmt: skip
def test_what_the_account_of_a_queue_says_stands_beside_that_of_the_quota(
    workload: dict[str, Any], queue: dict[str, Any], code: str | None, told: str
):
    queues = [a_cluster_queue(**queue), LOCAL, QUOTA]
    objects = a_workload(**workload)
    found = list(advise_queued([*queues, *objects]))
    assert [each for _, each in advise_queued(objects, queues)] == [each for _, each in found]
    assert [(index, each.code, each.path, told in each.message) for index, each in found] == (
        [(3, code, "metadata.labels[kueue.x-k8s.io/queue-name]", True)] if code else []
    )


def test_a_cluster_queue_without_amounts_is_there():
    queue = a_cluster_queue()
    queue["spec"] = {}
    assert list(advise_queued([queue, LOCAL, *a_workload()])) == []


def test_a_cluster_queue_that_is_not_there_is_told_where_others_are():
    elsewhere = {**a_cluster_queue(), "metadata": {"name": "other"}}
    ((_, problem),) = advise_queued([elsewhere, LOCAL, *a_workload()])
    assert (problem.code, problem.hint) == ("queue-not-known", "add ClusterQueue all")
    assert list(advise_queued([LOCAL, *a_workload()])) == []
    assert list(advise_queued(a_workload())) == []


def test_thousands_of_workloads_and_queues_take_linear_time():
    """Everything is looked up, instead of looking through all for each."""

    def prepare(size: int) -> Callable[[], object]:
        objects: list[Any] = []
        for number in range(size):
            queue = {**a_cluster_queue(), "metadata": {"name": f"q{number}"}}
            local = {**LOCAL, "spec": {"clusterQueue": f"q{number}"}}
            namespaced = (local, QUOTA, *a_workload(pods=3))
            metadata = {"namespace": f"n{number}"}
            objects.append(queue)
            objects += ({**each, "metadata": {**each["metadata"], **metadata}} for each in namespaced)

        def work() -> None:
            assert len(list(advise_queued(objects))) == size

        return work

    assert takes_linear_time(prepare, 2000)
