"""Kueue's real controller with the objects of KueueQueue: what it admits, holds back and charges, beside what we say.

It is not built by `make tools`. Where it is not built these tests are skipped, and say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function
from tests.e2e.components.queued_jobs import (
    COUNTED,
    COVERED,
    ELSEWHERE,
    EXTENDED,
    FLEET,
    IMPLICIT,
    KEY,
    MEMORY,
    NAMESPACE,
    NODES,
    OF_MIG,
    SHARE,
    SIZE,
    Submitted,
    a_job,
    exactly,
    resource_slice,
    template,
)
from tests.support.scheduler.controllers import kueue, running_controllers
from tools import build
from tools.cluster import Api, ControlPlane, Manifest, NodeStandIn, create_fleet, kind_of
from tools.errors import ToolError

pytestmark = pytest.mark.e2e

QUEUE = "kueue.x-k8s.io/v1beta2/ClusterQueue"
LOCAL_QUEUE = "kueue.x-k8s.io/v1beta2/LocalQueue"
QUOTA = "v1/ResourceQuota"

Submit = Callable[..., Submitted]


@pytest.fixture(scope="module")
def kueue_is_built() -> None:
    try:
        build.binary("kueue")
    except ToolError as error:
        failure = str(error)
    else:
        return
    pytest.skip(f"NOT RUN: kueue is not built; python -m tools.build --only kueue builds it\n{failure}")


Written = tuple[list[Manifest], list[Mapping[str, Any]], dict[str, str]]


@pytest.fixture(scope="module")
def written() -> Written:
    """Objects, mappings and labels of a queue."""
    told: list[Any] = []

    def queue() -> None:
        made = dra.KueueQueue(
            "gpus",
            quota={"h100": 4},
            resources={"cpu": "64", COVERED: 2, MEMORY: "60Gi", SHARE: "20Gi"},
            sources={
                MEMORY: dra.CounterSource("memory", device_classes=["mig"], driver="mig.example.com"),
                SHARE: dra.CapacitySource("memory", device_classes=["shared"], driver="shared.example.com"),
            },
            namespaces=[NAMESPACE],
            node_labels=NODES,
        )
        told.extend((made.device_class_mappings, made.workload_labels))

    program = synth_function(queue, config={"dra-infra:kubernetes": "1.37"})
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    mappings, labels = told
    return [dict(each.manifest) for each in program.objects], mappings, labels


@pytest.fixture(scope="module")
def api(
    kueue_is_built: None,
    written: Written,
    binaries: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Api]:
    """A cluster with Kueue, whose pods run until their job is deleted."""
    objects, mappings, _ = written
    controller = kueue(mappings)
    with (
        ControlPlane(binaries=binaries) as plane,
        NodeStandIn(plane.connection, finish_jobs=False),
        plane.api() as api,
        running_controllers(plane, api, binaries, tmp_path_factory.mktemp("kueue"), [controller]),
    ):
        create_fleet(api, FLEET)
        labels = {"resource.kubernetes.io/admin-access": "true"}
        api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        )
        api.wait_until("v1/ServiceAccount", "default", bool, namespace=NAMESPACE)
        api.create(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "team", "namespace": NAMESPACE},
                "spec": {"hard": dict.fromkeys(COUNTED, "100")},
            }
        )
        api.wait_until(QUOTA, "team", lambda found: "used" in found.get("status", {}), namespace=NAMESPACE)
        for each in objects:
            api.create(each)
        yield api


@pytest.fixture
def submit(api: Api, written: Written) -> Iterator[Submit]:
    """Makes Jobs of the queue, with a claim template where requests are given; all go afterwards."""
    made: list[Submitted] = []
    objects, _, labels = written

    def make(
        *written: Mapping[str, Any],
        requests: Sequence[Mapping[str, Any]] = (),
        devices: Mapping[str, Any] | None = None,
        **job: Any,
    ) -> Submitted:
        requests = written or requests
        beside = list(objects)
        if requests:
            beside.append(template(requests, **(devices or {})))
            api.create(beside[-1])
            job["claim"] = {"resourceClaimTemplateName": beside[-1]["metadata"]["name"]}
        made.append(Submitted(api, a_job(labels, **job), beside))
        return made[-1]

    yield make
    for each in made:
        each.delete()


@pytest.fixture
def quota(api: Api) -> Callable[[Mapping[str, int]], None]:
    """Waits until the quota of the namespace counts these devices, and no others."""

    def wait(expected: Mapping[str, int]) -> None:
        used = {key: str(expected.get(key, 0)) for key in COUNTED}
        api.wait_until(QUOTA, "team", lambda found: found["status"]["used"] == used, namespace=NAMESPACE)

    return wait


def is_active(manifest: Manifest) -> bool:
    conditions = manifest.get("status", {}).get("conditions", ())
    return any(each["type"] == "Active" and each["status"] == "True" for each in conditions)


def test_the_queue_and_the_queue_of_the_namespace_become_active(api: Api) -> None:
    api.wait_until(QUEUE, "gpus", is_active)
    api.wait_until(LOCAL_QUEUE, "gpus", is_active, namespace=NAMESPACE)


def test_a_job_that_exceeds_the_quota_waits_until_another_ends(submit: Submit) -> None:
    first = submit(exactly(count=3))
    assert first.charge() == {"cpu": "1", KEY: "3"}
    second = submit(exactly(count=2))
    assert second.refusal() == (
        f"couldn't assign flavors to pod set main: insufficient unused quota for {KEY} in flavor gpus, 1 more needed"
    )
    first.delete()
    assert second.charge() == {"cpu": "1", KEY: "2"}


def test_a_job_is_held_to_the_nodes_of_the_flavor(submit: Submit) -> None:
    assert submit(exactly()).running()["spec"]["template"]["spec"]["nodeSelector"] == NODES


LADDER = {"name": "either", "firstAvailable": [{"name": "a", "deviceClassName": "h100"}]}

REFUSED = {
    "all": ([exactly(allocationMode="All")], "AllocationMode 'All' is not supported"),
    "admin access": ([exactly(adminAccess=True)], "AdminAccess is not supported"),
    "alternatives": (
        [exactly(), LADDER],
        "FirstAvailable device selection is not supported",
    ),
}


@pytest.mark.parametrize("shape", REFUSED)
def test_a_claim_that_we_advise_against_is_refused_at_the_same_request(submit: Submit, shape: str) -> None:
    requests, reason = REFUSED[shape]
    submitted = submit(*requests)
    told = submitted.refusal()
    place = told.partition(": ")[0].partition("resourceClaims[0].")[2]
    (advice,) = submitted.advice()
    assert advice.code == "kueue-refuses"
    assert advice.path.startswith(f"spec.spec.{place}")
    assert told.endswith(f": {reason}")


def test_a_claim_template_that_is_replaced_helps_only_jobs_that_come_after(api: Api, submit: Submit) -> None:
    refused = template([exactly(allocationMode="All")])
    named = {"resourceClaimTemplateName": refused["metadata"]["name"]}
    api.create(refused)
    submitted = submit(claim=named)
    submitted.refusal()
    api.delete(kind_of(refused), refused["metadata"]["name"], namespace=NAMESPACE)
    api.create({**template([exactly()]), "metadata": refused["metadata"]})
    assert submit(claim=named).charge() == {"cpu": "1", KEY: "1"}
    assert submitted.refusal().endswith("AllocationMode 'All' is not supported")


def test_a_claim_by_name_is_refused_as_we_advise_and_charged_to_the_quota(
    api: Api, quota: Callable[[Mapping[str, int]], None], submit: Submit
) -> None:
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "mine", "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [exactly()]}},
    }
    api.create(claim)
    submitted = submit(claim={"resourceClaimName": "mine"})
    assert submitted.refusal() == "KueueDRAIntegration feature does not support use of resource claims"
    (advice,) = submitted.advice()
    path = "spec.template.spec.resourceClaims[0].resourceClaimName"
    assert (advice.code, advice.path) == ("kueue-refuses", path)
    quota({KEY: 1})
    api.delete("resource.k8s.io/v1/ResourceClaim", "mine", namespace=NAMESPACE)


def test_the_name_that_every_class_has_is_another_resource_as_we_advise(submit: Submit) -> None:
    submitted = submit(resources={IMPLICIT: "2"})
    unavailable = f"resource {IMPLICIT} unavailable in ClusterQueue"
    assert submitted.refusal() == f"couldn't assign flavors to pod set main: {unavailable}"
    (advice,) = submitted.advice()
    path = f"spec.template.spec.containers[0].resources.limits[{IMPLICIT}]"
    assert (advice.code, advice.path) == ("kueue-refuses", path)


def test_that_name_is_admitted_where_the_queue_has_an_amount_of_it(
    quota: Callable[[Mapping[str, int]], None], submit: Submit
) -> None:
    submitted = submit(resources={COVERED: "2"})
    assert submitted.charge() == {"cpu": "1", COVERED: "2"}
    assert submitted.advice() == []
    quota({f"{ELSEWHERE}.deviceclass.resource.k8s.io/devices": 2})


BEYOND: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "a class without a mapping": (
        {"requests": [exactly(ELSEWHERE)]},
        f"DeviceClass {ELSEWHERE} is not mapped in DRA configuration for podset main",
        [],
    ),
    "more than the queue ever has": (
        {"requests": [exactly(count=5)]},
        "> maximum capacity (4)",
        ["queue-too-small"],
    ),
    "more than the queue ever has, for all pods": (
        {"requests": [exactly(count=2)], "pods": 3},
        "> maximum capacity (4)",
        ["queue-too-small"],
    ),
    "more than the cluster has, of those that match": (
        {"requests": [exactly(count=9, selectors=[{"cel": {"expression": "true"}}])]},
        "8 device(s) match in the cluster but 9 requested",
        ["queue-too-small"],
    ),
    "a resource that the queue has not": (
        {"resources": {"memory": "1Gi"}},
        "resource memory unavailable in ClusterQueue",
        ["queue-lacks-resource"],
    ),
}


@pytest.mark.parametrize("shape", BEYOND)
def test_what_depends_on_the_queue_and_the_cluster_is_refused_as_we_advise_from_the_queue(
    submit: Submit, shape: str
) -> None:
    job, reason, codes = BEYOND[shape]
    submitted = submit(**job)
    assert reason in submitted.refusal()
    assert [each.code for each in submitted.advice()] == codes


def test_a_job_whose_devices_come_later_is_admitted_then(api: Api, submit: Submit) -> None:
    selector = {"cel": {"expression": "device.attributes['gpu.example.com'].board == 'late'"}}
    submitted = submit(exactly(selectors=[selector]))
    assert "0 device(s) match in the cluster but 1 requested" in submitted.refusal()
    device = {"name": "gpu", "attributes": {"board": {"string": "late"}}}
    late = resource_slice("gpu", 2, devices=[device])
    late["spec"]["pool"]["name"] = "late"
    api.create(late)
    assert submitted.charge() == {"cpu": "1", KEY: "1"}
    api.delete("resource.k8s.io/v1/ResourceSlice", late["metadata"]["name"])


SAME: dict[str, tuple[dict[str, Any], int]] = {
    "a number in each pod": ({"requests": [exactly(count=2)], "pods": 2}, 4),
    "several requests": ({"requests": [exactly(), {**exactly(count=2), "name": "b"}]}, 3),
    "a constraint": (
        {
            "requests": [exactly(count=2)],
            "devices": {"constraints": [{"matchAttribute": "gpu.example.com/board"}]},
        },
        2,
    ),
    "a resource that the class serves": ({"resources": {EXTENDED: "2"}}, 2),
}


@pytest.mark.parametrize("shape", SAME)
def test_both_accounts_charge_the_same_under_one_name(
    quota: Callable[[Mapping[str, int]], None], submit: Submit, shape: str
) -> None:
    job, devices = SAME[shape]
    submitted = submit(**job)
    assert submitted.charge()[KEY] == str(devices)
    assert submitted.advice() == []
    quota({KEY: devices})


SOURCED = {
    "the largest part that matches": ([exactly("mig")], {MEMORY: "40Gi"}),
    "the part that is selected": (
        [exactly("mig", selectors=[{"cel": {"expression": f"{SIZE} == '10Gi'"}}])],
        {MEMORY: "10Gi"},
    ),
    "the share of the policy": ([exactly("shared")], {SHARE: "8Gi"}),
    "the share that is asked for": (
        [exactly("shared", capacity={"requests": {"memory": "16Gi"}})],
        {SHARE: "16Gi"},
    ),
}


@pytest.mark.parametrize("shape", SOURCED)
def test_a_mapping_with_sources_charges_amounts_where_a_quota_counts_devices(
    quota: Callable[[Mapping[str, int]], None], submit: Submit, shape: str
) -> None:
    requests, charged = SOURCED[shape]
    submitted = submit(*requests)
    assert submitted.charge() == {"cpu": "1", **charged}
    (request,) = requests
    name = request["exactly"]["deviceClassName"]
    quota({f"{name}.deviceclass.resource.k8s.io/devices": 1})


def test_a_class_whose_mapping_has_a_source_is_not_admitted_by_its_extended_resource(submit: Submit) -> None:
    assert "resolves to DeviceClass mig with counters configured" in submit(resources={OF_MIG: "1"}).refusal()


def test_the_refusal_of_a_claim_stands_in_the_workload_alone_and_is_no_event(
    api: Api, submit: Submit
) -> None:
    submitted = submit(exactly(allocationMode="All"))
    submitted.refusal()
    # The events of what comes later are there, so those of what came before would be.
    submit(exactly()).charge()
    events = api.list("v1/Event", namespace=NAMESPACE)
    of_job = [each for each in events if f"{submitted.name}-" in f"{each['involvedObject']['name']}-"]
    assert {each["reason"] for each in of_job} == {"Suspended", "CreatedWorkload"}
