"""Objects that have to be deleted before they are applied, as a migration reports them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.answers.migrating import migrate

CODE = "not-changed-in-place"


def a_template(number: Any = 1) -> dict[str, Any]:
    container = {"name": "c", "image": "r/x:1", "resources": {"limits": {"nvidia.com/gpu": number}}}
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [container]}}


SPECS: dict[str, tuple[str, Any]] = {
    "Job": ("batch/v1", {"template": a_template()}),
    "Pod": ("v1", a_template()["spec"]),
    "JobSet": (
        "jobset.x-k8s.io/v1alpha2",
        {"replicatedJobs": [{"name": "a", "template": {"spec": {"template": a_template()}}}]},
    ),
    "RayCluster": ("ray.io/v1", {"headGroupSpec": {"rayStartParams": {}, "template": a_template()}}),
    "Deployment": ("apps/v1", {"selector": {"matchLabels": {"a": "b"}}, "template": a_template()}),
    "StatefulSet": ("apps/v1", {"selector": {"matchLabels": {"a": "b"}}, "template": a_template()}),
    "DaemonSet": ("apps/v1", {"selector": {"matchLabels": {"a": "b"}}, "template": a_template()}),
    "CronJob": ("batch/v1", {"schedule": "@daily", "jobTemplate": {"spec": {"template": a_template()}}}),
}


def reported(folder: Path, kind: str, spec: Any = None, to: Any = "claims", **metadata: Any) -> list[str]:
    """The hints of remarks on an object that is not changed in place."""
    version, own = SPECS[kind]
    made = {"name": "a", "namespace": "ml", **metadata}
    manifest = {"apiVersion": version, "kind": kind, "metadata": made, "spec": spec or own}
    file = folder / "in.yaml"
    file.write_text(yaml.safe_dump(manifest))
    done = migrate([str(file)], to=to, whole_gpus=True, kubernetes="1.37")
    return [each.hint for entry in done.report.entries for each in entry.remarks if each.code == CODE]


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        ("Job", "kubectl delete job a -n ml"),
        ("Pod", "kubectl delete pod a -n ml"),
        ("JobSet", "kubectl delete jobset.jobset.x-k8s.io a -n ml"),
        ("RayCluster", "kubectl delete raycluster.ray.io a -n ml"),
    ],
)
def test_what_is_refused_or_keeps_its_pods_is_reported_with_the_command(
    tmp_path: Path, kind: str, command: str
):
    (hint,) = reported(tmp_path, kind)
    assert hint.endswith(f": {command}")


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet", "CronJob"])
def test_what_changes_in_place_is_not(tmp_path: Path, kind: str):
    assert reported(tmp_path, kind) == []


def test_a_suspended_job_may_not_change_its_claims_either(tmp_path: Path):
    assert len(reported(tmp_path, "Job", {"suspend": True, "template": a_template()})) == 1


def test_what_stays_and_what_has_another_name_each_time_is_not(tmp_path: Path):
    assert reported(tmp_path, "Job", to="bridge") == []
    assert reported(tmp_path, "Job", {"template": a_template("${GPUS}")}) == []
    assert reported(tmp_path, "Job", name=None, generateName="a-") == []
