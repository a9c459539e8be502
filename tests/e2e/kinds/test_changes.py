"""What the real controllers do with running pods when a template changes, beside what the table says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_infra.catalog.workload_kinds import workload_kinds
from tests.e2e.kinds.shapes import FOUR, NAMESPACE, jobs, jobset, lws, template
from tools.cluster import Api, ApiError, Manifest, kind_of

pytestmark = pytest.mark.e2e

CHANGED = "registry.invalid/main:2"
GROUP = "leaderworkerset.sigs.k8s.io/group-index"


def on_change(manifest: Manifest) -> str:
    kind = workload_kinds().find(manifest)
    assert kind is not None
    return str(kind.on_change)


def changed(pod_template: Manifest) -> Manifest:
    """The template with another image."""
    [container] = pod_template["spec"]["containers"]
    return {**pod_template, "spec": {**pod_template["spec"], "containers": [{**container, "image": CHANGED}]}}


def image_of(pod: Manifest) -> Any:
    return pod["spec"]["containers"][0]["image"]


def test_a_leader_worker_set_replaces_its_pods_group_by_group(workloads: Api):
    made = lws("changing", replicas=2, group={"size": 3})
    assert "group by group" in on_change(made)
    workloads.create(made)

    def groups(pods: Sequence[Manifest]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for pod in pods:
            if pod["metadata"]["labels"].get("leaderworkerset.sigs.k8s.io/name") == "changing":
                image = "" if "deletionTimestamp" in pod["metadata"] else image_of(pod)
                found.setdefault(pod["metadata"]["labels"][GROUP], []).append(image)
        return found

    def all_have(image: str, of: dict[str, list[str]]) -> bool:
        return sorted(of) == ["0", "1"] and all(images == [image] * 3 for images in of.values())

    before = image_of({"spec": template()["spec"]})
    workloads.wait_for("v1/Pod", lambda pods: all_have(before, groups(pods)), namespace=NAMESPACE)
    change = {"spec": {"leaderWorkerTemplate": {"workerTemplate": changed(template("worker"))}}}
    workloads.patch(kind_of(made), "changing", change, namespace=NAMESPACE)
    # One group has none of its pods left as they were while all of the other's are.
    workloads.wait_for(
        "v1/Pod",
        lambda pods: groups(pods).get("0") == [before] * 3 and before not in groups(pods).get("1", []),
        namespace=NAMESPACE,
    )
    workloads.wait_for("v1/Pod", lambda pods: all_have(CHANGED, groups(pods)), namespace=NAMESPACE)
    workloads.delete(kind_of(made), "changing", namespace=NAMESPACE)


def test_the_jobs_of_a_job_set_are_refused_a_change_unless_it_is_suspended(workloads: Api):
    running = jobset("changing", jobs("workers", pods=FOUR))
    suspended = jobset("changing-suspended", jobs("workers", pods=FOUR), suspend=True)
    assert "refuses unless the JobSet is suspended" in on_change(running)
    entry = jobs("workers", pods=FOUR)
    entry["template"]["spec"]["template"] = changed(template("workers"))
    change = {"spec": {"replicatedJobs": [entry]}}
    for made in (running, suspended):
        workloads.create(made)
    with pytest.raises(ApiError, match="immutable"):
        workloads.patch(kind_of(running), "changing", change, namespace=NAMESPACE)
    kept = workloads.patch(kind_of(suspended), "changing-suspended", change, namespace=NAMESPACE)
    [job] = kept["spec"]["replicatedJobs"]
    assert job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] == CHANGED
    for made in (running, suspended):
        workloads.delete(kind_of(made), made["metadata"]["name"], namespace=NAMESPACE)
