"""Releases of controllers whose definitions know claims by name, as the input has them or does not."""

from __future__ import annotations

from typing import Any

import pytest

from dra_infra.catalog.vocabulary import read_data
from dra_infra.catalog.workload_kinds import workload_kinds
from dra_infra.kubernetes.api import BUILT_IN_KINDS
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.estate import migrate_objects
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.migration.workloads import find_kind, more_kinds

STANDARD = {"serving.kserve.io/deploymentMode": "Standard"}
WHOLE = Settings(plugin=DevicePlugin(strategy="mixed"))
ROWS = read_data("controller_releases.yaml")["controllers"]
KINDS = [(row, key) for row in ROWS for key in row.get("kinds", ())]
EACH_KIND = pytest.mark.parametrize(
    ("row", "key"), KINDS, ids=lambda each: each if isinstance(each, str) else ""
)
RELEASED = pytest.mark.parametrize(
    ("row", "key"),
    [(row, key) for row, key in KINDS if "images" in row],
    ids=lambda each: each if isinstance(each, str) else "",
)

SAY_IT_THEMSELVES = {
    ("argoproj.io", "Workflow"),
    ("argoproj.io", "CronWorkflow"),
    ("argoproj.io", "WorkflowTemplate"),
    ("apps.nvidia.com", "NIMService"),
}
"""Kinds whose pods have claims in fields of their own, from a release on that another remark names."""

WITHOUT_CLAIMS_BY_POD_SPEC = {
    ("kueue.x-k8s.io", "Workload"),
    ("kubevirt.io", "VirtualMachine"),
    ("kubevirt.io", "VirtualMachineInstance"),
    ("kubevirt.io", "VirtualMachineInstanceReplicaSet"),
}

"""Kinds with claims of another form, and one that Kueue makes."""


def _kinds() -> dict[tuple[str, str], Any]:
    return {(each["group"], each["kind"]): each for each in read_data("migrated_kinds.yaml")["kinds"]}


def pod_spec() -> dict[str, Any]:
    limits = {"limits": {"nvidia.com/gpu": 1}}
    return {"containers": [{"name": "main", "image": "registry.example.com/a:1", "resources": limits}]}


def an_object(row: dict[str, Any], key: str) -> dict[str, Any]:
    """An object of the kind with a pod in the first of its parts."""
    group, kind = key.split("/")
    version = row.get("versions", ["v1"])[0]
    made: dict[str, Any] = {
        "apiVersion": f"{group}/{version}",
        "kind": kind,
        "metadata": {"name": "a", "namespace": "ml", "annotations": STANDARD},
    }
    found = find_kind(made, workload_kinds())
    assert found is not None
    part = found.parts[0]
    value: Any = pod_spec() if part.is_spec else {"spec": pod_spec()}
    for step in reversed(part.path):
        value = (
            [value]
            if step == "*" and part.path[-2:] != ("*", "template")
            else {("Worker" if step == "*" else step): value}
        )
    return {**made, **value}


def a_deployment(image: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": image}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "controller", "namespace": "kube-system"},
        "spec": {"selector": {}, "template": {"spec": spec}},
    }


def a_definition(key: str, *properties: str) -> dict[str, Any]:
    group, kind = key.split("/")
    claims = {"items": {"properties": {each: {} for each in ("name", *properties)}}}
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": {"resourceClaims": claims}}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "a"},
        "spec": {"group": group, "names": {"kind": kind}, "versions": [{"name": "v1", "schema": schema}]},
    }


def before(release: str) -> str:
    """A release older than this one."""
    major, minor, patch = map(int, release.split("."))
    return f"{major}.{minor}.{patch - 1}" if patch else f"{major}.{minor - 1}.9"


def migrate(was: dict[str, Any], *beside: dict[str, Any]) -> Migrated:
    return migrate_objects([was, *beside], WHOLE)[0]


def codes(done: Migrated) -> list[str]:
    return [
        each.code
        for each in done.remarks
        if each.code.startswith("controller-") and "setting" not in each.code
    ]


@EACH_KIND
def test_the_first_release_that_knows_claims_is_named_once(row: dict[str, Any], key: str):
    was = an_object(row, key)
    done = migrate(was)
    assert done.manifest is not was
    [told] = [each for each in done.remarks if each.code == "controller-release-needed"]
    assert f"{row['name']} {row['since']}" in told.message
    assert told.outcome == "changed"
    assert told.path.endswith(".resourceClaims")
    again = migrate_objects([done.manifest or {}], WHOLE)[0]
    assert again.remarks == ()


@EACH_KIND
def test_an_old_definition_in_the_input_leaves_the_object_as_it_is(row: dict[str, Any], key: str):
    was = an_object(row, key)
    done = migrate(was, a_definition(key, "source"))
    assert (done.manifest is was, done.added, codes(done)) == (True, (), ["controller-too-old"])
    assert done.remarks[0].outcome == "decide"


@EACH_KIND
def test_a_definition_that_knows_claims_needs_no_word(row: dict[str, Any], key: str):
    done = migrate(an_object(row, key), a_definition(key, "resourceClaimName", "resourceClaimTemplateName"))
    assert codes(done) == []
    assert done.added


@RELEASED
def test_the_image_of_a_controller_says_its_release(row: dict[str, Any], key: str):
    was = an_object(row, key)
    for host in ("", "registry.example.com/"):
        image = f"{host}{row['images'][0]}"
        assert codes(migrate(was, a_deployment(f"{image}:v{before(row['since'])}"))) == ["controller-too-old"]
        for tag in (row["since"], f"v{row['since']}", f"v{row['since']}@sha256:0"):
            assert codes(migrate(was, a_deployment(f"{image}:{tag}"))) == []
        for tag in ("latest", "main", "v1-5170a36"):
            assert codes(migrate(was, a_deployment(f"{image}:{tag}"))) == ["controller-release-needed"]


def a_release(chart: str, version: str) -> dict[str, Any]:
    spec = {"chart": {"spec": {"chart": chart, "version": version}}}
    version = "helm.toolkit.fluxcd.io/v2"
    return {"apiVersion": version, "kind": "HelmRelease", "metadata": {"name": chart}, "spec": spec}


@pytest.mark.parametrize("row", [row for row in ROWS if "charts" in row], ids=lambda row: row["name"])
def test_the_chart_of_a_controller_says_its_release(row: dict[str, Any]):
    was = an_object(row, row["kinds"][0])
    for chart in row["charts"]:
        assert codes(migrate(was, a_release(chart, before(row["since"])))) == ["controller-too-old"]
        assert codes(migrate(was, a_release(chart, row["since"]))) == []
        assert codes(migrate(was, a_release(chart, "1.x"))) == ["controller-release-needed"]


def test_claims_that_are_there_are_dropped_by_an_old_controller_too():
    was = an_object(ROWS[0], "ray.io/RayCluster")
    done = migrate(was)
    assert done.manifest is not None
    old = a_deployment("quay.io/kuberay/operator:v1.2.2")
    again = migrate_objects([done.manifest, old], WHOLE)[0]
    assert [(each.outcome, each.code) for each in again.remarks] == [("decide", "controller-too-old")]


def test_a_definition_counts_before_an_image():
    was = an_object(ROWS[0], "ray.io/RayCluster")
    old, new = a_deployment("kuberay/operator:v1.2.2"), a_deployment("kuberay/operator:v1.6.1")
    knows, drops = (
        a_definition("ray.io/RayCluster", each) for each in ("resourceClaimTemplateName", "source")
    )
    assert codes(migrate(was, old, knows)) == []
    assert codes(migrate(was, new, drops)) == ["controller-too-old"]
    assert codes(migrate(was, old, a_definition("ray.io/RayJob", "source"))) == ["controller-too-old"]


def test_each_of_two_operators_of_one_kind_is_named_for_its_version():
    of_mpi, of_training = (
        next(row for row in ROWS if row["name"] == name) for name in ("MPI operator", "training operator")
    )
    for row, other in ((of_mpi, of_training), (of_training, of_mpi)):
        [told] = [
            each for each in migrate(an_object(row, "kubeflow.org/MPIJob")).remarks if "release" in each.code
        ]
        assert row["name"] in told.message
        assert other["name"] not in told.message


def test_every_kind_of_another_project_is_in_the_table_with_a_source():
    own = set(BUILT_IN_KINDS.kinds)
    listed = {
        tuple(key.split("/")) for row in ROWS for name in ("kinds", "always") for key in row.get(name, ())
    }
    with_pods = {key for key, kind in more_kinds().kinds.items() if kind.parts} | set(workload_kinds().kinds)
    stay = {key for key, row in _kinds().items() if "why" in row}
    assert with_pods - own - listed - stay == SAY_IT_THEMSELVES | WITHOUT_CLAIMS_BY_POD_SPEC
    assert all(row["source"] and len(row["since"].split(".")) == 3 for row in ROWS)


def test_an_object_without_devices_is_not_told_of():
    was = an_object(ROWS[0], "ray.io/RayCluster")
    was["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0].pop("resources")
    assert migrate(was, a_definition("ray.io/RayCluster", "source")).remarks == ()
