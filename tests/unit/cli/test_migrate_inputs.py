"""`dra-infra migrate` on programs and kustomizations, whose objects stand in no file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dra_infra.documents.yaml import read_manifests
from dra_infra.program.program_yaml import write_objects
from dra_infra.program.synth import synth
from tests.unit.cli.test_migrate import SERVE, migrate

PROGRAM = """\
import pulumi_kubernetes as k8s

k8s.apps.v1.Deployment(
    "serve",
    metadata={"name": "serve", "namespace": "ml"},
    spec={
        "selector": {"matchLabels": {"app": "serve"}},
        "template": {
            "metadata": {"labels": {"app": "serve"}},
            "spec": {"containers": [{"name": "main", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
        },
    },
)
k8s.core.v1.ConfigMap("settings", metadata={"name": "settings", "namespace": "ml"}, data={"a": "b"})
"""
BUILT = """#!/bin/sh
while IFS= read -r line; do echo "$line"; done < built.txt
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "prog").mkdir()
    (tmp_path / "prog" / "Pulumi.yaml").write_text("name: prog\nruntime: python\n")
    (tmp_path / "prog" / "__main__.py").write_text(PROGRAM)
    (tmp_path / "over").mkdir()
    (tmp_path / "over" / "kustomization.yaml").write_text("resources: [serve.yaml]\n")
    (tmp_path / "over" / "serve.yaml").write_text(SERVE)
    (tmp_path / "over" / "built.txt").write_text(SERVE.replace("serve", "built"))
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "kubectl").write_text(BUILT)
    (tmp_path / "tools" / "kubectl").chmod(0o755)
    return tmp_path


@pytest.fixture
def path(folder: Path) -> str:
    return f"{folder / 'tools'}{os.pathsep}{os.environ['PATH']}"


def test_objects_of_a_program_are_named_by_its_lines_and_written_to_another_folder(folder: Path):
    done = migrate(folder, "prog", "--whole-gpus", "--output", "out")
    assert done.returncode == 0
    assert "prog/__main__.py:3: Deployment ml/serve\n" in done.stderr
    assert "[resource-to-claim]" in done.stderr
    assert "wrote out/prog/objects.yaml\n" in done.stderr
    written = read_manifests((folder / "out" / "prog" / "objects.yaml").read_text())
    assert [each["kind"] for each in written] == ["ConfigMap", "Deployment", "ResourceClaimTemplate"]
    assert migrate(folder, "out", "--whole-gpus", "--check").returncode == 0
    assert (folder / "prog" / "__main__.py").read_text() == PROGRAM


POLICY = """\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec:
  mig: {strategy: none}
  devicePlugin: {config: {name: sharing, default: any}}
"""
SHARING = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing}
data:
  any: |
    version: v1
    sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
"""


def test_the_plugin_is_as_the_input_configures_it(folder: Path):
    (folder / "over" / "policy.yaml").write_text(POLICY)
    (folder / "over" / "sharing.yaml").write_text(SHARING)
    arguments = ("over", "--source", "manifests", "--kubernetes", "1.36")
    done = migrate(folder, *arguments)
    assert "[replica-to-share]" in done.stderr
    assert "nvidia.com/gpu is one of 4 replicas of a whole GPU, as over/policy.yaml says\n" in done.stderr
    whole = migrate(folder, *arguments, "--whole-gpus")
    assert whole.returncode == 1
    told = "it is said to be a whole GPU, and over/policy.yaml says one of 4 replicas of a whole GPU [resource-not-clear]"
    assert told in whole.stderr
    chosen = migrate(folder, *arguments, "--plugin-config", "over/policy.yaml")
    assert "names the ConfigMap 'sharing', which is not in it" in chosen.stderr
    (folder / "plugin.yaml").write_text("version: v1")
    assert "as over/" not in migrate(folder, *arguments, "--plugin-config", "plugin.yaml").stderr


def test_a_configuration_that_nothing_applies_is_named(folder: Path):
    (folder / "over" / "sharing.yaml").write_text(SHARING)
    done = migrate(folder, "over", "--source", "manifests")
    assert (
        "[plugin-not-known]\n    hint: over/sharing.yaml configures the plugin: give it as --plugin-config; or add"
        in done.stderr
    )


def test_objects_of_a_program_become_components(folder: Path):
    done = migrate(folder, "prog", "--whole-gpus", "--to", "components", "--output", "new")
    assert done.returncode == 0
    made = [each.manifest["kind"] for each in synth(folder / "new").objects]
    assert sorted(made) == ["ConfigMap", "Deployment", "ResourceClaimTemplate"]


HIDDEN = """
import pulumi

hidden = pulumi.Output.secret("hunter2")
k8s.core.v1.Secret("s", metadata={"name": "s", "namespace": "ml"}, string_data={"token": hidden})
later = k8s.core.v1.ConfigMap("later", metadata={"name": "later", "namespace": "ml"}, data={"a": "b"})
k8s.core.v1.Pod(
    "p",
    metadata={"name": "p", "namespace": "ml"},
    spec={"containers": [{"name": "m", "image": "x:1", "env": [{"name": "T", "value": hidden}], "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
)
k8s.core.v1.ConfigMap("id", metadata={"name": "id", "namespace": "ml"}, data={"id": later.id})
"""


def test_values_that_are_secret_or_not_known_are_in_no_file(folder: Path):
    with (folder / "prog" / "__main__.py").open("a") as program:
        program.write(HIDDEN)
    done = migrate(folder, "prog", "--whole-gpus", "--output", "out", "--json")
    assert done.returncode == 1
    told = {
        row["name"]: remark["path"]
        for row in json.loads(done.stdout)["objects"]
        for remark in row["remarks"]
        if (remark["code"], remark["outcome"]) == ("value-not-written", "decide")
    }
    assert told == {
        "ConfigMap ml/id": "data.id",
        "Pod ml/p": "spec.containers[0].env[0].value",
        "Secret ml/s": "stringData",
    }
    text = (folder / "out" / "prog" / "objects.yaml").read_text()
    assert "[secret]" not in text
    assert "[unknown]" not in text
    names = [each["metadata"]["name"] for each in read_manifests(text)]
    assert sorted(names) == ["later", "p-gpu", "serve", "serve-gpu", "settings"]


@pytest.mark.parametrize("options", [("--output", "new"), (), ("--check",)])
def test_values_that_are_secret_or_not_known_are_in_no_program(folder: Path, options: tuple[str, ...]):
    with (folder / "prog" / "__main__.py").open("a") as program:
        program.write(HIDDEN)
    done = migrate(folder, "prog", "--whole-gpus", "--to", "components", *options)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("[value-not-written]") == 3
    assert "no program was written, for it would lack objects\n" in done.stderr
    assert not (folder / "new").exists()


def test_a_gate_passes_a_program_with_secrets_and_nothing_to_migrate(folder: Path):
    secret = HIDDEN.partition("later = ")[0]
    (folder / "prog" / "__main__.py").write_text(f"import pulumi_kubernetes as k8s\n{secret}")
    for options in ((), ("--check",), ("--check", "--diff"), ("--format", "json"), ("--to", "bridge")):
        done = migrate(folder, "prog", "--whole-gpus", *options)
        assert (done.returncode, "value-not-written" in done.stdout + done.stderr) == (0, False), options
    written = migrate(folder, "prog", "--whole-gpus", "--output", "out")
    assert (written.returncode, "value-not-written" in written.stderr) == (1, True)


def test_what_synth_prints_of_a_secret_goes_through_no_pipe_and_into_no_file(folder: Path):
    with (folder / "prog" / "__main__.py").open("a") as program:
        program.write(HIDDEN)
    printed = write_objects(synth(folder / "prog").objects)
    assert "[secret]" in printed
    done = migrate(folder, "-", "--whole-gpus", stdin=printed)
    assert done.returncode == 0
    names = [each["metadata"]["name"] for each in read_manifests(done.stdout)]
    assert sorted(names) == ["later", "serve", "serve-gpu", "settings"]
    (folder / "all.yaml").write_text(printed)
    assert migrate(folder, "all.yaml", "--whole-gpus", "--write").returncode == 0
    written = read_manifests((folder / "all.yaml").read_text())
    assert sorted(each["metadata"]["name"] for each in written) == sorted(names)


def test_a_text_that_shows_like_a_marker_is_written_as_any_other(folder: Path):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: '[secret]', b: '[unknown]'}\n"
    done = migrate(folder, "-", "--whole-gpus", stdin=text)
    assert (done.returncode, "value-not-written" in done.stderr) == (0, False)
    (found,) = read_manifests(done.stdout)
    assert found["data"] == {"a": "[secret]", "b": "[unknown]"}


LABELLED = """\
import pulumi
import pulumi_kubernetes as k8s

known = {"secret": pulumi.Output.secret("hunter2"), "later": pulumi.StackReference("o/p/s").get_output("product")}
k8s.core.v1.Pod(
    "p",
    metadata={"name": "p", "namespace": "ml"},
    spec={
        "nodeSelector": {"LABEL": known["VALUE"]},
        "containers": [{"name": "m", "image": "x:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}}],
    },
)
"""


@pytest.mark.parametrize(
    "label", ["nvidia.com/gpu.product", "nvidia.com/gpu.family", "nvidia.com/gpu.memory"]
)
@pytest.mark.parametrize("value", ["secret", "later"])
def test_a_label_that_is_secret_or_not_known_is_in_no_selector(folder: Path, value: str, label: str):
    text = LABELLED.replace("LABEL", label).replace("VALUE", value)
    (folder / "prog" / "__main__.py").write_text(text)
    done = migrate(folder, "prog", "--whole-gpus", "--output", "out")
    assert (done.returncode, "[value-not-written]" in done.stderr) == (1, True)
    written = "".join(each.read_text() for each in folder.glob("out/prog/*"))
    assert not any(each in written for each in ("unknown", "secret", "kind: Pod"))
    made = migrate(folder, "prog", "--whole-gpus", "--to", "components", "--output", "new")
    assert (made.returncode, "[value-not-written]" in made.stderr) == (1, True)
    assert not (folder / "new").exists()


def test_a_program_that_is_named_twice_is_run_once(folder: Path):
    done = migrate(folder, "prog", "./prog/", "--whole-gpus", "--output", "out")
    assert done.returncode == 0
    assert len(read_manifests((folder / "out" / "prog" / "objects.yaml").read_text())) == 3


def test_what_a_program_makes_replaces_no_file_of_the_input(folder: Path):
    (folder / "prog" / "objects.yaml").write_text(SERVE)
    done = migrate(folder, "prog", "prog/objects.yaml", "--whole-gpus", "--output", "out")
    assert done.returncode == 2
    assert (
        "--output: prog/objects.yaml and prog/objects.yaml would both be out/prog/objects.yaml" in done.stderr
    )
    assert not (folder / "out").exists()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "options",
    [
        (".", "--output", "migrated"),
        (".", "../base", "--output", "new/migrated"),
        (".", "--to", "bridge", "--driver", "25.8", "--output", "migrated"),
        (".", "--to", "components", "--output", "infra"),
        (".", "--write"),
    ],
)
def test_three_runs_write_what_the_first_one_wrote(
    tmp_path: Path, command: Callable[..., Any], options: tuple[str, ...]
):
    base = tmp_path / "base"
    (base / "below").mkdir(parents=True)
    (base / "link").symlink_to("below")
    (base / "serve.yaml").write_text(SERVE)
    (base / "below" / "chat.yaml").write_text(SERVE.replace("serve", "chat"))
    run = ("migrate", *options, "--whole-gpus", "--kubernetes", "1.37")
    done = command(*run, cwd=base)
    assert (done.code, "not seen" in done.err) == (0, False)
    first = contents(tmp_path)
    for _ in range(2):
        done = command(*run, cwd=base)
        assert done.code == 0
        assert ("--output writes to it" in done.err) == ("--output" in options)
        assert contents(tmp_path) == first


def test_a_link_below_the_current_folder_is_no_part_of_the_path_of_output(
    tmp_path: Path, command: Callable[..., Any]
):
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("below")
    (tmp_path / "serve.yaml").write_text(SERVE)
    before = contents(tmp_path)
    done = command("migrate", "serve.yaml", "--output", "link/../migrated", "--whole-gpus", cwd=tmp_path)
    assert done.code == 2
    assert "report-not-written" in done.codes
    assert contents(tmp_path) == before


def test_what_lies_in_the_folder_of_output_and_no_run_wrote_is_missing(folder: Path):
    run = ("over", "--source", "manifests", "--whole-gpus", "--output", "over/out", "--json")
    for name in ("over/out/mine.yaml", "over/out/over/objects.yaml"):
        assert migrate(folder, *run).returncode == 0
        data = json.loads(migrate(folder, *run).stdout)
        assert (data["complete"], data["notes"]) == (True, [])
        (folder / name).write_text(SERVE)
        if name.endswith("mine.yaml"):
            data = json.loads(migrate(folder, *run).stdout)
            told = f"folder over/out: --output writes to it, and {name} comes from no file of the input"
            assert (data["complete"], data["notes"]) == (False, [f"not seen: {told}"])
            (folder / name).unlink()


@pytest.mark.parametrize(("options", "way"), [((), True), (("--to", "components"), False)])
def test_a_folder_that_is_read_is_not_written_to(folder: Path, options: tuple[str, ...], *, way: bool):
    before = contents(folder)
    done = migrate(folder, "over", "--source", "manifests", "--whole-gpus", *options, "-o", "./over/")
    assert (done.returncode, "--output: it is the input itself" in done.stderr) == (2, True)
    assert ("take --write" in done.stderr) == way
    assert contents(folder) == before


def test_a_copy_of_an_object_is_told_and_leaves_no_file_without_its_template(folder: Path):
    run = ("--source", "manifests", "--whole-gpus")
    assert migrate(folder, "over", *run, "--output", "over/copy").returncode == 0
    done = migrate(folder, "over", *run, "--to", "components", "--output", "new")
    assert (done.returncode, (folder / "new").exists()) == (1, False)
    assert "no program was written, for it would have objects twice" in done.stderr
    done = migrate(folder, "over", *run, "--write")
    assert (done.returncode, done.stderr.count("[duplicate-object]")) == (0, 1)
    assert (
        "over/copy/over/serve.yaml:1:1: Deployment ml/serve: is written twice, first at over/serve.yaml:1:1;"
        in done.stderr
    )
    kinds = [each["kind"] for each in read_manifests((folder / "over" / "serve.yaml").read_text())]
    assert kinds == ["Deployment", "ResourceClaimTemplate"]


def test_overlays_parts_and_names_of_the_server_are_no_copies(folder: Path):
    for name in ("dev", "prod"):
        overlay = folder / "over" / name
        overlay.mkdir()
        (overlay / "kustomization.yaml").write_text(
            "resources: [serve.yaml]\npatches: [{path: patch.yaml}]\n"
        )
        (overlay / "serve.yaml").write_text(SERVE.replace("name: serve,", "generateName: serve,"))
        (overlay / "quota.yaml").write_text("apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\n")
        (overlay / "patch.yaml").write_text(SERVE)
    run = ("over", "--source", "manifests", "--whole-gpus")
    assert "duplicate-object" not in migrate(folder, *run).stderr
    (folder / "over" / "prod" / "more.yaml").write_text((folder / "over" / "prod" / "quota.yaml").read_text())
    assert migrate(folder, *run).stderr.count("[duplicate-object]") == 1


@pytest.mark.parametrize(
    ("files", "copies"),
    [
        # One that no kustomization has stands beside that of an overlay.
        (("serve.yaml", "dev/serve.yaml"), 1),
        # The first is of the overlay of the third, and the one between them of another.
        (("dev/serve.yaml", "prod/serve.yaml", "dev/more.yaml"), 1),
        (("dev/serve.yaml", "prod/serve.yaml"), 0),
    ],
)
def test_files_are_overlays_where_each_has_a_kustomization_of_its_own(
    tmp_path: Path, command: Callable[..., Any], files: tuple[str, ...], copies: int
):
    for each in ("dev", "prod"):
        (tmp_path / each).mkdir()
        (tmp_path / each / "kustomization.yaml").write_text("resources: []\n")
    for each in files:
        (tmp_path / each).write_text(SERVE)
    done = command("migrate", *files, "--whole-gpus", "--json", cwd=tmp_path)
    assert [each["code"] for each in json.loads(done.out)["problems"]] == ["duplicate-object"] * copies


def test_objects_of_two_groups_and_what_a_kustomization_makes_are_no_copies(folder: Path, path: str):
    knative = "apiVersion: serving.knative.dev/v1\nkind: Service\nmetadata: {name: serve, namespace: ml}\n"
    of_core = knative.replace("serving.knative.dev/v1", "v1")
    written = (folder / "over" / "built.txt").read_text()
    (folder / "all.yaml").write_text(f"{of_core}---\n{knative}---\n{written}")
    done = migrate(folder, "all.yaml", "over", "--whole-gpus", "--json", PATH=path)
    data = json.loads(done.stdout)
    assert [each["name"] for each in data["objects"]] == ["Deployment ml/built"] * 2
    assert data["problems"] == []


def test_a_program_is_no_gate_that_is_open(folder: Path):
    assert migrate(folder, "prog", "--whole-gpus", "--check").returncode == 1
    assert "nothing was written; add --output FOLDER" in migrate(folder, "prog", "--whole-gpus").stderr


def test_problems_of_a_program_stand_at_its_lines_and_fail(folder: Path):
    with (folder / "prog" / "__main__.py").open("a") as program:
        program.write('import dra_infra as dra\n\ndra.GpuClaimTemplate("wrong", count=-1)\n')
    done = migrate(folder, "prog", "--whole-gpus")
    assert done.returncode == 1
    assert 'prog/__main__.py:17: GpuClaimTemplate("wrong").count: ' in done.stderr
    assert "count-below-one" in done.stderr


def test_what_a_program_does_not_show_is_in_the_report(folder: Path):
    with (folder / "prog" / "__main__.py").open("a") as program:
        program.write('k8s.helm.v3.Release("shop", chart="shop")\n')
    done = migrate(folder, "prog", "--whole-gpus", "--json")
    data = json.loads(done.stdout)
    assert not data["complete"]
    assert [each[:9] for each in data["notes"]] == ["not seen:"]
    assert "not seen: " in migrate(folder, "prog", "--whole-gpus").stderr


def test_a_program_that_fails_is_no_success(folder: Path):
    (folder / "prog" / "__main__.py").write_text("1 / 0\n")
    done = migrate(folder, "prog", "--check")
    assert done.returncode == 2
    assert "ZeroDivisionError" in done.stderr


def test_settings_and_stacks_reach_the_program(folder: Path):
    read = 'import pulumi\n\nassert pulumi.Config().get("team") == "ml" and pulumi.get_stack() == "prod"\n'
    (folder / "prog" / "__main__.py").write_text(read + PROGRAM)
    assert migrate(folder, "prog", "--whole-gpus").returncode == 2
    done = migrate(folder, "prog", "--whole-gpus", "--stack", "prod", "--config", "team=ml")
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["prog", "over"])
def test_what_is_made_cannot_be_changed_in_place(folder: Path, name: str):
    done = migrate(folder, "over/serve.yaml", name, "--whole-gpus", "--write")
    assert done.returncode == 2
    assert f"what {name} makes stands in no file that could be changed; take --output FOLDER" in done.stderr
    assert ("--source manifests" in done.stderr) == (name == "over")
    assert (folder / "over" / "serve.yaml").read_text() == SERVE


def test_a_kustomization_is_migrated_as_it_is_built(folder: Path, path: str):
    done = migrate(folder, "over", "--whole-gpus", "--diff", PATH=path)
    assert done.returncode == 0
    assert "over: Deployment ml/built\n" in done.stderr
    assert "--- a/over/objects.yaml\n" in done.stdout
    assert "resourceClaimTemplateName: built-gpu\n" in done.stdout


def test_files_of_a_kustomization_are_changed_where_the_user_says_manifests(folder: Path, path: str):
    done = migrate(folder, "over", "--whole-gpus", "--source", "manifests", "--write", PATH=path)
    assert done.returncode == 0
    assert "serve-gpu" in (folder / "over" / "serve.yaml").read_text()


def test_a_chart_is_to_be_rendered_first(folder: Path):
    (folder / "chart").mkdir()
    (folder / "chart" / "Chart.yaml").write_text("name: chart\n")
    done = migrate(folder, "chart")
    assert done.returncode == 2
    assert "no-project" in done.stderr
    assert "helm template" in done.stderr


def test_a_folder_of_manifests_below_a_program_is_read_as_manifests(folder: Path):
    (folder / "prog" / "manifests" / "team").mkdir(parents=True)
    (folder / "prog" / "manifests" / "team" / "serve.yaml").write_text(SERVE)
    done = migrate(folder, "prog/manifests", "--whole-gpus", "--write")
    assert done.returncode == 0
    assert "wrote prog/manifests/team/serve.yaml\n" in done.stderr


def test_a_list_of_a_cluster_comes_out_as_its_owners_alone(folder: Path):
    def item(kind: str, name: str, owner: str) -> str:
        lines = SERVE.replace("kind: Deployment", f"kind: {kind}").replace("name: serve,", f"name: {name},")
        metadata = f"namespace: ml, uid: u-{name}, resourceVersion: '7'{owner}}}"
        lines = lines.replace("namespace: ml}", metadata, 1)
        return "- " + "\n  ".join(lines.splitlines()) + "\n"

    owner = ", ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: serve, uid: u-serve, controller: true}]"
    cluster = "apiVersion: v1\nkind: List\nitems:\n" + item("ReplicaSet", "serve-1", owner)
    cluster += item("Deployment", "serve", "")
    done = migrate(folder, "-", "--whole-gpus", stdin=cluster)
    assert done.returncode == 0
    assert done.stderr.count("[owned-object]") == 1
    written = read_manifests(done.stdout)
    assert [each["kind"] for each in written] == ["Deployment", "ResourceClaimTemplate"]
    assert written[0]["metadata"] == {"name": "serve", "namespace": "ml"}
    plan = ("--fleet", "hgx-h100 x 2", "--plan", "--kubernetes", "1.34")
    assert (
        "ReplicaSet"
        not in migrate(folder, "-", "--whole-gpus", *plan, stdin=cluster).stderr.partition("Plan of")[2]
    )
