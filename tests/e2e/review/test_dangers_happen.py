"""What a review calls a danger, and then `pulumi up`: it happens as it was told."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.e2e.review.conftest import Reviewed
from tools.cluster import Api
from tools.engine_cli import Result

pytestmark = pytest.mark.e2e

POD, CLAIM = "v1/Pod", "resource.k8s.io/v1/ResourceClaim"
CREATE_FIRST = ["create-replacement", "replace", "delete-replaced"]
DELETE_FIRST = ["delete-replaced", "replace", "create-replacement"]


def running(pods: list[Any]) -> dict[str, Any]:
    """Pods that run and are not told to stop, by uid."""
    return {
        each["metadata"]["uid"]: each
        for each in pods
        if each.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
    }


def wait_for_running(api: Api, namespace: str, number: int) -> dict[str, Any]:
    """Wait until exactly *number* pods run and no other is there."""
    found = api.wait_for(POD, lambda pods: len(pods) == len(running(pods)) == number, namespace=namespace)
    return running(found)


def devices_of(claims: list[Any]) -> dict[str, list[str]]:
    """Allocated devices by name of the claim."""
    return {
        each["metadata"]["name"]: [
            result["device"] for result in each["status"]["allocation"]["devices"]["results"]
        ]
        for each in claims
        if each.get("status", {}).get("allocation")
    }


def test_a_rollover_needs_the_devices_of_the_surge_that_was_named(project: Reviewed, gpus: Api):
    program = 'deployment("serving", dra.GpuClaimTemplate("server", device_class=h100, count={}, namespace=NAMESPACE), 2)'
    project.deploy(program.format(1))
    old = wait_for_running(gpus, project.namespace, 2)
    project.write(program.format(2))

    answer = project.review()
    assert answer.code == 0, answer.text
    assert answer.change("ResourceClaimTemplate", "server")["steps"] == CREATE_FIRST
    assert answer.change("Deployment", "serving")["steps"] == ["update"]
    told = answer.rollout()["message"]
    assert "needs 2 more devices for 1 surge pod" in told
    assert "all 2 new pods find a place" in told
    assert not any("We differ" in note for note in answer.data["notes"]), answer.data["notes"]

    peak: list[int] = [0]

    def is_over(claims: list[Any]) -> bool:
        counts = [len(devices) for devices in devices_of(claims).values()]
        # One claim of the new generation beside both of the old one.
        if sorted(counts) == [1, 1, 2]:
            peak[0] = max(peak[0], sum(counts))
        return counts == [2, 2]

    rollover = threading.Thread(
        target=lambda: gpus.wait_for(CLAIM, is_over, namespace=project.namespace, timeout=180)
    )
    rollover.start()
    project.stack.up().check()
    rollover.join(240)

    assert peak == [2 * 1 + 2], "both generations were there at once"
    assert not set(old) & set(wait_for_running(gpus, project.namespace, 2))


def test_a_replaced_job_kills_its_running_pods(project: Reviewed, gpus: Api):
    program = (
        'trainer = dra.GpuClaimTemplate("trainer", device_class=h100, namespace=NAMESPACE)\n'
        'k8s.batch.v1.Job("train", metadata={{"name": "train", "namespace": NAMESPACE, "annotations": UNAWAITED}},\n'
        '    spec={{"template": {{"spec": trainer.attach(pod("registry.invalid/main:{}", restartPolicy="Never"))}}}})'
    )
    project.deploy(program.format(1))
    (old,) = wait_for_running(gpus, project.namespace, 1)
    project.write(program.format(2))

    answer = project.review()
    change = answer.change("Job", "train")
    assert (change["action"], change["steps"]) == ("replaced", DELETE_FIRST)
    assert "its running pods are killed" in answer.danger("job-replaced")["message"]

    project.stack.up().check()
    (new,) = wait_for_running(gpus, project.namespace, 1)
    assert new != old


def test_a_surge_without_room_waits_as_was_told(project: Reviewed, gpus: Api):
    program = (
        'template = dra.GpuClaimTemplate("half", device_class=h100, count=4, namespace=NAMESPACE)\n'
        'deployment("full", template, 2, "registry.invalid/main:{}")'
    )
    project.deploy(program.format(1))
    old = wait_for_running(gpus, project.namespace, 2)
    project.write(program.format(2))

    answer = project.review()
    told = answer.danger("workload-rolls")["message"]
    assert "needs 4 more devices for 1 surge pod" in told
    assert "has room for no more pods: the rollout may wait without end, at new pod 1 of 2" in told
    assert "the only node that could take it, has 0 free: 4 are missing" in told

    project.stack.up().check()

    def is_stuck(pods: list[Any]) -> bool:
        reasons = [
            condition.get("reason")
            for each in pods
            if each["status"]["phase"] == "Pending"
            for condition in each["status"].get("conditions", [])
        ]
        return reasons == ["Unschedulable"]

    pods = gpus.wait_for(POD, is_stuck, namespace=project.namespace)
    assert set(running(pods)) == set(old), "the old pods go on"


def test_a_class_that_changes_leaves_what_is_allocated(project: Reviewed, gpus: Api):
    program = (
        'deployment("serving", dra.GpuClaimTemplate("server", device_class=h100, namespace=NAMESPACE), 1)'
    )
    project.deploy(program)
    pods = wait_for_running(gpus, project.namespace, 1)
    before = devices_of(gpus.list(CLAIM, namespace=project.namespace))
    project.write(program, memory="78Gi")

    answer = project.review()
    change = answer.change("DeviceClass", project.namespace)
    assert (change["action"], change["steps"]) == ("changed", ["update"])
    assert "what is allocated stays" in answer.danger("class-changed")["message"]

    project.stack.up().check()
    changed = gpus.get("resource.k8s.io/v1/DeviceClass", project.namespace)
    assert "78" in str(changed["spec"]["selectors"])
    assert devices_of(gpus.list(CLAIM, namespace=project.namespace)) == before
    assert set(wait_for_running(gpus, project.namespace, 1)) == set(pods)


def test_a_claim_that_is_deleted_first_waits_for_its_pods(project: Reviewed, gpus: Api):
    program = (
        'dra.GpuClaim("cache", device_class=h100, count={}, namespace=NAMESPACE, object_name="cache",\n'
        '    replace="delete-first")'
    )
    project.deploy(program.format(1))
    # Not in the program: something else of the cluster uses the claim, as pods of an operator do.
    gpus.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "user", "namespace": project.namespace},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.invalid/main:1",
                        "resources": {"claims": [{"name": "gpu"}]},
                    }
                ],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "cache"}],
            },
        }
    )
    wait_for_running(gpus, project.namespace, 1)
    old = gpus.get(CLAIM, "cache", namespace=project.namespace)["metadata"]["uid"]
    project.write(program.format(2))

    answer = project.review()
    change = answer.change("ResourceClaim", "cache")
    assert (change["action"], change["order"], change["steps"]) == ("replaced", "delete-first", DELETE_FIRST)
    assert answer.danger("claim-replaced")["who"]["name"] == "cache"

    results: list[Result] = []
    up = threading.Thread(target=lambda: results.append(project.stack.up()))
    up.start()
    held = gpus.wait_until(
        CLAIM, "cache", lambda claim: "deletionTimestamp" in claim["metadata"], namespace=project.namespace
    )
    assert held["metadata"]["uid"] == old
    assert up.is_alive(), "the engine waits for the claim to go"
    gpus.delete(POD, "user", namespace=project.namespace)
    up.join(240)

    results[0].check()
    new = gpus.get(CLAIM, "cache", namespace=project.namespace)
    assert new["metadata"]["uid"] != old
    assert new["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2
