"""`dra-infra migrate` on files: what it says, what it writes, and what it leaves alone."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from dra_infra import __version__
from dra_infra.catalog import load_fleet
from dra_infra.cli.written_files import Folder
from dra_infra.documents.yaml import read_manifests
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.process import EXIT_INTERRUPTED
from tests.support.pages.documents import ROOT
from tests.support.warm_commands import warm

SERVE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec:
  selector: {matchLabels: {app: serve}}
  template:
    metadata: {labels: {app: serve}}
    spec:
      containers:
      # what serves
      - name: main
        image: registry.example.com/serve:1  # pinned
        resources:
          limits:
            nvidia.com/gpu: 1
          requests: {cpu: "4"}
"""
OTHER = "# nothing of ours\napiVersion: v1\nkind: Namespace\nmetadata:   {name: ml}\n"


def migrate(
    folder: Path, *arguments: str, stdin: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [warm().command, "migrate", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "serve.yaml").write_text(SERVE)
    (tmp_path / "other.yaml").write_text(OTHER)
    return tmp_path


def test_a_document_that_something_else_than_yaml_follows_is_told_and_stays(folder: Path):
    broken = f"{SERVE}%YAML 1.1\n  nothing: at all\n"
    (folder / "serve.yaml").write_text(broken)
    done = migrate(folder, "--whole-gpus", "--write", "serve.yaml")
    assert done.returncode != 0
    assert "serve.yaml:1: document: it stays as it is" in done.stderr
    assert "document-not-rewritten" in done.stderr
    assert (folder / "serve.yaml").read_text() == broken


@pytest.mark.parametrize("options", [(), ("--check",)])
def test_a_program_among_manifests_does_not_pass_silently(folder: Path, options: tuple[str, ...]):
    (folder / "prog").mkdir()
    (folder / "prog" / "Pulumi.yaml").write_text("name: prog\nruntime: python\n")
    (folder / "prog" / "__main__.py").write_text("")
    done = migrate(folder, ".", *options)
    assert done.returncode == 2
    assert "prog/Pulumi.yaml:2:1: runtime: " in done.stderr
    assert "program-not-read" in done.stderr


def test_patches_of_a_kustomization_stay_beside_the_base_that_is_written(folder: Path):
    patch = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: serve, namespace: ml}
spec: {template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 4}}}]}}}
"""
    kustomization = "resources: [serve.yaml]\npatches:\n- path: more.yaml\n- path: ops.yaml\n"
    operations = "- {op: remove, path: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu}\n"
    files = {"more.yaml": patch, "ops.yaml": operations, "kustomization.yaml": kustomization}
    for name, text in files.items():
        (folder / name).write_text(text)
    done = migrate(folder, ".", "--whole-gpus", "--source", "manifests", "--write")
    assert done.returncode == 1
    assert done.stderr.count("[patch-not-rewritten]") == 2
    assert "yaml-not-an-object" not in done.stderr
    assert {name: (folder / name).read_text() for name in files} == files
    assert "serve-gpu" in (folder / "serve.yaml").read_text()
    placed = migrate(folder, ".", "--whole-gpus", "--source", "manifests", "--fleet", "hgx-h100 x 1")
    assert "1 of 1 workload fits" in placed.stderr


def test_no_program_is_written_of_parts_and_settings(folder: Path):
    (folder / "kustomization.yaml").write_text("resources: [serve.yaml]\n")
    (folder / "values.yaml").write_text("replicas: 1\n")
    done = migrate(folder, ".", "--whole-gpus", "--source", "manifests", "--to", "components")
    assert done.returncode == 0
    assert "k8s.apps.v1.Deployment(" in done.stdout


def test_files_without_any_object_are_no_migration(folder: Path):
    (folder / "values").mkdir()
    (folder / "values" / "values.yaml").write_text("replicas: 1\n")
    done = migrate(folder, "values", "--check")
    assert done.returncode == 2
    assert "nothing-checked" in done.stderr


def test_the_page_shows_what_is_printed(folder: Path):
    done = migrate(folder, "serve.yaml", "--whole-gpus", "--diff")
    printed = done.stderr.replace(f"dra-infra {__version__}", "dra-infra X.Y.Z")
    shown = "$ dra-infra migrate serve.yaml --whole-gpus --diff\n" + printed + done.stdout
    page = ROOT / "docs" / "migration.md"
    before, begin, rest = page.read_text().partition(
        "<!-- made by: tests/unit/cli/test_migrate.py -->\n\n```console\n"
    )
    end = rest.index("```\n")
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        page.write_text(f"{before}{begin}{shown}{rest[end:]}")
    assert rest[:end] == shown, "run `make golden`, and read what it wrote"
    assert done.returncode == 0


def test_the_page_shows_a_plan_without_its_details(tmp_path: Path):
    for name in ("chat", "train"):
        text = SERVE.replace("serve", name).replace("spec:\n  sel", "spec:\n  replicas: 2\n  sel")
        (tmp_path / f"{name}.yaml").write_text(text.replace("gpu: 1", "gpu: 8"))
    command = '. --whole-gpus --fleet "hgx-h100 x 4" --kubernetes 1.34 --plan'
    done = migrate(tmp_path, *shlex.split(command))
    lines = done.stderr.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("Plan"))
    told = [line for line in lines[start:-1] if not line.startswith("    ")]
    shown = "\n".join([f"$ dra-infra migrate {command}", "...", *told, ""])
    page = ROOT / "docs" / "migration.md"
    # The second block of the page that is made here.
    before, begin, rest = page.read_text().rpartition(
        "<!-- made by: tests/unit/cli/test_migrate.py -->\n\n```console\n"
    )
    end = rest.index("```\n")
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        page.write_text(f"{before}{begin}{shown}{rest[end:]}")
    assert rest[:end] == shown, "run `make golden`, and read what it wrote"
    assert done.returncode == 0


def test_nothing_is_written_unless_asked_for(folder: Path):
    done = migrate(folder, ".", "--whole-gpus")
    assert done.returncode == 0
    assert done.stdout == ""
    assert "nothing was written" in done.stderr
    assert (folder / "serve.yaml").read_text() == SERVE


def test_what_somebody_has_to_decide_ends_with_one(folder: Path):
    done = migrate(folder, ".", "--json")
    assert done.returncode == 1
    (entry,) = json.loads(done.stdout)["objects"]
    assert [each["code"] for each in entry["remarks"]] == ["plugin-not-known"]
    assert "--context NAME" in entry["remarks"][0]["hint"]
    assert entry["changed"] is False


def test_a_written_file_is_kept_beside_and_migrating_again_changes_nothing(folder: Path):
    assert migrate(folder, ".", "--whole-gpus", "--write").returncode == 0
    assert (folder / "serve.yaml.orig").read_text() == SERVE
    assert (folder / "other.yaml").read_text() == OTHER
    assert not (folder / "other.yaml.orig").exists()
    written = (folder / "serve.yaml").read_text()
    assert "      # what serves\n" in written
    assert "image: registry.example.com/serve:1  # pinned\n" in written
    assert [each["kind"] for each in read_manifests(written)] == ["Deployment", "ResourceClaimTemplate"]
    again = migrate(folder, ".", "--whole-gpus", "--write", "--check")
    assert again.returncode == 0
    assert "no objects migrated" in again.stderr
    assert (folder / "serve.yaml").read_text() == written
    assert (folder / "serve.yaml.orig").read_text() == SERVE


@pytest.mark.parametrize(
    "paths",
    [
        ("one/serve.yaml", "./one/serve.yaml"),
        ("one", "one/serve.yaml"),
        ("one/serve.yaml", "."),
        ("link", "one"),
        ("one/alias.yaml", "one/serve.yaml"),
        ("one/alias.yaml", "one"),
    ],
)
def test_a_file_that_is_named_twice_is_read_and_written_once(tmp_path: Path, paths: tuple[str, ...]):
    file = tmp_path / "one" / "serve.yaml"
    file.parent.mkdir()
    file.write_text(SERVE)
    (tmp_path / "one" / "alias.yaml").symlink_to("serve.yaml")
    (tmp_path / "link").symlink_to("one")
    done = migrate(tmp_path, *paths, "--whole-gpus", "--write")
    assert done.returncode == 0
    assert "1 object migrated" in done.stderr
    assert [each["kind"] for each in read_manifests(file.read_text())] == [
        "Deployment",
        "ResourceClaimTemplate",
    ]
    assert (tmp_path / "one" / "alias.yaml").is_symlink()


def test_standard_input_that_is_named_twice_is_read_once(folder: Path):
    done = migrate(folder, "-", "-", "--whole-gpus", stdin=SERVE)
    assert done.returncode == 0
    assert len(read_manifests(done.stdout)) == 2


def test_a_written_file_and_the_kept_one_have_the_mode_that_it_had(folder: Path):
    file = folder / "serve.yaml"
    for mode in (0o600, 0o664):
        file.write_text(SERVE)
        file.chmod(mode)
        (folder / "serve.yaml.orig").unlink(missing_ok=True)
        assert migrate(folder, "serve.yaml", "--whole-gpus", "--write", "--check").returncode == 1
        assert file.stat().st_mode & 0o777 == mode
        assert (folder / "serve.yaml.orig").stat().st_mode & 0o777 == mode
    file.write_text(SERVE)
    file.chmod(0o600)
    assert migrate(folder, "serve.yaml", "--whole-gpus", "--output", "new").returncode == 0
    assert (folder / "new" / "serve.yaml").stat().st_mode & 0o777 == 0o600


def test_every_text_that_is_replaced_is_kept(folder: Path):
    texts = [SERVE, SERVE.replace("serve:1", "serve:2"), SERVE.replace("serve:1", "serve:3")]
    for text in (*texts, texts[1]):
        (folder / "serve.yaml").write_text(text)
        assert migrate(folder, "serve.yaml", "--whole-gpus", "--write").returncode == 0
    names = ["serve.yaml.orig", "serve.yaml.orig.2", "serve.yaml.orig.3"]
    assert sorted(each.name for each in folder.glob("*.orig*")) == names
    assert [(folder / name).read_text() for name in names] == texts


def test_a_link_in_the_place_of_the_kept_file_keeps_nothing_and_stays(folder: Path):
    (folder / "serve.yaml.orig").symlink_to("serve.yaml")
    assert migrate(folder, "serve.yaml", "--whole-gpus", "--write").returncode == 0
    assert (folder / "serve.yaml.orig").is_symlink()
    assert (folder / "serve.yaml.orig.2").read_text() == SERVE


class Stopping(contextlib.AbstractContextManager[Any]):
    """A stream whose writes are somebody else's."""

    def __init__(self, stream: Any, write: Any) -> None:
        self._stream = stream
        self.write = write

    def __exit__(self, *_: object) -> None:
        self._stream.close()


@pytest.mark.parametrize("step", ["open", "write", "replace"])
@pytest.mark.parametrize("number", range(4))
def test_an_interruption_leaves_each_file_whole_and_a_second_run_ends_the_work(
    folder: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, number: int, step: str
):
    (folder / "other.yaml").write_text(SERVE.replace("serve", "chat"))
    before = {each.name: each.read_text() for each in folder.iterdir()}
    calls = itertools.count()
    opened = os.fdopen
    rename = Folder.rename

    def open_half(descriptor: int, *arguments: Any) -> Any:
        if step == "replace" or arguments != ("wb",) or next(calls) != number:
            return opened(descriptor, *arguments)
        if step == "open":
            os.close(descriptor)
            raise KeyboardInterrupt
        stream = opened(descriptor, *arguments)
        whole = stream.write

        def write_half(content: bytes) -> int:
            whole(content[: len(content) // 2])
            raise KeyboardInterrupt

        return Stopping(stream, write_half)

    def replace(self: Folder, name: str, other: str) -> None:
        if step == "replace" and next(calls) == number:
            raise KeyboardInterrupt
        rename(self, name, other)

    with monkeypatch.context() as patched:
        patched.setattr("dra_infra.cli.written_files.os.fdopen", open_half)
        patched.setattr(Folder, "rename", replace)
        assert command("migrate", ".", "--whole-gpus", "--write", cwd=folder).code == EXIT_INTERRUPTED
    left = {each.name: each.read_text() for each in folder.iterdir()}
    assert left.keys() <= {*before, *(f"{name}.orig" for name in before)}
    assert command("migrate", ".", "--whole-gpus", "--write", cwd=folder).code == 0
    after = {each.name: each.read_text() for each in folder.iterdir()}
    assert after.keys() == {*before, *(f"{name}.orig" for name in before)}
    for name, text in before.items():
        assert after[f"{name}.orig"] == text
        assert left[name] in (text, after[name]) != (text, text)
        assert left.get(f"{name}.orig", text) == text
    assert [left[name] == after[name] for name in sorted(before)].count(True) == number // 2


def test_a_check_fails_where_anything_is_left(folder: Path):
    assert migrate(folder, ".", "--whole-gpus", "--check").returncode == 1
    assert migrate(folder, "other.yaml", "--whole-gpus", "--check").returncode == 0


def test_another_folder_gets_the_changed_files_and_no_path_leads_out_of_it(folder: Path):
    below = folder / "a" / "b"
    below.mkdir(parents=True)
    done = migrate(below, "../../serve.yaml", str(folder / "other.yaml"), "--whole-gpus", "--output", "new")
    assert done.returncode == 0
    assert [each.relative_to(below).as_posix() for each in below.rglob("*") if each.is_file()] == [
        "new/serve.yaml"
    ]
    assert (folder / "serve.yaml").read_text() == SERVE


def test_two_files_that_would_be_one_in_another_folder_are_refused_before_any_is_written(folder: Path):
    (folder / "below").mkdir()
    (folder / "below" / "serve.yaml").write_text(SERVE.replace("serve", "chat"))
    done = migrate(folder / "below", "../serve.yaml", "serve.yaml", "--whole-gpus", "--output", "new")
    assert done.returncode == 2
    assert "--output: ../serve.yaml and serve.yaml would both be new/serve.yaml" in done.stderr
    assert "[report-not-written]" in done.stderr
    assert not (folder / "below" / "new").exists()


def test_standard_input_is_objects_in_another_folder(folder: Path):
    assert migrate(folder, "-", "--whole-gpus", "--output", "new", stdin=SERVE).returncode == 0
    assert [each.name for each in (folder / "new").iterdir()] == ["objects.yaml"]


def test_a_link_stays_and_what_it_leads_to_in_the_input_is_changed_and_kept(folder: Path):
    inside = folder / "inside"
    inside.mkdir()
    (folder / "serve.yaml").rename(inside / "text")
    (inside / "link.yaml").symlink_to("text")
    (folder / "link").symlink_to("inside")
    for _ in range(3):
        assert migrate(folder, "link", "--whole-gpus", "--write").returncode == 0
    assert (inside / "link.yaml").readlink() == Path("text")
    assert len(read_manifests((inside / "text").read_text())) == 2
    assert (inside / "text.orig").read_text() == SERVE
    assert sorted(each.name for each in inside.iterdir()) == ["link.yaml", "text", "text.orig"]


@pytest.mark.parametrize("path", ["inside", "inside/link.yaml"])
def test_a_link_that_leads_out_of_the_input_is_refused_before_anything_is_written(folder: Path, path: str):
    inside = folder / "inside"
    inside.mkdir()
    (inside / "a.yaml").write_text(SERVE.replace("serve", "chat"))
    (inside / "link.yaml").symlink_to(folder / "serve.yaml")
    done = migrate(folder, path, "--whole-gpus", "--write")
    assert (done.returncode, "[report-not-written]" in done.stderr) == (2, True)
    assert "--write: inside/link.yaml is a link that leads out of the input, to " in done.stderr
    assert (folder / "serve.yaml").read_text() == SERVE
    assert sorted(each.name for each in inside.iterdir()) == ["a.yaml", "link.yaml"]
    assert migrate(folder, path, "--whole-gpus", "--output", "new").returncode == 0
    assert (folder / "new" / "inside" / "link.yaml").is_file()


@pytest.mark.parametrize(
    ("paths", "output"),
    [
        (("below/serve.yaml",), "."),
        (("below",), "."),
        ((".", "serve.yaml"), "below"),
        (("serve.yaml",), "links"),
    ],
)
def test_another_folder_never_gets_a_file_in_the_place_of_one_of_the_input(
    folder: Path, paths: tuple[str, ...], output: str
):
    (folder / "below").mkdir()
    (folder / "below" / "serve.yaml").write_text(SERVE.replace("serve:1", "serve:2"))
    (folder / "links").mkdir()
    (folder / "links" / "serve.yaml").symlink_to("../other.yaml")
    if paths[0] == ".":
        paths = (*paths, "below/serve.yaml")
    before = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    done = migrate(folder, *paths, "--whole-gpus", "--output", output)
    assert (done.returncode, "serve.yaml is " in done.stderr) == (2, True)
    assert "and is not replaced [report-not-written]\n  hint: name another folder" in done.stderr
    assert {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()} == before


def test_what_another_folder_had_is_kept_where_it_differs(folder: Path):
    new = folder / "new"
    for text in (SERVE, SERVE.replace("serve:1", "serve:2"), SERVE.replace("serve:1", "serve:2")):
        (folder / "serve.yaml").write_text(text)
        done = migrate(folder, "serve.yaml", "--whole-gpus", "--output", "new")
        assert done.returncode == 0
    assert "new/serve.yaml is there already\n" in done.stderr
    assert sorted(each.name for each in new.iterdir()) == ["serve.yaml", "serve.yaml.orig"]
    assert "serve:1 " in (new / "serve.yaml.orig").read_text()
    assert "serve:2 " in (new / "serve.yaml").read_text()


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "make room there"), (errno.EACCES, "name a folder that may be")]
)
def test_what_cannot_be_written_leaves_no_folder_and_says_what_to_do(
    folder: Path, command: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, number: int, hint: str
):
    def refuse(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    (folder / "there").mkdir()
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(Folder, "put", refuse)
    done = command("migrate", "serve.yaml", "--whole-gpus", "--output", "there/a/b", cwd=folder)
    assert (done.code, "report-not-written" in done.codes) == (2, True)
    assert f"there/a/b/serve.yaml cannot be written: {os.strerror(number)}" in done.err
    assert f"  hint: {hint}" in done.err
    assert sorted(folder.rglob("*")) == before


def test_objects_that_stay_as_they_are_are_known_to_the_others(folder: Path):
    (folder / "class.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: h100}\nspec: {}\n---\n"
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaimTemplate\nmetadata: {name: t, namespace: ml}\n"
        "spec: {spec: {devices: {requests: [{name: a, deviceClassName: h100}]}}}\n"
    )
    done = migrate(folder, "class.yaml", "--format", "json")
    assert done.returncode == 0
    (changed,) = json.loads(done.stdout)["objects"]
    assert changed["name"] == "ResourceClaimTemplate ml/t"
    assert changed["problems"] == []


@pytest.mark.parametrize("to", ["claims", "bridge"])
def test_a_gate_tells_what_servers_refuse_of_objects_that_stay_as_they_are(folder: Path, to: str):
    (folder / "broken.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: art, namespace: ml}\n"
        "spec: {deviceClassName: gpu.nvidia.com, count: 2}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ml}\n"
        "spec: {containers: [{name: a, image: x, resources: {claims: [{name: g}]}}]}\n---\n"
        # A version that not every minor has is no matter of a migration.
        "apiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: t}\n"
        "spec: {deviceSelector: {driver: gpu.nvidia.com}, taint: {key: a/b, effect: NoSchedule}}\n"
    )
    done = migrate(folder, "broken.yaml", "--check", "--to", to, "--format", "json")
    assert done.returncode == 1
    told = {
        (each["path"], each["code"]) for of in json.loads(done.stdout)["objects"] for each in of["problems"]
    }
    assert told == {
        ("spec.deviceClassName", "unknown-field"),
        ("spec.count", "unknown-field"),
        ("spec.containers[0].resources.claims[0]", "claim-not-in-pod"),
    }


def test_what_was_to_have_quotes_fails_and_is_told(folder: Path, command: Callable[..., Any]):
    text = SERVE.replace(
        "metadata: {labels: {app: serve}}", "metadata: {labels: {app: serve, version: 1.10}}"
    )
    (folder / "serve.yaml").write_text(
        text.replace("        resources:", "        env: [{name: TP, value: 8}]\n        resources:")
    )
    for option in ("--check", "--write", "--check"):
        done = command("migrate", ".", "--whole-gpus", "--kubernetes", "1.37", option, cwd=folder)
        assert (done.code, done.err.count("[wrong-type]")) == (1, 2)
        assert "  error: spec.template.spec.containers[0].env[0].value: a text belongs here" in done.err


def test_a_patch_is_not_judged_as_a_whole_object(folder: Path):
    (folder / "kustomization.yaml").write_text("patches: [{path: patch.yaml}]\n")
    (folder / "patch.yaml").write_text(
        "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\n"
        "spec: {devices: {requests: [{name: a, exactly: {count: 2}}]}}\n"
    )
    done = migrate(folder, "patch.yaml", "--check")
    assert (done.returncode, "error" in done.stderr) == (0, False)


def test_a_bridge_is_refused_where_classes_serve_no_resources(folder: Path):
    arguments = ("serve.yaml", "--whole-gpus", "--to", "bridge", "--kubernetes", "1.35")
    done = migrate(folder, *arguments)
    assert done.returncode == 2
    assert "Kubernetes 1.35 has the gate DRAExtendedResource off" in done.stderr
    assert migrate(folder, *arguments, "--gate", "DRAExtendedResource=true").returncode == 0


def test_yaml_is_another_word_for_claims(folder: Path):
    claims, yaml = (migrate(folder, "serve.yaml", "--whole-gpus", "--to", to) for to in ("claims", "yaml"))
    assert (claims.returncode, claims.stderr) == (yaml.returncode, yaml.stderr)
    assert "new: ResourceClaimTemplate ml/serve-gpu" in yaml.stderr


def test_kustomizations_and_parts_of_objects_are_no_values_of_a_chart(folder: Path):
    patch = "spec: {template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 2}}}]}}}\n"
    (folder / "kustomization.yaml").write_text(
        f"patches: [{{target: {{kind: Deployment}}, patch: '{patch}'}}]\n"
    )
    (folder / "patch.yaml").write_text(patch)
    done = migrate(folder, "kustomization.yaml", "patch.yaml", "--whole-gpus", "--format", "json")
    assert [each["name"] for each in json.loads(done.stdout)["objects"]] == [
        "kustomization",
        "part of an object",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("serve.yaml", "--output", "new"), "--output writes elsewhere"),
        (("-",), "standard input cannot be changed"),
    ],
)
def test_what_cannot_be_written_in_place_is_told_by_its_reason(
    folder: Path, arguments: tuple[str, ...], told: str
):
    done = migrate(folder, *arguments, "--whole-gpus", "--write", stdin=SERVE)
    assert (done.returncode, done.stderr.rstrip().endswith(f"--write: {told}")) == (2, True)


def test_standard_input_comes_out_migrated_and_the_report_beside_it(folder: Path):
    done = migrate(folder, "-", "--whole-gpus", stdin=OTHER + "---\n" + SERVE)
    assert done.returncode == 0
    assert done.stdout.startswith(OTHER)
    assert [each["kind"] for each in read_manifests(done.stdout)] == [
        "Namespace",
        "Deployment",
        "ResourceClaimTemplate",
    ]
    assert "1 object migrated" in done.stderr


def test_standard_input_without_devices_comes_out_as_it_is(folder: Path):
    assert migrate(folder, "-", "--whole-gpus", stdin=OTHER).stdout == OTHER


def test_the_bridge_adds_a_class_and_changes_no_pod(folder: Path):
    arguments = ("serve.yaml", "--whole-gpus", "--to", "bridge", "--output", "new")
    done = migrate(folder, *arguments)
    assert (done.returncode, (folder / "new").exists()) == (0, False)
    assert "is served by the class gpu.nvidia.com" in done.stderr
    assert "extended-resource-twice" not in done.stderr
    # The chart of an older driver installs a class that serves no resource.
    done = migrate(folder, *arguments, "--driver", "25.8")
    assert done.returncode == 0
    deployment, made = read_manifests((folder / "new" / "serve.yaml").read_text())
    assert deployment == read_manifests(SERVE)[0]
    assert (made["kind"], made["spec"]["extendedResourceName"]) == ("DeviceClass", "nvidia.com/gpu")


OLD = """\
# ours
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceClaim
metadata: {name: two}
spec:
  devices:
    requests:
    - name: gpus
      deviceClassName: gpu.nvidia.com
      count: 2
---
apiVersion: resource.k8s.io/v1alpha2
kind: PodSchedulingContext
metadata: {name: p}
---
"""


def test_old_dra_is_written_anew_where_it_differs_and_what_is_obsolete_goes(folder: Path):
    done = migrate(folder, "-", stdin=OLD + OTHER)
    assert done.returncode == 0
    assert done.stdout == (
        OLD.partition("---")[0]
        .replace("v1alpha3", "v1")
        .replace("      deviceClassName", "      exactly:\n        deviceClassName")
        .replace("      count", "        count")
        + f"---\n{OTHER}"
    )
    assert "  changed: the scheduler of today" in done.stderr


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_old_dra_is_of_v1_on_every_minor_whose_servers_take_it(folder: Path, minor: str):
    old = "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nmetadata: {name: a, namespace: ml}\n"
    spec = "spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.nvidia.com}]}}\n"
    done = migrate(folder, "-", "--kubernetes", minor, stdin=old + spec)
    assert done.returncode == 0
    (written,) = read_manifests(done.stdout)
    assert written["apiVersion"] == "resource.k8s.io/v1"
    assert f"on Kubernetes {minor}" not in done.stderr


def test_a_fleet_says_where_the_result_fits_and_fails_where_it_does_not(folder: Path):
    done = migrate(folder, "serve.yaml", "--whole-gpus", "--fleet", "t4 x 1")
    assert done.returncode == 0
    assert "1 workload fits on t4 x 1" in done.stderr
    (folder / "serve.yaml").write_text(SERVE.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 8"))
    refused = migrate(folder, "serve.yaml", "--whole-gpus", "--fleet", "t4 x 1", "--json")
    assert refused.returncode == 1
    assert any("0 of 1 workload" in each for each in json.loads(refused.stdout)["notes"])


def test_anchors_of_limits_are_no_obstacle(folder: Path):
    shared = SERVE.replace("limits:\n", "limits: &limits\n").replace(
        'requests: {cpu: "4"}', "requests: *limits"
    )
    (folder / "serve.yaml").write_text(shared)
    assert migrate(folder, "serve.yaml", "--whole-gpus", "--write").returncode == 0
    assert "# what serves" in (folder / "serve.yaml").read_text()


def test_why_a_document_lost_its_comments_is_told(folder: Path):
    first = SERVE.replace("limits:\n", "limits: &all\n            memory: 1Gi\n")
    side = "      - name: side\n        image: x:1\n        resources:\n          limits:\n            <<: *all\n"
    (folder / "serve.yaml").write_text(f"{first}{side}            cpu: 1\n")
    done = migrate(folder, "serve.yaml", "--whole-gpus")
    assert done.returncode == 0
    told = "serve.yaml:1: written anew, without its comments: what is written there belongs to another place too\n"
    assert told in done.stderr


def test_a_comment_between_brackets_costs_the_others_nothing(folder: Path):
    lines = "resources: {  # few\n          limits: {nvidia.com/gpu: 1}}  # of main\n"
    head, _, _ = SERVE.partition("resources:")
    (folder / "serve.yaml").write_text(head + lines)
    done = migrate(folder, "serve.yaml", "--whole-gpus", "--write")
    assert (done.returncode, "written anew" in done.stderr) == (0, False)
    written = (folder / "serve.yaml").read_text()
    assert written.startswith(f"{head}# few\n        resources: {{claims: [{{name: gpu}}]}}  # of main\n")


def test_a_bridge_leaves_the_parts_in_a_file_of_patches_as_they_are(folder: Path):
    part = "---\nkind: Deployment\nmetadata: {name: part}\nspec: {replicas: 2}\n---\n# last\n"
    text = SERVE + part + SERVE.replace("serve", "chat")
    (folder / "serve.yaml").write_text(text)
    (folder / "kustomization.yaml").write_text("patches: [{path: serve.yaml}]\n")
    arguments = ("--whole-gpus", "--source", "manifests", "--to", "bridge", "--driver", "25.8")
    assert migrate(folder, ".", *arguments, "--output", "new").returncode == 0
    written = (folder / "new" / "serve.yaml").read_text()
    assert written.count("kind: DeviceClass\n") == 1
    assert written.endswith(part + SERVE.replace("serve", "chat"))


def test_lines_of_windows_stay_so(folder: Path):
    (folder / "serve.yaml").write_bytes(SERVE.replace("\n", "\r\n").encode())
    assert migrate(folder, "serve.yaml", "--whole-gpus", "--write").returncode == 0
    written = (folder / "serve.yaml").read_bytes()
    assert written.count(b"\n") == written.count(b"\r\n")


def test_a_byte_order_mark_and_lines_of_windows_stay_in_every_form_of_a_file(folder: Path):
    objects = read_manifests(SERVE)
    texts = {"serve.yaml": f"# top\n{SERVE}", "many.json": json.dumps(objects[0], indent=2) + "\n"}
    texts["one.json"] = json.dumps({**objects[0], "metadata": {"name": "one"}})
    for name, text in texts.items():
        (folder / name).write_bytes(f"\ufeff{text}".replace("\n", "\r\n").encode())
    arguments = (*texts, "--whole-gpus")
    assert migrate(folder, *arguments, "--output", "new").returncode == 0
    assert migrate(folder, *arguments, "--write").returncode == 0
    for name in texts:
        written = (folder / name).read_bytes()
        assert written == (folder / "new" / name).read_bytes()
        assert b"resourceClaimTemplateName" in written
        assert written.startswith(b"\xef\xbb\xbf")
        assert written.count(b"\xef\xbb\xbf") == 1
        assert written.count(b"\n") == written.count(b"\r\n")
    assert migrate(folder, *arguments, "--check").returncode == 0


@pytest.mark.parametrize("gpus", [0, 1])
def test_a_byte_order_mark_and_lines_of_windows_go_through_a_pipe(gpus: int):
    text = f"\ufeff{SERVE if gpus else OTHER}".replace("\n", "\r\n").encode()
    command = [warm().command, "migrate", "-", "--whole-gpus"]
    done = subprocess.run(command, input=text, capture_output=True, check=True, timeout=300)
    assert done.stdout.startswith(text[:60])
    assert done.stdout.count(b"\n") == done.stdout.count(b"\r\n")
    assert done.stdout == text or b"resourceClaimTemplateName: serve-gpu\r\n" in done.stdout


@pytest.mark.parametrize("text", [SERVE, json.dumps(read_manifests(SERVE)[0])], ids=["yaml", "json"])
def test_a_diff_of_a_file_of_windows_can_be_applied(folder: Path, text: str):
    (folder / "one.yaml").write_bytes(f"\ufeff{text}".replace("\n", "\r\n").encode())
    command = [warm().command, "migrate", "one.yaml", "--whole-gpus", "--diff"]
    diff = subprocess.run(command, capture_output=True, check=True, timeout=300, cwd=folder).stdout
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    applied = subprocess.run(
        ["git", "apply", "-"], input=diff, capture_output=True, check=False, cwd=folder, env=environment
    )
    assert applied.returncode == 0, applied.stderr
    by_patch = (folder / "one.yaml").read_bytes()
    (folder / "one.yaml").write_bytes(f"\ufeff{text}".replace("\n", "\r\n").encode())
    assert migrate(folder, "one.yaml", "--whole-gpus", "--write").returncode == 0
    assert (folder / "one.yaml").read_bytes() == by_patch


def test_a_file_that_is_no_yaml_is_told_and_stays(folder: Path):
    (folder / "broken.yaml").write_text("{{ if .Values.x }}\n")
    done = migrate(folder, ".", "--whole-gpus", "--write")
    assert done.returncode == 1
    assert "[yaml-syntax]" in done.stderr
    assert (folder / "broken.yaml").read_text() == "{{ if .Values.x }}\n"


def test_a_config_map_holds_the_configuration(folder: Path):
    (folder / "plugin.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plugin}\n"
        "data:\n  config.yaml: |\n    version: v1\n    sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
    )
    done = migrate(folder, "serve.yaml", "--plugin-config", "plugin.yaml", "--json")
    assert [each["code"] for each in json.loads(done.stdout)["objects"][0]["remarks"]] == ["mps-replicas"]


def test_a_config_map_stands_beside_the_policy_that_names_it(folder: Path):
    text = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plugin"}, "data": {"any": text}}
    config = {"name": "plugin", "default": "any"}
    policy = {"apiVersion": "nvidia.com/v1", "kind": "ClusterPolicy", "metadata": {"name": "p"}}
    policy["spec"] = {"mig": {"strategy": "none"}, "devicePlugin": {"config": config}}
    (folder / "plugin.yaml").write_text("\n---\n".join(map(json.dumps, (policy, held))))
    done = migrate(folder, "serve.yaml", "--plugin-config", "plugin.yaml", "--kubernetes", "1.37")
    assert "[replica-to-share]" in done.stderr
    (folder / "plugin.yaml").write_text("a: [")
    assert migrate(folder, "serve.yaml", "--plugin-config", "plugin.yaml").returncode == 2


def test_a_snapshot_says_which_configuration_its_nodes_have(folder: Path):
    configs = {"a": "version: v1", "b": "version: v1\nflags: {migStrategy: single}"}
    (folder / "values.yaml").write_text(json.dumps({"config": {"map": configs}}))
    labels = {
        "nvidia.com/device-plugin.config": "b",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
    }
    status = {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}, "status": status}
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    arguments = ("serve.yaml", "--plugin-config", "values.yaml", "--json")
    done = migrate(folder, *arguments, "--snapshot", "cluster.yaml")
    assert "ResourceClaimTemplate ml/serve-mig" in json.loads(done.stdout)["objects"][0]["added"]
    for said in (("--whole-gpus",), ("--mig-profile", "2g.20gb")):
        done = migrate(folder, "serve.yaml", *said, "--snapshot", "cluster.yaml")
        assert "labels of nodes say a MIG device 1g.10gb [resource-not-clear]" in done.stderr
    refused = migrate(folder, *arguments)
    assert "[plugin-config-malformed]" in refused.stderr


def test_nodes_that_differ_say_what_pods_get_that_select_some_of_them(folder: Path):
    products = {"whole": "Tesla-T4", "parts": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"}
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"pool": name, "nvidia.com/gpu.product": product}},
            "status": {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "4"}},
        }
        for name, product in products.items()
    ]
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    selectors = {
        "product": {"nvidia.com/gpu.product": "Tesla-T4"},
        "whole": {"pool": "whole"},
        "parts": {"pool": "parts"},
        "any": {},
        "none": {"pool": "new"},
    }
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "ml"},
            "spec": {
                "nodeSelector": selector,
                "containers": [
                    {"name": "main", "image": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}
                ],
            },
        }
        for name, selector in selectors.items()
    ]
    (folder / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    found = json.loads(migrate(folder, "pods.json", "--snapshot", "cluster.yaml", "--json").stdout)["objects"]
    assert {each["name"]: each["added"] for each in found} == {
        "Pod ml/product": ["ResourceClaimTemplate ml/product-gpu"],
        "Pod ml/whole": ["ResourceClaimTemplate ml/whole-gpu"],
        "Pod ml/parts": ["ResourceClaimTemplate ml/parts-mig"],
        "Pod ml/any": [],
        "Pod ml/none": [],
    }
    codes = {remark["code"] for each in found[3:] for remark in each["remarks"]}
    assert codes == {"resource-not-clear"}


def test_configurations_and_a_snapshot_say_what_pods_get_that_select_some_nodes(folder: Path):
    sharing = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    values = {"config": {"map": {"whole": "version: v1", "shared": sharing}, "default": "whole"}}
    (folder / "values.yaml").write_text(json.dumps(values))
    status = {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": "4"}}
    key = "nvidia.com/device-plugin.config"
    nodes = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {"pool": name, key: name, "nvidia.com/gpu.product": product},
            },
            "status": status,
        }
        for name, product in (("whole", "Tesla-T4"), ("shared", "Tesla-T4-SHARED"))
    ]
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    pods = [yaml.safe_load(SERVE) for _ in range(3)]
    for pod, selects in zip(pods, ({"pool": "whole"}, {"pool": "shared"}, {key: "shared"}), strict=True):
        pod["spec"]["template"]["spec"]["nodeSelector"] = selects
        pod["metadata"]["name"] = "-".join(selects.values())
    (folder / "pods.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}))
    both = ("--plugin-config", "values.yaml", "--snapshot", "cluster.yaml", "--kubernetes", "1.37")
    objects = json.loads(migrate(folder, "pods.json", *both, "--json").stdout)["objects"]
    codes = [each["remarks"][0]["code"] for each in objects]
    assert codes == ["resource-to-claim", "replica-to-share", "replica-to-share"]


def test_labels_of_nodes_count_before_a_configuration_that_nothing_applies(folder: Path):
    labels = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "1"}
    status = {"allocatable": {"cpu": "64", "memory": "512Gi", "pods": "110"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}, "status": status}
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    config = "version: v1\nsharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    data = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"any": config}}
    (folder / "config.json").write_text(json.dumps(data))
    files = ("serve.yaml", "config.json")
    done = migrate(folder, *files, "--snapshot", "cluster.yaml")
    assert "resource-to-claim" in done.stderr
    held = migrate(folder, *files, "--whole-gpus")
    assert "config.json says one of 4 replicas of a whole GPU [resource-not-clear]" in held.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("-", "--write"),
        (".", "--write", "--output", "new"),
        (".", "--whole-gpus", "--plugin-config", "plugin.yaml"),
        (".", "--kubernetes", "1.2"),
        (".", "--driver", "9"),
        (".", "--mig-profile", "banana"),
        (".", "--mps-memory", "much"),
        (".", "--mps-memory", "0"),
        (".", "--mps-memory", "9E"),
        (".", "--mps-memory", ""),
        (".", "--mps-memory", "15Gi", "--to", "bridge"),
        (".", "--mig-profile", "1g.10gb", "--whole-gpus"),
        (".", "--whole-gpus", "--diff", "--json"),
        (".", "--whole-gpus", "--diff", "--format", "html"),
    ],
)
def test_options_that_exclude_each_other_or_are_none_end_with_two(folder: Path, arguments: tuple[str, ...]):
    assert migrate(folder, *arguments).returncode == 2


def test_a_page_and_a_diff_are_two_outputs(folder: Path):
    done = migrate(folder, ".", "--whole-gpus", "--diff", "--format", "html")
    told = " ".join(done.stderr.split())
    assert "a report on standard output and a diff are two outputs; run it once for each" in told


def test_a_path_that_is_not_there_ends_with_two(folder: Path):
    assert migrate(folder, "nowhere.yaml", "--whole-gpus").returncode == 2


def test_values_of_a_chart_keep_their_comments_and_migrating_again_changes_nothing(folder: Path):
    values = folder / "values.yaml"
    values.write_text("# how we serve\nollama:\n  gpu:\n    enabled: true  # at last\n    number: 2\n")
    done = migrate(folder, "values.yaml", "--whole-gpus", "--write")
    assert done.returncode == 0
    assert "values.yaml:1:1: values of a chart\n" in done.stderr
    assert "[values-to-claims]" in done.stderr
    after = (
        "# how we serve\nollama:\n  gpu:\n    enabled: true  # at last\n    number: 2\n    draEnabled: true\n"
    )
    assert values.read_text() == after
    assert migrate(folder, "values.yaml", "--whole-gpus", "--write", "--check").returncode == 0
    assert values.read_text() == after


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_names_of_strangers_are_no_marks_of_the_report(folder: Path, form: str):
    (folder / "serve.yaml").write_text(SERVE.replace("name: serve", 'name: "<b>|x`"'))
    done = migrate(folder, "serve.yaml", "--format", form)
    assert "<b>" not in done.stdout
    assert "plugin-not-known" in done.stdout or "nobody said which" in done.stdout


def test_a_plan_is_behind_the_report_in_every_form(folder: Path):
    arguments = ("serve.yaml", "--whole-gpus", "--fleet", "t4 x 2", "--kubernetes", "1.34", "--plan")
    text = migrate(folder, *arguments)
    assert text.returncode == 0
    assert "Plan of the cut-over: nodes leave the plugin in 2 groups, at most 1 node at a time" in text.stderr
    assert "t4-0 leaves the plugin; Deployment ml/serve moves" in text.stderr
    assert "      $ kubectl cordon t4-0\n" in text.stderr
    data = json.loads(migrate(folder, *arguments, "--json").stdout)["plan"]
    assert (data["verdict"], data["works"], data["nodesAtOnce"]) == ("always", True, 1)
    assert [each["kind"] for each in data["phases"]] == ["prepare", "move", "move", "finish"]
    assert data["phases"][1]["joint"]["verdict"] == "always"
    shown = migrate(folder, *arguments, "--format", "markdown").stdout
    assert "### ✓ 1. t4-0 leaves the plugin; Deployment ml/serve moves\n" in shown
    page = migrate(folder, *arguments, "--format", "html").stdout
    assert "<pre>Plan of the cut-over: " in page
    assert page.endswith("</pre>\n</html>\n")


def test_a_plan_that_cannot_work_fails(folder: Path):
    (folder / "serve.yaml").write_text(SERVE.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 9"))
    done = migrate(folder, "serve.yaml", "--whole-gpus", "--fleet", "t4 x 1", "--plan")
    assert done.returncode == 1
    assert "Plan of the cut-over: nodes leave the plugin in no groups; it does not work" in done.stderr


@pytest.mark.parametrize("arguments", [(), ("--fleet", "t4 x 1", "--to", "bridge")])
def test_a_plan_needs_nodes_and_claims(folder: Path, arguments: tuple[str, ...]):
    done = migrate(folder, "serve.yaml", "--whole-gpus", *arguments, "--plan")
    assert done.returncode == 2
    assert "--plan" in done.stderr


def test_a_snapshot_is_planned_from_where_its_nodes_are(folder: Path):
    fleet = load_fleet("hgx-h100 x 2")
    nodes = [each for each in fleet.to_manifests() if each["kind"] == "Node"]
    for node in nodes:
        node["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    snapshot = folder / "cluster.yaml"
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    arguments = ("serve.yaml", "--snapshot", "cluster.yaml", "--kubernetes", "1.34", "--plan")
    done = migrate(folder, *arguments)
    assert done.returncode == 0
    assert "2 of the nodes, such as hgx-h100-0, are taken to publish what hgx-h100 does" in done.stderr
    nodes += [each for each in fleet.to_manifests() if each["kind"] != "Node"]
    snapshot.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    twice = migrate(folder, *arguments)
    assert twice.returncode == 1
    told = "error: Node hgx-h100-0: the device plugin gives out nvidia.com/gpu: 8"
    assert told in twice.stderr
    assert "[device-plugin-beside-dra]\n    hint: switch the device plugin off on this node" in twice.stderr
    listed = migrate(folder, *arguments, "--format", "markdown").stdout
    assert any(
        each.startswith(f"- {told}") and "switch the device plugin off" in each
        for each in listed.splitlines()
    )


def test_a_plan_takes_hardware_that_is_named_beside_a_snapshot(folder: Path):
    named = load_fleet("hgx-h100 x 1").to_manifests()
    (node,) = (each for each in named if each["kind"] == "Node")
    node["metadata"]["labels"]["nvidia.com/gpu.product"] = "NVIDIA-Z900"
    (folder / "hardware.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": named}))
    node["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    arguments = ("serve.yaml", "--whole-gpus", "--snapshot", "cluster.yaml", "--kubernetes", "1.34", "--plan")
    refused = migrate(folder, *arguments)
    assert "[hardware-not-known]" in refused.stderr
    done = migrate(folder, *arguments, "--fleet", "hardware.yaml")
    assert done.returncode == 0
    assert "is taken to publish what hardware.yaml does" in done.stderr
    both = migrate(folder, *(each for each in arguments if each != "--plan"), "--fleet", "hardware.yaml")
    assert both.returncode == 2
    assert "a snapshot is the fleet; leave --fleet out" in both.stderr


def test_a_plan_tells_nodes_whose_kernel_driver_the_release_of_the_driver_does_not_name(folder: Path):
    (node,) = (each for each in load_fleet("hgx-h100 x 1").to_manifests() if each["kind"] == "Node")
    node["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    node["metadata"]["labels"]["nvidia.com/cuda.driver-version.full"] = "535.104.05"
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    arguments = ("serve.yaml", "--whole-gpus", "--snapshot", "cluster.yaml", "--kubernetes", "1.34", "--plan")
    done = migrate(folder, *arguments, "--driver", "0.5")
    assert done.returncode == 1
    assert "update hgx-h100-0 (535.104.5) before that" in done.stderr
    assert "not decided whether it works" in done.stderr
    assert migrate(folder, *arguments, "--driver", "25.8").returncode == 0


def test_a_plan_reads_the_labels_of_gke(folder: Path):
    gke = "cloud.google.com/gke-"
    own = {f"{gke}gpu-sharing-strategy": "time-sharing", f"{gke}max-shared-clients-per-gpu": "4"}
    nodes = [each for each in load_fleet("g2-standard-24 x 2").to_manifests() if each["kind"] == "Node"]
    for node in nodes:
        node["status"]["allocatable"]["nvidia.com/gpu"] = "8"
        kept = {
            key: at for key, at in node["metadata"]["labels"].items() if not key.startswith("nvidia.com/")
        }
        node["metadata"]["labels"] = kept | own
    (folder / "cluster.yaml").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    chosen = json.dumps({"nodeSelector": own})[1:-1]
    (folder / "serve.yaml").write_text(SERVE.replace("    spec:\n", f"    spec:\n      {chosen}\n"))
    done = migrate(folder, "serve.yaml", "--snapshot", "cluster.yaml", "--kubernetes", "1.37", "--plan")
    assert "such as g2-standard-24-0, are taken to publish what g2-standard-24 shares=4 does" in done.stderr
    assert "[replica-to-share]" in done.stderr
    assert "g2-standard-24-0 leaves the plugin" in done.stderr
    assert done.returncode == 0


def test_pods_share_a_gpu_under_mps_where_its_memory_is_said(folder: Path):
    sharing = {"mps": {"resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
    (folder / "plugin.yaml").write_text(json.dumps({"version": "v1", "sharing": sharing}))
    arguments = ("serve.yaml", "--plugin-config", "plugin.yaml")
    assert "hint: add --mps-memory for pods of one workload; or " in migrate(folder, *arguments).stderr
    done = migrate(folder, *arguments, "--mps-memory", "15Gi", "--fleet", "t4 x 1", "--write")
    assert done.returncode == 0
    assert "lost: spec.template.spec.containers[0].resources.limits[nvidia.com/gpu]: " in done.stderr
    assert "--mps-memory had no effect" not in done.stderr
    _, claim = read_manifests((folder / "serve.yaml").read_text())
    assert (claim["kind"], claim["metadata"]["name"]) == ("ResourceClaim", "serve-gpu")
    assert "defaultPinnedDeviceMemoryLimit: 3840Mi" in (folder / "serve.yaml").read_text()


def test_memory_for_mps_without_pods_under_mps_is_told(folder: Path):
    done = migrate(folder, "serve.yaml", "--whole-gpus", "--mps-memory", "15Gi")
    assert done.returncode == 0
    assert "--mps-memory had no effect: no pod asks for a replica under MPS\n" in done.stderr


def test_a_file_that_is_called_after_a_secret_is_named_with_its_line(tmp_path: Path):
    (tmp_path / "hf-token.yaml").write_text(SERVE)
    done = migrate(tmp_path, "hf-token.yaml", "--whole-gpus")
    assert done.stderr.startswith("hf-token.yaml:1:1: Deployment ml/serve\n")


RUN = """\
apiVersion: ml.example.com/v1
kind: TrainingRun
metadata: {name: run, namespace: ml}
spec: {workers: [{replicas: 9, template: {spec: {containers: [{name: main, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}}]}
"""
KINDS = """\
kinds:
- {kind: TrainingRun, group: ml.example.com, parts: [{template: spec.workers.*.template, pods: [spec.workers.*.replicas]}]}
"""


def test_kinds_of_a_users_own_are_migrated_placed_and_planned(tmp_path: Path):
    (tmp_path / "run.yaml").write_text(RUN)
    (tmp_path / "kinds.yaml").write_text(KINDS)
    arguments = ("run.yaml", "--whole-gpus", "--kinds", "kinds.yaml", "--kubernetes", "1.34")
    short = migrate(tmp_path, *arguments, "--fleet", "hgx-h100 x 1")
    assert short.returncode == 1
    assert "0 of 1 workload fits" in short.stderr
    planned = migrate(tmp_path, *arguments, "--fleet", "hgx-h100 x 2", "--plan")
    assert "TrainingRun ml/run moves" in planned.stderr
    assert "9 nvidia.com/gpu by TrainingRun ml/run" in planned.stderr
    bridged = migrate(tmp_path, *arguments, "--gate", "DRAExtendedResource=true", "--to", "bridge")
    assert bridged.stderr.count("[resource-bridged]") == 1
    done = migrate(tmp_path, *arguments, "--write")
    assert done.returncode == 0
    assert "resourceClaimTemplateName: run-gpu" in (tmp_path / "run.yaml").read_text()


def test_what_was_to_have_quotes_in_a_kind_of_a_users_own_is_told(
    tmp_path: Path, command: Callable[..., Any]
):
    (tmp_path / "run.yaml").write_text(RUN.replace("image: a", "image: a, args: [--tp, 8]"))
    (tmp_path / "kinds.yaml").write_text(KINDS)
    arguments = ("--whole-gpus", "--kinds", "kinds.yaml", "--kubernetes", "1.37")
    done = command("migrate", "run.yaml", *arguments, cwd=tmp_path)
    assert (done.code, done.err.count("[wrong-type]")) == (1, 1)
    assert "  error: spec.workers[0].template.spec.containers[0].args[1]: a text belongs here" in done.err


def test_kinds_of_another_form_end_with_two(tmp_path: Path):
    (tmp_path / "run.yaml").write_text(RUN)
    done = migrate(tmp_path, "run.yaml", "--whole-gpus", "--kinds", "run.yaml", "--write")
    assert done.returncode == 2
    assert "run.yaml.kinds: this is missing [workload-kind-malformed]" in done.stderr
    assert (tmp_path / "run.yaml").read_text() == RUN


@pytest.mark.parametrize("options", [("--check",), ("--output", "new")])
def test_a_report_names_what_could_not_be_read_and_is_not_complete(folder: Path, options: tuple[str, ...]):
    (folder / "bad.yaml").write_text("kind: List\nitems: {a: b\n")
    arguments = (".", "--whole-gpus", *options)
    done = migrate(folder, *arguments, "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 1
    assert (data["complete"], data["migrated"]) == (False, 1)
    (problem,) = data["problems"]
    assert (problem["place"]["file"], problem["code"], problem["severity"]) == (
        "bad.yaml",
        "yaml-syntax",
        "error",
    )
    table = migrate(folder, *arguments, "--format", "markdown").stdout
    assert "not complete: 1 part of the input missing" in table
    assert "| bad.yaml&#58;3&#58;1 | error |" in table
    page = migrate(folder, *arguments, "--format", "html").stdout
    assert "not complete: 1 part of the input missing</p>" in page
    assert "<td>bad.yaml:3:1</td><td>error</td>" in page
    assert "not complete: 1 part of the input missing" in migrate(folder, *arguments).stderr
    (folder / "bad.yaml").unlink()
    whole = json.loads(migrate(folder, *arguments, "--json").stdout)
    assert (whole["complete"], whole["problems"]) == (True, [])


def test_a_report_names_a_path_that_is_not_there(folder: Path):
    done = migrate(folder, "nowhere.yaml", "serve.yaml", "--whole-gpus", "--json")
    data = json.loads(done.stdout)
    assert done.returncode == 2
    assert (data["complete"], data["problems"][0]["code"]) == (False, "file-unreadable")


def test_an_object_that_is_there_twice_is_no_part_that_is_missing(folder: Path):
    (folder / "again.yaml").write_text((folder / "serve.yaml").read_text())
    files = ("serve.yaml", "again.yaml", "--whole-gpus", "--json")
    data = json.loads(migrate(folder, *files, "--to", "components").stdout)
    assert (data["complete"], [each["code"] for each in data["problems"]]) == (True, ["duplicate-object"])


def test_a_report_names_a_document_that_was_not_rewritten(folder: Path):
    (folder / "serve.yaml").write_text(f"{SERVE}%YAML 1.1\n  nothing: at all\n")
    data = json.loads(migrate(folder, "serve.yaml", "--whole-gpus", "--json").stdout)
    assert not data["complete"]
    assert "document-not-rewritten" in [each["code"] for each in data["problems"]]


def test_notes_stand_on_the_page_too(folder: Path):
    arguments = ("serve.yaml", "--whole-gpus", "--fleet", "hgx-h100 x 1")
    assert "<p>1 of 1 workload fits" in migrate(folder, *arguments, "--format", "html").stdout


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: ml}
spec:
  containers:
  - {name: one, image: a, resources: {limits: {nvidia.com/mig-1g.10gb: 1}}}
  - {name: two, image: a, resources: {limits: {nvidia.com/mig-2g.20gb: 1}}}
"""


def told_of(folder: Path, *arguments: str) -> dict[str, Any]:
    """The one object of a report that comes as JSON."""
    (entry,) = json.loads(migrate(folder, *arguments, "--json").stdout)["objects"]
    return entry


def test_what_two_containers_ask_for_is_told_once_of_their_pod(tmp_path: Path):
    (tmp_path / "pod.yaml").write_text(POD)
    remarks = told_of(tmp_path, "pod.yaml", "--whole-gpus")["remarks"]
    (toleration,) = [each for each in remarks if each["code"] == "toleration-written"]
    assert toleration["path"] == "spec.tolerations"
    assert [f"mig-{each} is written" in toleration["message"] for each in ("1g.10gb", "2g.20gb")] == [
        True
    ] * 2


def test_a_label_in_two_terms_is_told_once(tmp_path: Path):
    terms = "[{key: nvidia.com/gpu.family, operator: In, values: [%s]}]"
    affinity = f"""\
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{{matchExpressions: {terms % "hopper"}}}, {{matchExpressions: {terms % "ampere"}}}]
"""
    (tmp_path / "pod.yaml").write_text(
        POD.replace("mig-1g.10gb", "gpu").partition("  - {name: two")[0] + affinity
    )
    remarks = told_of(tmp_path, "pod.yaml", "--whole-gpus")["remarks"]
    assert [each["code"] for each in remarks].count("node-label-to-selector") == 1


def test_problems_of_what_is_added_have_its_name_and_no_echo(tmp_path: Path):
    (tmp_path / "pod.yaml").write_text(
        f"{POD}---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: other}}\n"
    )
    bridged = told_of(tmp_path, "pod.yaml", "--whole-gpus", "--to", "bridge")["problems"]
    dropped = [each["path"] for each in bridged if each["code"] == "field-dropped"]
    assert dropped == [
        f"DeviceClass nvidia.com-mig-{each}.spec.extendedResourceName" for each in ("1g.10gb", "2g.20gb")
    ]
    problems = told_of(tmp_path, "pod.yaml", "--whole-gpus")["problems"]
    assert [(each["code"], each["path"]) for each in problems] == [
        ("namespace-not-known", "metadata.namespace")
    ]


@pytest.mark.parametrize(
    "name", ["${NAME}", "gpu-${NAME:-x}-a", "$(NAME)", "{{ .Values.name }}-x", "<%= name %>"]
)
def test_names_that_are_filled_in_later_are_told_and_stay(tmp_path: Path, name: str):
    text = POD.replace("name: a", f'name: "{name}"').replace("ml}", '"${NS}"}').partition("  - {name: two")[0]
    (tmp_path / "pod.yaml").write_text(text)
    entry = told_of(tmp_path, "pod.yaml", "--whole-gpus")
    at = "spec.resourceClaims[0].resourceClaimTemplateName"
    assert [(each["code"], each["path"]) for each in entry["problems"]] == [("name-filled-in", at)]
    assert name in entry["problems"][0]["message"]
    assert migrate(tmp_path, "pod.yaml", "--whole-gpus", "--write").returncode == 0
    pod, template = read_manifests((tmp_path / "pod.yaml").read_text())
    assert pod["metadata"] == {"name": name, "namespace": "${NS}"}
    assert template["metadata"] == {"name": f"{name}-mig", "namespace": "${NS}"}
    assert pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert migrate(tmp_path, "pod.yaml", "--whole-gpus", "--check").returncode == 0


@pytest.mark.parametrize(("name", "code"), [("${NAME}-t", "name-filled-in"), ("${NAME}_T", "invalid-name")])
def test_what_is_around_a_name_that_is_filled_in_later_is_judged(tmp_path: Path, name: str, code: str):
    spec = "{spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}"
    (tmp_path / "claims.yaml").write_text(
        f"apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {{name: '{name}'}}\nspec: {spec}\n"
    )
    (problem,) = told_of(tmp_path, "claims.yaml")["problems"]
    assert (problem["path"], problem["code"]) == ("metadata.name", code)
    passes = migrate(tmp_path, "claims.yaml", "--check").returncode == 0
    assert passes == (code == "name-filled-in")


def test_intels_plugin_among_the_input_says_that_its_gpus_are_shared(tmp_path: Path):
    (tmp_path / "media.yaml").write_text(SERVE.replace("nvidia.com/gpu", "gpu.intel.com/i915"))
    assert "claim template serve-gpu" in migrate(tmp_path, "media.yaml").stderr
    of_intel = "apiVersion: deviceplugin.intel.com/v1\nkind: GpuDevicePlugin\nmetadata: {name: gpu}\n"
    (tmp_path / "plugin.yaml").write_text(f"{of_intel}spec: {{sharedDevNum: 10}}\n")
    assert "up to 10 containers" in migrate(tmp_path, ".").stderr
    assert migrate(tmp_path, ".", "--check").returncode == 1
