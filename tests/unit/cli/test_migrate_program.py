"""`dra-infra migrate --to components`: the folder that it writes, what it prints, and when it writes nothing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dra_infra.answers.migrated_program import program_of
from dra_infra.documents.yaml import read_manifests
from dra_infra.migration.device_plugin import DevicePlugin
from dra_infra.migration.needs import Settings
from dra_infra.migration.outcomes import Migrated
from dra_infra.program.synth import synth
from dra_infra.sources.cluster_objects import migrate_read
from tests.support.migration.program_cases import sorted_objects
from tests.support.pages.documents import ROOT
from tests.unit.cli.test_migrate import OTHER, SERVE, migrate

PLAIN = ("--whole-gpus", "serve.yaml", "other.yaml")
PROGRAM = (*PLAIN, "--to", "components", "--output", "infra")
FILES = {"Pulumi.yaml", "requirements.txt", ".gitignore", "__main__.py"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "serve.yaml").write_text(SERVE)
    (tmp_path / "other.yaml").write_text(OTHER)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir()}


def test_the_project_makes_what_the_plain_migration_writes(folder: Path):
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 0
    assert "the program makes 1 component, and 2 objects as they are\n" in done.stderr
    assert "wrote infra/__main__.py\n" in done.stderr
    assert contents(folder / "infra").keys() == FILES
    assert migrate(folder, *PLAIN, "--output", "claims").returncode == 0
    written = [*read_manifests((folder / "claims" / "serve.yaml").read_text()), *read_manifests(OTHER)]
    made = [each.manifest for each in synth(folder / "infra").objects]
    assert sorted_objects(made) == sorted_objects(written)
    assert len(made) == 3


def test_what_the_program_makes_as_yaml_is_the_same_program_again(folder: Path):
    from dra_infra.documents import yaml

    assert migrate(folder, *PROGRAM).returncode == 0
    made = [each.manifest for each in synth(folder / "infra").objects]
    (folder / "back.yaml").write_text(yaml.write_manifests(made))
    assert migrate(folder, "back.yaml", "--to", "components", "--output", "again").returncode == 0
    assert sorted_objects([each.manifest for each in synth(folder / "again").objects]) == sorted_objects(made)


def test_a_file_that_is_no_object_is_told_and_not_in_the_program(folder: Path):
    (folder / "values.yaml").write_text("ollama: {gpu: {enabled: true}}\n")
    done = migrate(folder, *PROGRAM, "values.yaml")
    assert done.returncode == 0
    assert "1 document without apiVersion and kind is not in it\n" in done.stderr
    assert len(synth(folder / "infra").objects) == 3


def test_a_second_run_changes_nothing(folder: Path):
    assert migrate(folder, *PROGRAM).returncode == 0
    first = contents(folder / "infra")
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 0
    assert "all of it is there already; nothing was written\n" in done.stderr
    assert contents(folder / "infra") == first


def test_a_file_that_somebody_changed_is_never_replaced(folder: Path):
    (folder / "infra").mkdir()
    (folder / "infra" / "Pulumi.yaml").write_text("name: mine\n")
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 2
    assert "files-differ" in done.stderr
    assert "--force" not in done.stderr
    assert contents(folder / "infra") == {"Pulumi.yaml": b"name: mine\n"}


def test_what_cannot_be_read_leaves_no_folder_behind(folder: Path):
    (folder / "other.yaml").write_text("a: [\n")
    done = migrate(folder, *PROGRAM)
    assert done.returncode != 0
    assert "no program was written, for it would lack objects\n" in done.stderr
    assert not (folder / "infra").exists()


def test_what_pulumi_would_change_leaves_no_folder_behind(folder: Path):
    (folder / "other.yaml").write_text(
        f"apiVersion: example.com/v1\nkind: Big\nmetadata: {{name: b}}\nspec: {{size: {2**53 + 1}}}\n"
    )
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 1
    assert (
        "Big b: Pulumi would make another object of it: spec.size would differ [not-in-program]\n"
        in done.stderr
    )
    assert not (folder / "infra").exists()


def test_a_value_of_a_secret_that_shows_like_a_marker_is_written(folder: Path):
    (folder / "other.yaml").write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: '[secret]'}\n"
    )
    done = migrate(folder, *PROGRAM)
    assert (done.returncode, "value-not-written" in done.stderr) == (0, False)
    assert '"a": "[secret]"' in (folder / "infra" / "__main__.py").read_text()


def live(kind: str, name: str, image: str = "x:1", **more: Any) -> dict[str, Any]:
    """An object as `kubectl get -o yaml` prints it."""
    metadata = {
        "name": name,
        "namespace": "ml",
        "uid": "0f6b4d0c-9a9e-4a54-9e4e-6a7b7a3a2f10",
        "resourceVersion": "5",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        **more,
    }
    spec = {"selector": {"matchLabels": {"app": name}}, "template": {"metadata": {"labels": {"app": name}}}}
    spec["template"]["spec"] = {"containers": [{"name": "main", "image": image}]}
    status = {"replicas": 1}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def test_what_stays_as_the_cluster_has_it_is_taken_over_without_what_servers_write(folder: Path):
    changed = live("Deployment", "train")
    changed["spec"]["template"]["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": True}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": live("ResourceQuota", "pods")["metadata"],
        "spec": {"hard": {"pods": "5"}},
        "status": {"used": {"pods": "1"}},
    }
    made = live("ReplicaSet", "web-1", ownerReferences=[owner])
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made["metadata"], "data": {"a": "b"}}
    items = [live("Deployment", "web"), made, settings, changed, quota]
    (folder / "live.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    done = migrate(folder, "live.json", "--whole-gpus", "--to", "components", "--output", "infra")
    assert done.returncode == 0
    assert "2 objects that controllers or charts made, or without devices, are not in it\n" in done.stderr
    assert "Deployment ml/train is taken over and changed: " in done.stderr
    text = (folder / "infra" / "__main__.py").read_text()
    assert [line.strip() for line in text.splitlines() if "import_" in line] == [
        'opts=pulumi.ResourceOptions(import_="ml/web"),',
        'opts=pulumi.ResourceOptions(import_="ml/train"),',
        'opts=pulumi.ResourceOptions(import_="ml/pods"),',
    ]
    assert text.count('"annotations": {"pulumi.com/patchForce": "true"}') == 1
    assert "# In the cluster: `pulumi up` imports it as it is there" in text
    assert not any(each in text for each in ("uid", "managed", "status", "resource_version", "web-1"))
    kinds = [each.manifest["kind"] for each in synth(folder / "infra").objects]
    assert sorted(kinds) == ["Deployment", "Deployment", "ResourceClaimTemplate", "ResourceQuota"]


def asking(kind: str, **more: Any) -> dict[str, Any]:
    changed = live(kind, "train", **more)
    limits = {"limits": {"nvidia.com/gpu": 1}}
    changed["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    return changed


SPEC = {"f:spec": {}}
WRITERS = [
    ({"manager": "helm", "operation": "Update", "fieldsV1": SPEC}, "for fields of helm would stay"),
    ({"manager": "helm", "operation": "Update", "fieldsV1": {"f:status": {}}}, ""),
    ({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": SPEC}, ""),
    ({"manager": "hpa", "operation": "Update", "subresource": "scale", "fieldsV1": SPEC}, ""),
    (None, "for nothing says who wrote its fields"),
]


@pytest.mark.parametrize(("written", "why"), WRITERS)
def test_what_changes_is_taken_over_where_no_field_of_others_would_stay(written: Any, why: str):
    was = asking("Deployment", managedFields=[written] if written else [])
    (done,) = migrate_read([was], Settings(plugin=DevicePlugin()))
    program = program_of([done], [was])
    assert ("import_=" in program.text) == (not why)
    told = [each.message for each in program.migrated[0].remarks if each.code == "not-taken-over"]
    assert [why in each for each in told] == ([True] if why else [])
    assert any("taken over and changed" in each for each in program.notes) == (not why)


def test_what_cannot_change_in_place_is_not_taken_over():
    was = asking("Job", managedFields=[{"manager": "kubectl", "operation": "Update", "fieldsV1": SPEC}])
    was["apiVersion"] = "batch/v1"
    (done,) = migrate_read([was], Settings(plugin=DevicePlugin()))
    program = program_of([done], [was])
    assert "import_=" not in program.text
    told = program.migrated[0].remarks[-1]
    assert (told.code, told.outcome) == ("not-taken-over", "decide")
    assert told.message.endswith("which no import takes over, for it cannot change in place")
    assert told.hint.startswith("apply ")


def written_by(kind: str, name: str, manager: str, **more: Any) -> dict[str, Any]:
    fields = [{"manager": manager, "fieldsV1": {"f:spec": {}}}] if manager else []
    metadata = live(kind, name, managedFields=fields, **more)["metadata"]
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def program_of_live(folder: Path, *items: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    (folder / "live.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return migrate(folder, "live.json", "--whole-gpus", "--to", "components")


@pytest.mark.parametrize(
    ("made", "is_left_out"),
    [
        (written_by("ConfigMap", "kube-root-ca.crt", ""), True),
        (written_by("ServiceAccount", "default", "kubectl-patch"), True),
        (written_by("PersistentVolumeClaim", "data-db-0", ""), True),
        (written_by("PersistentVolumeClaim", "data-db-0", "kubectl"), False),
        (written_by("PersistentVolumeClaim", "data-db-x", ""), False),
        (written_by("PersistentVolumeClaim", "of-another-0", "kube-controller-manager"), True),
        (written_by("Service", "web", "helm", annotations={"meta.helm.sh/release-name": "web"}), True),
    ],
)
def test_what_kubernetes_and_charts_made_is_left_to_them(
    folder: Path, made: dict[str, Any], *, is_left_out: bool
):
    stateful = live("StatefulSet", "db")
    stateful["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": {}}]
    done = program_of_live(folder, stateful, made)
    assert done.returncode == 0
    assert 'import_="ml/db"' in done.stdout
    assert (f'import_="ml/{made["metadata"]["name"]}"' not in done.stdout) == is_left_out
    assert ("1 object that controllers or charts made" in done.stderr) == is_left_out


TRACKED = {"argocd.argoproj.io/tracking-id": "x"}


@pytest.mark.parametrize(
    ("more", "who"),
    [
        ({"annotations": TRACKED}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "x"}}, "Flux"),
        ({"managedFields": [{"manager": "argocd-controller", "fieldsV1": SPEC}]}, "Argo CD"),
        ({"managedFields": [{"manager": "pulumi-kubernetes-1a", "fieldsV1": SPEC}]}, "another stack of Pulumi"),
        ({"managedFields": [{"manager": "kube-controller-manager", "fieldsV1": {"f:status": {}}}]}, ""),
        ({"managedFields": [{"manager": "kubectl-edit", "fieldsV1": SPEC}]}, ""),
    ],
)  # fmt: skip
def test_what_somebody_else_manages_is_named_where_it_is_taken_over(
    folder: Path, more: dict[str, Any], who: str
):
    done = program_of_live(folder, live("Deployment", "web", **more))
    assert 'import_="ml/web"' in done.stdout
    told = f"{who} has what is taken over too, and what one of the two deletes is gone; leave to one: Deployment ml/web"
    assert (told in done.stderr) == bool(who)
    assert ("leave to one" in done.stderr) == bool(who)


def test_pods_and_jobs_that_run_are_named_and_left_alone(folder: Path):
    job, pod, other = live("Job", "once"), live("Pod", "user"), live("Job", "of-volcano")
    job["apiVersion"], pod["apiVersion"], other["apiVersion"] = "batch/v1", "v1", "batch.volcano.sh/v1alpha1"
    pod["spec"] = pod["spec"]["template"]["spec"] | {"nodeName": "n"}
    job["status"], pod["status"] = {"active": 1}, {"phase": "Running"}
    done = program_of_live(folder, job, pod, other)
    assert done.returncode == 0
    assert "not in it, for Pulumi would replace what runs: Job ml/once and Pod ml/user; " in done.stderr
    assert done.stdout.count("import_=") == 1
    assert not any(each in done.stdout for each in ("once", "user"))


@pytest.mark.parametrize("option", ["--write", "--diff"])
def test_a_program_goes_to_a_folder_only(folder: Path, option: str):
    done = migrate(folder, "--whole-gpus", "serve.yaml", "--to", "components", option)
    assert done.returncode == 2
    assert "a program is new, and goes to a folder" in done.stderr


def test_what_stays_an_object_is_told_in_every_form(folder: Path):
    (folder / "class.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: all}\nspec: {}\n"
    )
    done = migrate(folder, "class.yaml", "--to", "components", "--format", "json")
    (row,) = json.loads(done.stdout)["objects"]
    assert [(each["code"], each["outcome"]) for each in row["remarks"]] == [("kept-as-object", "kept")]
    assert done.returncode == 0


def test_the_page_shows_what_is_printed(folder: Path):
    done = migrate(folder, "serve.yaml", "--whole-gpus", "--to", "components")
    shown = "$ dra-infra migrate serve.yaml --whole-gpus --to components\n" + done.stdout
    page = ROOT / "docs" / "migration.md"
    before, begin, rest = page.read_text().partition(
        "<!-- made by: tests/unit/cli/test_migrate_program.py -->\n\n```console\n"
    )
    end = rest.index("```\n")
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        page.write_text(f"{before}{begin}{shown}{rest[end:]}")
    assert rest[:end] == shown, "run `make golden`, and read what it wrote"


PART = """
apiVersion: v1
kind: Pod
metadata: {name: executor, namespace: a}
spec:
  containers:
  - name: spark-kubernetes-executor
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
"""
REFUSED = {
    "an old version": "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: a, namespace: d}\n"
    "spec: {resourceClassName: nobodys}\n",
    "a claim without a class": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a, namespace: d}\n"
    "spec: {devices: {requests: [{name: gpu, exactly: {count: 1}}]}}\n",
    "an attribute that no driver has": "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\n"
    'spec: {selectors: [{cel: {expression: "device.driver =="}}]}\n',
    "a pod that names nothing": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: d}\nspec:\n"
    "  resourceClaims: [{name: gpu}]\n  containers: [{name: c, image: x}]\n",
    "a key of a class that is none": "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: A_B}\nspec: {}\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_synth_refuses_is_not_written(folder: Path, name: str):
    (folder / "serve.yaml").write_text(REFUSED[name])
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 1
    assert "`dra-infra synth` refuses it: " in done.stderr
    assert "[not-in-program]" in done.stderr
    assert not (folder / "infra").exists()


def test_a_part_of_an_object_is_named_where_it_is_not_in_the_program(folder: Path):
    (folder / "serve.yaml").write_text(PART)
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 0
    assert "Pod a/executor is not in it: spec.containers[0] has no image\n" in done.stderr


def test_what_has_no_kind_is_told_and_no_program_is_written(folder: Path):
    (folder / "serve.yaml").write_text("apiVersion: v1\nmetadata: {name: odd}\n")
    done = migrate(folder, *PROGRAM)
    assert done.returncode == 1
    assert "not-in-program" in done.stderr
    assert not (folder / "infra").exists()


DRAWN = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "train-", "namespace": "ml"}}


def test_a_name_that_a_server_would_draw_is_told_as_one_that_pulumi_makes_up():
    named = {**DRAWN, "metadata": {"name": "train", "generateName": "train-"}}
    program = program_of([Migrated(manifest=DRAWN), Migrated(manifest=named)], [DRAWN, named])
    assert program.problems == []
    (told,) = [each for each in program.notes if "generateName" in each]
    assert told.startswith("metadata.generateName of Job ml/train- is not in the program: ")
    assert program.text.count("generate_name") == 1


RULE = """\
apiVersion: resource.k8s.io/v1alpha3
kind: DeviceTaintRule
metadata: {name: service}
spec: {deviceSelector: {pool: node-a}, taint: {key: example.com/x, effect: NoExecute}}
"""


@pytest.mark.parametrize(
    ("minor", "old", "new", "version"),
    [
        ("1.37", "", "", "v1"),
        ("1.36", "", "", "v1beta2"),
        ("1.34", "", "", "v1alpha3"),
        ("1.37", "key:", 'value: "", key:', "v1"),
        ("1.37", "pool: node-a", "deviceClassName: a", "v1alpha3"),
        ("1.34", "v1alpha3", "v1", "v1alpha3"),
    ],
)
def test_a_taint_rule_is_written_for_the_minor_that_is_named(
    folder: Path, minor: str, old: str, new: str, version: str
):
    (rule,) = read_manifests(RULE.replace(old, new))
    program = program_of([Migrated(manifest=rule)], [rule], kubernetes=minor)
    assert program.problems == []
    remarks = [each for each in program.migrated[0].remarks if each.code == "old-version"]
    assert bool(remarks) == (rule["apiVersion"] != f"resource.k8s.io/{version}")
    if "dra.DeviceTaint" in program.text:
        assert f'kubernetes="{minor}"' in program.text
    else:
        assert f"k8s.resource.{version}.DeviceTaintRule(" in program.text


PARENTS = """
import pulumi
import pulumi_kubernetes as k8s
top = pulumi.ComponentResource("shop:index:Svc", "shop")
k8s.core.v1.Namespace("team", metadata={"name": "ml"}, opts=pulumi.ResourceOptions(parent=top))
"""


def test_a_program_of_a_program_keeps_names_of_resources_and_says_what_it_lacks(folder: Path):
    (folder / "mine").mkdir()
    (folder / "mine" / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (folder / "mine" / "__main__.py").write_text(PARENTS)
    done = migrate(folder, "mine", "--to", "components", "--output", "infra")
    assert 'k8s.core.v1.Namespace("team", metadata=' in (folder / "infra" / "__main__.py").read_text()
    assert "its parents, exports and other resources are not in this one" in done.stderr
    assert "parents, exports" not in migrate(folder, *PROGRAM[:-1], "plain").stderr


UNNAMED = """
import pulumi_kubernetes as k8s
k8s.batch.v1.Job(
    "train",
    spec={"template": {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}},
)
"""


def test_a_program_without_names_becomes_one_without_and_files_with_them_are_told(folder: Path):
    (folder / "mine").mkdir()
    (folder / "mine" / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    (folder / "mine" / "__main__.py").write_text(UNNAMED)
    done = migrate(folder, "mine", "--whole-gpus", "--to", "components", "--output", "infra")
    assert done.returncode == 0
    assert "-*" not in (folder / "infra" / "__main__.py").read_text()
    assert "as names" not in done.stderr
    done = migrate(folder, "mine", "--whole-gpus", "--output", "claims")
    assert "no server takes train-* as names: Pulumi makes them up in each run" in done.stderr
    assert "train-*-gpu" not in done.stderr


THERE = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: large, uid: u1}
spec:
  selectors:
    - cel:
        expression: device.driver == "gpu.nvidia.com" && has(device.attributes["gpu.nvidia.com"].type)
          && device.attributes["gpu.nvidia.com"].type == "gpu"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: serve-gpu, namespace: ml, uid: u2}
spec:
  metadata: {}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: ExactCount, count: 1}}]}}
"""


def program_beside(folder: Path, there: str) -> subprocess.CompletedProcess[str]:
    (folder / "cluster.yaml").write_text(there)
    (folder / "other.yaml").write_text(THERE.partition("---")[0].replace(", uid: u1", ""))
    return migrate(folder, *PLAIN, "--to", "components", "--snapshot", "cluster.yaml", "--output", "infra")


def test_components_take_over_what_the_cluster_has_as_it_is(folder: Path):
    done = program_beside(folder, THERE)
    assert done.returncode == 0
    text = (folder / "infra" / "__main__.py").read_text()
    assert "import pulumi\n" in text
    assert 'opts=pulumi.ResourceOptions(import_="ml/serve-gpu")' in text
    assert 'opts=pulumi.ResourceOptions(import_="large")' in text
    assert "with another spec" not in done.stderr


@pytest.mark.parametrize("was", ["count: 1", "name: serve-gpu"])
def test_what_the_cluster_has_not_as_it_is_is_not_taken_over(folder: Path, was: str):
    done = program_beside(folder, THERE.replace(was, f"{was}2").replace("large", "small"))
    assert done.returncode == (1 if was == "count: 1" else 0)
    assert "pulumi.ResourceOptions" not in (folder / "infra" / "__main__.py").read_text()
    told = "ResourceClaimTemplate ml/serve-gpu is in the cluster with another spec"
    assert (told in done.stderr) == (was == "count: 1")
