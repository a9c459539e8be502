"""The pods that the real controllers make, beside those that we name, count and describe.

For every shape: as many pods of each part, with the labels that we give them, and specs of the template that we found. What
a controller adds to a spec is said beside our answer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.catalog.train_jobs import with_runtime
from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.cli.app import app
from dra_infra.kubernetes.api import ObjectRef, PodTemplate
from tests.e2e.kinds.shapes import (
    CLAIM_TEMPLATE,
    JOBSET_SHAPES,
    LWS_SHAPES,
    NAMESPACE,
    RUNTIMES,
    TRAIN_JOB_SHAPES,
)
from tools.cluster import Api, Manifest, kind_of

pytestmark = pytest.mark.e2e

SHAPES = [*LWS_SHAPES, *JOBSET_SHAPES, *TRAIN_JOB_SHAPES]

COMPARED = ("resourceClaims", "nodeSelector", "affinity", "tolerations")
"""Fields of a pod spec that decide where a pod goes, of those that the shapes and the controllers write."""

GIVEN_TO_ALL = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
"""Keys of the tolerations that a server gives every pod."""


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


@pytest.fixture(scope="module")
def answers(fleet: list[Manifest], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What `simulate` says of all shapes, by the name of the workload."""
    folder: Path = tmp_path_factory.mktemp("simulate")
    (folder / "objects.yaml").write_text(yaml.safe_dump_all([CLAIM_TEMPLATE, *RUNTIMES, *SHAPES]))
    (folder / "fleet.yaml").write_text(yaml.safe_dump_all(fleet))
    words = ["simulate", str(folder / "objects.yaml"), "--fleet", str(folder / "fleet.yaml"), "--json"]
    said = json.loads(CliRunner().invoke(app, words, catch_exceptions=False).stdout)
    return {str(ObjectRef(**each["object"])): each for each in said["workloads"]}


@pytest.fixture(scope="module", params=SHAPES, ids=name_of)
def shape(request: pytest.FixtureRequest) -> Manifest:
    """One shape after the other."""
    manifest: Manifest = request.param
    return manifest


@pytest.fixture(scope="module")
def templates(shape: Manifest) -> dict[str, PodTemplate]:
    """What we find in it, by part."""
    return {each.owner.part: each for each in find_pod_templates(with_runtime(shape, RUNTIMES))}


@pytest.fixture(scope="module")
def pods(shape: Manifest, templates: dict[str, PodTemplate], workloads: Api) -> Iterator[list[Manifest]]:
    """Its pods, as soon as there are as many as we count; it goes afterwards."""
    name = shape["metadata"]["name"]
    kind = kind_of(shape)
    workloads.create(shape)
    if shape["spec"].get("suspend"):
        workloads.wait_until(kind, name, is_suspended, namespace=NAMESPACE)
        assert not parts_of(shape, workloads.list("v1/Pod", namespace=NAMESPACE))
        workloads.patch(kind, name, {"spec": {"suspend": False}}, namespace=NAMESPACE)
    for part in comes_after(shape):
        found = workloads.wait_for("v1/Pod", lambda pods: parts_of(shape, pods), namespace=NAMESPACE)
        assert part not in parts_of(shape, found)
        finish(workloads, pods_of(shape, found))
    expected = Counter({part: each.replicas for part, each in templates.items() if each.replicas})
    found = workloads.wait_for("v1/Pod", lambda pods: parts_of(shape, pods) == expected, namespace=NAMESPACE)
    yield pods_of(shape, found)
    workloads.delete(kind, name, namespace=NAMESPACE)


def is_suspended(manifest: Manifest) -> bool:
    conditions = manifest.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Suspended" and each["status"] == "True" for each in conditions)


def comes_after(shape: Manifest) -> list[str]:
    """Parts whose pods come when those of another have succeeded."""
    jobs = with_runtime(shape, RUNTIMES)["spec"].get("replicatedJobs", ())
    return [
        each["name"] for each in jobs if any(on["status"] == "Complete" for on in each.get("dependsOn", ()))
    ]


def finish(workloads: Api, pods: list[Manifest]) -> None:
    for name in (pod["metadata"]["name"] for pod in pods):
        workloads.wait_until(
            "v1/Pod", name, lambda pod: pod["status"]["phase"] == "Running", namespace=NAMESPACE
        )
        succeeded = {"status": {"phase": "Succeeded"}}
        workloads.patch("v1/Pod", name, succeeded, namespace=NAMESPACE, subresource="status")


def part_of(shape: Manifest, pod: Manifest) -> str | None:
    """The part that a controller says a pod belongs to; None for a pod of another object."""
    labels = pod["metadata"]["labels"]
    name = shape["metadata"]["name"]
    # A TrainJob makes a JobSet of its own name.
    if shape["kind"] != "LeaderWorkerSet" and labels.get("jobset.sigs.k8s.io/jobset-name") == name:
        return str(labels["jobset.sigs.k8s.io/replicatedjob-name"])
    if shape["kind"] == "LeaderWorkerSet" and labels.get("leaderworkerset.sigs.k8s.io/name") == name:
        return "leader" if labels["leaderworkerset.sigs.k8s.io/worker-index"] == "0" else "workers"
    return None


def pods_of(shape: Manifest, pods: list[Manifest]) -> list[Manifest]:
    return [each for each in pods if part_of(shape, each) is not None]


def parts_of(shape: Manifest, pods: list[Manifest]) -> Counter[str]:
    return Counter(part for each in pods if (part := part_of(shape, each)) is not None)


def test_the_controllers_want_no_more_pods_than_we_count(shape, pods, workloads):
    name = shape["metadata"]["name"]
    if shape["kind"] == "LeaderWorkerSet":
        of_shape = f"leaderworkerset.sigs.k8s.io/name={name}"
        sets = workloads.wait_for(
            "apps/v1/StatefulSet",
            lambda sets: any(each["metadata"]["name"] == name for each in sets),
            namespace=NAMESPACE,
            label_selector=of_shape,
        )
        wanted = sum(each["spec"]["replicas"] for each in sets)
    else:
        of_shape = f"jobset.sigs.k8s.io/jobset-name={name}"
        jobs = workloads.list("batch/v1/Job", namespace=NAMESPACE, label_selector=of_shape)
        wanted = sum(at_once(each["spec"]) for each in jobs)
    assert len(pods) == wanted


def at_once(job: Manifest) -> int:
    parallelism = int(job["parallelism"])
    return min(parallelism, int(job.get("completions", parallelism)))


def test_simulate_names_each_part_with_as_many_pods(shape, templates, pods, answers):
    real = parts_of(shape, pods)
    of_shape = f"{shape['kind']} {NAMESPACE}/{shape['metadata']['name']}/"
    said = {owner: each["replicas"] for owner, each in answers.items() if owner.startswith(of_shape)}
    assert said == {f"{of_shape}{part}": real[part] for part, each in templates.items() if each.claims}


def test_pods_have_the_labels_that_we_give_them(shape, templates, pods):
    for pod in pods:
        part = part_of(shape, pod)
        assert templates[part].labels.items() <= pod["metadata"]["labels"].items()


def test_containers_ask_for_what_we_read(shape, templates, pods):
    for pod in pods:
        ours = {each["name"]: each for each in templates[part_of(shape, pod)].spec["containers"]}
        for container in pod["spec"]["containers"]:
            assert asked(container) == asked(ours[container["name"]])


def asked(container: Manifest) -> Any:
    """Limits, requests with those that a server takes from limits, and claims of a container."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    return limits, {**limits, **(resources.get("requests") or {})}, resources.get("claims") or []


def test_what_a_controller_adds_to_pods_is_said_beside_the_answer(shape, templates, pods):
    added = {
        name
        for pod in pods
        for name in COMPARED
        if decides(pod["spec"], name) != decides(templates[part_of(shape, pod)].spec, name)
    }
    said = {path for each in templates.values() for path, _ in each.unmodelled if "annotations" in path}
    assert bool(added) == bool(said), (added, said)


def decides(spec: Any, name: str) -> Any:
    value = spec.get(name) or None
    if name == "tolerations":
        return [each for each in value or () if each["key"] not in GIVEN_TO_ALL]
    return value


def test_only_a_suspended_set_is_said_to_be(shape, templates):
    is_said = any("suspend" in path for each in templates.values() for path, _ in each.unmodelled)
    assert is_said == bool(shape["spec"].get("suspend"))
