"""What the real controllers do with running pods when a template changes, beside what the table says of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dra_infra.catalog.workload_kinds import workload_kinds
from tests.e2e.kinds.shapes import FOUR, NAMESPACE, RACK, jobs, jobset, lws, template
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


def test_another_size_of_its_groups_replaces_all_pods_of_a_leader_worker_set(workloads: Api):
    made = lws("sizing", replicas=2, group={"size": 3})

    def found(pods: Sequence[Manifest]) -> set[str]:
        label = "leaderworkerset.sigs.k8s.io/name"
        return {pod["metadata"]["uid"] for pod in pods if pod["metadata"]["labels"].get(label) == "sizing"}

    seen: set[str] = set()

    def are_all(pods: Sequence[Manifest]) -> bool:
        seen.update(found(pods))
        return len(seen) == 6

    workloads.create(made)
    workloads.wait_for("v1/Pod", are_all, namespace=NAMESPACE)
    workloads.patch(
        kind_of(made), "sizing", {"spec": {"leaderWorkerTemplate": {"size": 2}}}, namespace=NAMESPACE
    )
    workloads.wait_for(
        "v1/Pod",
        lambda pods: len(found(pods)) == 4 and found(pods).isdisjoint(seen),
        namespace=NAMESPACE,
    )
    workloads.delete(kind_of(made), "sizing", namespace=NAMESPACE)


@pytest.mark.parametrize("suspend", [False, True], ids=["running", "suspended"])
def test_the_jobs_of_a_job_set_are_refused_a_change_of_what_its_pods_ask_for(workloads: Api, suspend: bool):
    made = jobset(f"asking-{suspend}".lower(), jobs("workers", pods=FOUR), suspend=suspend)
    assert "refuses" in on_change(made)
    workloads.create(made)
    with pytest.raises(ApiError, match=r"spec\.replicatedJobs: .*field is immutable"):
        change(workloads, made, changed(template("workers")))
    workloads.delete(kind_of(made), made["metadata"]["name"], namespace=NAMESPACE)


@pytest.mark.parametrize(
    "more", [{"replicas": 2}, {"dependsOn": []}, {"parallelism": 3}, {"completions": 3}], ids=lambda each: next(iter(each))
)  # fmt: skip
def test_a_field_that_counts_as_the_pods_of_a_job_set_is_refused_as_they_are(
    workloads: Api, more: dict[str, Any]
):
    [field] = more
    made = jobset(f"counting-{field}".lower(), jobs("workers", pods=FOUR))
    kind = workload_kinds().find(made)
    assert kind is not None
    assert any(path[-1] == field for path, _ in kind.changed_by)
    workloads.create(made)
    name = made["metadata"]["name"]
    entries = workloads.get(kind_of(made), name, namespace=NAMESPACE)["spec"]["replicatedJobs"]
    (entries[0]["template"]["spec"] if field in ("parallelism", "completions") else entries[0]).update(more)
    spec = {"spec": {"replicatedJobs": entries}}
    if field == "dependsOn":
        # An empty list is what is there when nothing is written.
        workloads.patch(kind_of(made), name, spec, namespace=NAMESPACE)
    else:
        with pytest.raises(ApiError, match=r"spec\.replicatedJobs: .*field is immutable"):
            workloads.patch(kind_of(made), name, spec, namespace=NAMESPACE)
    workloads.delete(kind_of(made), name, namespace=NAMESPACE)


@pytest.mark.parametrize("suspend", [False, True], ids=["running", "suspended"])
def test_only_a_suspended_job_set_takes_another_node_selector(workloads: Api, suspend: bool):
    made = jobset(f"placed-{suspend}".lower(), jobs("workers", pods=FOUR), suspend=suspend)
    assert "while it is suspended, labels, annotations, nodeSelector" in on_change(made)
    workloads.create(made)
    elsewhere = template("workers", nodeSelector={RACK: "rack-1"})
    if suspend:
        [job] = change(workloads, made, elsewhere)["spec"]["replicatedJobs"]
        assert job["template"]["spec"]["template"]["spec"]["nodeSelector"] == {RACK: "rack-1"}
    else:
        with pytest.raises(ApiError, match="field is immutable"):
            change(workloads, made, elsewhere)
    workloads.delete(kind_of(made), made["metadata"]["name"], namespace=NAMESPACE)


def change(workloads: Api, made: Manifest, pod_template: Manifest) -> Manifest:
    """Give the only jobs of a JobSet another template, and leave all else as the server completed it."""
    kind = kind_of(made)
    name = made["metadata"]["name"]
    entries = workloads.get(kind, name, namespace=NAMESPACE)["spec"]["replicatedJobs"]
    pods = entries[0]["template"]["spec"]["template"]
    pods["spec"] |= pod_template["spec"]
    return workloads.patch(kind, name, {"spec": {"replicatedJobs": entries}}, namespace=NAMESPACE)
