"""`dra-infra synth --output FOLDER/`: a file for each object, and nothing replaced that it did not write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra.documents.yaml import read_manifests

PROGRAM = """
import dra_infra as dra
import pulumi_kubernetes as k8s

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
trainer = dra.GpuClaimTemplate("trainer", device_class=h100, count=4, namespace="ml")
spec = {"restartPolicy": "Never", "containers": [{"name": "train", "image": "registry.example/train:1"}]}
k8s.batch.v1.Job(
    "train",
    metadata={"name": "train", "namespace": "ml"},
    spec={"template": {"spec": trainer.attach(spec)}},
)
"""
RECORD = ".dra-infra-files"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM)
    return tmp_path


def files_of(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def edit(project: Path, old: str, new: str) -> None:
    file = project / "__main__.py"
    # With another size, as Python runs what it has compiled of a file of the same second and size.
    file.write_text(f"{file.read_text().replace(old, new)}# edited\n")


def test_each_object_has_a_file_of_its_own_and_a_second_run_changes_nothing(
    project: Path, command: Callable[..., Any]
):
    first = command("synth", ".", "--output", "deploy/", cwd=project)
    assert (first.code, first.out) == (0, "")
    files = files_of(project / "deploy")
    template = next(name for name in files if "template" in name)
    assert template.startswith("ml/resourceclaimtemplate-trainer-")
    assert sorted(files) == sorted(
        [RECORD, "deviceclass-h100.yaml", "kustomization.yaml", "ml/job-train.yaml", template]
    )
    assert yaml.safe_load(files["kustomization.yaml"])["resources"] == [
        "deviceclass-h100.yaml",
        "ml/job-train.yaml",
        template,
    ]
    printed = {each["kind"]: each for each in read_manifests(command("synth", ".", cwd=project).out)}
    assert yaml.safe_load(files["ml/job-train.yaml"]) == printed["Job"]
    times = {path: path.stat().st_mtime_ns for path in (project / "deploy").rglob("*")}

    second = command("synth", ".", "--output", "deploy", cwd=project)
    assert second.code == 0
    assert "4 files in deploy/: 0 written, 0 removed, 4 unchanged" in second.err
    assert {path: path.stat().st_mtime_ns for path in (project / "deploy").rglob("*")} == times


def test_files_of_deleted_objects_go_and_files_of_others_stay(project: Path, command: Callable[..., Any]):
    command("synth", ".", "--output", "deploy/", cwd=project)
    (project / "deploy" / "notes.yaml").write_text("kind: Mine\n")
    before = files_of(project / "deploy")
    edit(project, "count=4", "count=2")
    answer = command("synth", ".", "--output", "deploy/", cwd=project)
    after = files_of(project / "deploy")
    assert answer.code == 0
    (gone,), (new,) = before.keys() - after.keys(), after.keys() - before.keys()
    assert gone.startswith("ml/resourceclaimtemplate-trainer-")
    assert new.startswith("ml/resourceclaimtemplate-trainer-")
    assert f"removed deploy/{gone}" in answer.err
    assert after["notes.yaml"] == "kind: Mine\n"
    (project / "__main__.py").write_text("import dra_infra as dra\ndra.GpuDeviceClass('h100')\n")
    command("synth", ".", "--output", "deploy/", cwd=project)
    assert not (project / "deploy" / "ml").exists()


@pytest.mark.parametrize("name", ["deviceclass-h100.yaml", "ml/job-train.yaml", "kustomization.yaml"])
@pytest.mark.parametrize("is_deleted", [False, True])
def test_an_edited_file_is_neither_replaced_nor_removed_and_nothing_is_written(
    project: Path, command: Callable[..., Any], name: str, *, is_deleted: bool
):
    command("synth", ".", "--output", "deploy/", cwd=project)
    file = project / "deploy" / name
    file.write_text(f"{file.read_text()}# by hand\n")
    if is_deleted:
        (project / "__main__.py").write_text("import dra_infra as dra\ndra.GpuDeviceClass('other')\n")
    else:
        edit(project, "count=4", "count=2")
        edit(project, "H100", "H200")
        edit(project, "train:1", "train:2")
    before = files_of(project / "deploy")
    answer = command("synth", ".", "--output", "deploy/", cwd=project)
    assert answer.code == 2
    assert f"deploy/{name}: --output: it was edited" in answer.err
    assert "synth-file-kept" in answer.codes
    assert answer.err.count("--output:") == 1
    assert files_of(project / "deploy") == before


def test_line_ends_of_a_checkout_are_no_edit(project: Path, command: Callable[..., Any]):
    command("synth", ".", "--output", "deploy/", cwd=project)
    for file in (project / "deploy").rglob("*.yaml"):
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    edit(project, "count=4", "count=2")
    assert command("synth", ".", "--output", "deploy/", cwd=project).code == 0


@pytest.mark.parametrize("name", ["deviceclass-h100.yaml", "kustomization.yaml"])
def test_a_file_that_synth_did_not_write_is_kept(project: Path, command: Callable[..., Any], name: str):
    (project / "deploy").mkdir()
    (project / "deploy" / name).write_text("resources: [mine.yaml]\n")
    answer = command("synth", ".", "--output", "deploy", cwd=project)
    assert (answer.code, "did not write" in answer.err) == (2, True)
    assert files_of(project / "deploy") == {name: "resources: [mine.yaml]\n"}


def test_without_its_record_files_that_are_right_are_taken_over(project: Path, command: Callable[..., Any]):
    command("synth", ".", "--output", "deploy/", cwd=project)
    before = files_of(project / "deploy")
    (project / "deploy" / RECORD).unlink()
    assert command("synth", ".", "--output", "deploy/", cwd=project).code == 0
    assert files_of(project / "deploy") == before


@pytest.mark.parametrize(
    "record",
    [
        "<<<<<<< HEAD\n{}",
        "[]",
        '{"format": "dra-infra/files/v1", "files": {"../__main__.py": "DIGEST"}}',
        '{"format": "dra-infra/files/v1", "files": {"/etc/a-b.yaml": "DIGEST"}}',
        '{"format": "dra-infra/files/v1", "files": {"../x/deviceclass-h100.yaml": "DIGEST"}}',
        '{"format": "dra-infra/files/v1", "files": {"deviceclass-h100.yaml": 1}}',
        "[" * 100_000,
    ],
)
def test_a_record_that_synth_did_not_write_removes_nothing(
    project: Path, command: Callable[..., Any], record: str
):
    (project / "deploy").mkdir()
    digest = hashlib.sha256((project / "__main__.py").read_bytes()).hexdigest()
    (project / "deploy" / RECORD).write_text(record.replace("DIGEST", digest))
    answer = command("synth", ".", "--output", "deploy/", cwd=project)
    assert (answer.code, "[synth-file-kept]" in answer.err) == (2, True)
    assert (project / "__main__.py").read_text() == PROGRAM
    assert [*files_of(project / "deploy")] == [RECORD]


def test_no_link_in_the_folder_is_followed(project: Path, command: Callable[..., Any]):
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    (project / "deploy").mkdir()
    (project / "deploy" / "ml").symlink_to(elsewhere)
    answer = command("synth", ".", "--output", "deploy/", cwd=project)
    assert (answer.code, "[report-not-written]" in answer.err) == (2, True)
    assert not any(elsewhere.iterdir())
    (project / "deploy" / "kustomization.yaml").unlink(missing_ok=True)
    (project / "deploy" / "kustomization.yaml").symlink_to(project / "__main__.py")
    assert command("synth", ".", "--output", "deploy/", cwd=project).code == 2
    assert (project / "__main__.py").read_text() == PROGRAM


SECRETS = """
import os
import pulumi
import pulumi_kubernetes as k8s

k8s.core.v1.Secret("marked", metadata={"name": "marked"}, string_data={"token": pulumi.Output.secret("hunter2")})
k8s.core.v1.Secret("plain", metadata={"name": "plain"}, data={"token": "aHVudGVyMg=="})
k8s.core.v1.ConfigMap("env", metadata={"name": "env"}, data={"url": "https://u:" + os.environ["APP_PASSWORD"] + "@db"})
k8s.batch.v1.Job("new", metadata={"generateName": "new-"}, spec={"template": {"spec": {"containers": []}}})
k8s.core.v1.ConfigMap("fine", metadata={"name": "fine"}, data={"a": "b"})
k8s.rbac.v1.ClusterRole("odd", metadata={"name": "system:Node_x"}, rules=[])
"""


def test_secrets_and_objects_without_a_name_have_no_file(
    project: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    (project / "__main__.py").write_text(SECRETS)
    monkeypatch.setenv("APP_PASSWORD", "hunter2-hunter2")
    answer = command("synth", ".", "--output", "deploy/", cwd=project)
    assert answer.code == 1
    files = files_of(project / "deploy")
    assert sorted(files) == [
        RECORD,
        "clusterrole-system_3a_4eode_5fx.yaml",
        "configmap-fine.yaml",
        "kustomization.yaml",
    ], answer.err
    assert not any("hunter2" in text or "aHVudGVyMg" in text for text in files.values())
    assert (answer.codes, answer.err.count("no file is written")) == ({"object-not-written"}, 4)


def test_an_object_that_cannot_be_written_any_more_keeps_its_file(project: Path, command: Callable[..., Any]):
    program = 'import pulumi\nimport pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap("a", metadata={"name": "a"}, data={"k": VALUE})\n'
    (project / "__main__.py").write_text(program.replace("VALUE", '"v"'))
    command("synth", ".", "--output", "deploy/", cwd=project)
    before = files_of(project / "deploy")
    (project / "__main__.py").write_text(program.replace("VALUE", 'pulumi.Output.secret("v")'))
    assert command("synth", ".", "--output", "deploy/", cwd=project).code == 1
    # The controller would delete an object that the kustomization lists no more.
    assert files_of(project / "deploy") == before


def test_a_program_with_errors_writes_nothing(project: Path, command: Callable[..., Any]):
    edit(project, "count=4", "count=0")
    assert command("synth", ".", "--output", "deploy/", cwd=project).code == 1
    assert not (project / "deploy").exists()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--output", "objects.yaml"), "is no folder. For a new one write objects.yaml/"),
        (("--output", "__main__.py"), "is no folder."),
        (("--output", ""), "is no folder."),
        (("--output", "x/", "--gitops", "fleet"), "is none of argocd, flux"),
    ],
)
def test_options_that_name_no_folder_are_refused(
    project: Path, command: Callable[..., Any], arguments: tuple[str, ...], text: str
):
    answer = command("synth", ".", *arguments, cwd=project)
    assert (answer.code, text in answer.err) == (2, True)
    assert (
        sorted(path.name for path in project.iterdir() if path.suffix != ".pyc")
        == [
            "Pulumi.yaml",
            "__main__.py",
        ]
        or not (project / "x").exists()
    )


@pytest.mark.parametrize(
    ("controller", "key", "value"),
    [
        ("argocd", "argocd.argoproj.io/sync-options", "PruneLast=true"),
        ("flux", "kustomize.toolkit.fluxcd.io/prune", "disabled"),
    ],
)
def test_what_pods_need_is_annotated_for_the_controller_and_keeps_its_name(
    project: Path, command: Callable[..., Any], controller: str, key: str, value: str
):
    command("synth", ".", "--output", "plain/", cwd=project)
    assert command("synth", ".", "--output", "deploy/", "--gitops", controller, cwd=project).code == 0
    plain, files = files_of(project / "plain"), files_of(project / "deploy")
    assert plain.keys() == files.keys()
    for name in files.keys() - {RECORD, "kustomization.yaml"}:
        annotations = yaml.safe_load(files[name])["metadata"].get("annotations", {})
        assert (annotations.get(key) == value) == (yaml.safe_load(files[name])["kind"] != "Job"), name
    assert files["ml/job-train.yaml"] == plain["ml/job-train.yaml"]


def test_printed_objects_are_annotated_alike(project: Path, command: Callable[..., Any]):
    command("synth", ".", "--output", "deploy/", "--gitops", "argocd", cwd=project)
    printed = read_manifests(command("synth", ".", "--gitops", "argocd", cwd=project).out)
    files = [yaml.safe_load(text) for text in files_of(project / "deploy").values()]
    assert [each for each in printed if each not in files] == []
    assert sum("annotations" in each["metadata"] for each in printed) == 2


def test_options_of_the_user_for_pruning_stay(project: Path, command: Callable[..., Any]):
    edit(
        project,
        'dra.GpuDeviceClass("h100",',
        'dra.GpuDeviceClass("h100", annotations={"argocd.argoproj.io/sync-options": "Prune=false"},',
    )
    edit(
        project,
        'dra.GpuClaimTemplate("trainer",',
        'dra.GpuClaimTemplate("trainer", annotations={"argocd.argoproj.io/sync-options": "ServerSideApply=true"},',
    )
    command("synth", ".", "--output", "deploy/", "--gitops", "argocd", cwd=project)
    found = {
        each["kind"]: each["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-options")
        for text in files_of(project / "deploy").values()
        if "metadata" in (each := yaml.safe_load(text))
    }
    assert found["DeviceClass"] == "Prune=false"
    assert found["ResourceClaimTemplate"] == "ServerSideApply=true,PruneLast=true"


def test_json_goes_to_standard_output_beside_the_folder(project: Path, command: Callable[..., Any]):
    answer = command("synth", ".", "--json", "--output", "deploy/", cwd=project)
    assert (answer.code, len(json.loads(answer.out)["objects"])) == (0, 3)
    assert (project / "deploy" / "kustomization.yaml").is_file()
