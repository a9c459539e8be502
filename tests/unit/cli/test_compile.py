from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

FORMS = ("markdown", "json", "sarif", "junit")
PROJECT = "name: app\nruntime: python\n"
OBJECT = (
    'import pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap("c", metadata={"name": "c"}, data={"a": "%s"})\n'
)
MANIFEST = "# a comment\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: c}\nspec: {suitableFor: %s}\n"


@pytest.fixture
def infra(tree) -> Path:
    tree.write("README.md", "a repository\n")
    return tree.root / "infra"


def program(tree, side: str, *, settings: str = "") -> None:
    tree.write("infra/Pulumi.yaml", PROJECT)
    tree.write("infra/__main__.py", OBJECT % side)
    if settings:
        tree.write("infra/Pulumi.dev.yaml", settings)


def compiled(tree, command, tmp_path: Path, *arguments: str) -> Path:
    """What job one leaves; the tree is that of the base afterwards, as job two has it."""
    file = tmp_path / "head.json"
    command("compile", "infra", "--output", str(file), *arguments, cwd=tree.root)
    tree.git("stash", "--include-untracked")
    return file


def without_origin(text: str) -> str:
    """A report without what only a working tree, or only a compiled head, can say of where it was read."""
    changed = "(?: with files that are not committed)?"
    text = re.sub(rf"(?:compiled from|working tree on) (\S+){changed}", r"\1", text)
    text = re.sub(r'"origin": "(?:compiled|working tree)"', "", text)
    return re.sub(r'"uncommitted": (?:true|false)', "", text)


@pytest.mark.parametrize("tracked", [False, True])
def test_the_base_has_the_virtual_environment_of_the_tree_unless_git_knows_it(
    tree, command, infra, tracked: bool
):
    program(tree, "old")
    tree.write("infra/Pulumi.yaml", "name: app\nruntime: {name: python, options: {virtualenv: env}}\n")
    tree.write("infra/__main__.py", "import acme_sdk\n" + OBJECT % "old")
    tree.write(".gitignore", "env\n")
    tree.commit()
    packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    tree.write(f"infra/env/{packages}/acme_sdk.py", "")
    if tracked:
        tree.git("add", "--force", "infra/env")
    arguments = ["--base", "HEAD", "--format", "json", "--assume-empty-base"]
    found = json.loads(command("review", "infra", *arguments, cwd=tree.root).out)
    assert [each["action"] for each in found["changes"]] == (["created"] if tracked else [])


def test_a_review_of_a_compiled_head_is_that_of_the_working_tree(tree, command, infra, tmp_path: Path):
    program(tree, "old")
    tree.commit()
    program(tree, "new")
    plain = {
        form: command("review", "infra", "--base", "HEAD", "--format", form, cwd=tree.root) for form in FORMS
    }
    head = compiled(tree, command, tmp_path)
    for form in FORMS:
        answer = command(
            "review", "infra", "--base", "HEAD", "--head", str(head), "--format", form, cwd=tree.root
        )
        assert (answer.code, without_origin(answer.out)) == (
            plain[form].code,
            without_origin(plain[form].out),
        )


CLASS = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: h100}\nspec: {%s}\n"
TRAINER = """
import dra_infra as dra, pulumi_kubernetes as k8s
made = dra.GpuClaimTemplate("trainer", namespace="ml", device_class=dra.class_ref("h100"), count=%d)
k8s.apps.v1.Deployment("train", metadata={"name": "train", "namespace": "ml"}, spec={
    "selector": {"matchLabels": {"app": "train"}},
    "template": {"metadata": {"labels": {"app": "train"}}, "spec": {
        "containers": [{"name": "a", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": made.object_name}]}}})
"""


def test_a_class_that_a_file_stands_in_for_counts_in_the_review_of_a_compiled_head(
    tree, command, infra, tmp_path: Path
):
    tree.write("infra/Pulumi.yaml", PROJECT)
    tree.write("infra/dra-infra.yaml", "objects: [cluster.yaml]\n")
    selectors = "selectors: [{cel: {expression: device.driver == 'gpu.nvidia.com'}}]"
    tree.write("infra/cluster.yaml", CLASS % selectors)
    tree.write("infra/__main__.py", TRAINER % 4)
    tree.commit()
    tree.write("infra/__main__.py", TRAINER % 8)
    arguments = ("review", "infra", "--base", "HEAD", "--fleet", "hgx-h100 x 2", "--format", "json")
    plain = command(*arguments, cwd=tree.root)
    head = compiled(tree, command, tmp_path)
    answer = command(*arguments, "--head", str(head), cwd=tree.root)
    assert (answer.code, without_origin(answer.out)) == (plain.code, without_origin(plain.out))
    found = json.loads(answer.out)
    assert [each["trend"] for each in found["workloads"]] == ["moved"]
    assert (found["problems"], answer.code) == ([], 0)
    assert "DeviceClass" not in str(found["changes"])


@pytest.mark.parametrize("name", ["infra/a.yaml", "infra/deep/b.yml"])
def test_manifests_are_judged_where_the_head_is_read(tree, command, infra, tmp_path: Path, name: str):
    tree.write(name, MANIFEST % "[a]")
    tree.commit()
    tree.write(name, MANIFEST % "{}")
    plain = command("review", "infra", "--base", "HEAD", "--format", "json", cwd=tree.root)
    head = compiled(tree, command, tmp_path)
    answer = command(
        "review", "infra", "--base", "HEAD", "--head", str(head), "--format", "json", cwd=tree.root
    )
    assert (answer.code, without_origin(answer.out)) == (plain.code, without_origin(plain.out))
    assert f"{name}:5" in command(
        "review", "infra", "--base", "HEAD", "--head", str(head), cwd=tree.root
    ).out.replace('"', "")


def test_a_head_that_adds_the_folder_is_reviewed(tree, command, infra, tmp_path: Path):
    tree.commit()
    program(tree, "new")
    head = compiled(tree, command, tmp_path)
    assert not infra.exists()
    markdown = tmp_path / "review.md"
    answer = command(
        "review", "infra", "--base", "HEAD", "--head", str(head), "--markdown", str(markdown), cwd=tree.root
    )
    assert answer.code == 0, answer.err
    assert "c" in answer.out
    # Not the name that the head gives itself: it could be that of another review.
    assert markdown.read_text().startswith("<!-- dra-infra review infra")


def test_a_head_cannot_take_the_name_of_another_review(tree, command, infra, tmp_path: Path):
    program(tree, "old")
    tree.commit()
    program(tree, "new")
    tree.write("infra/Pulumi.yaml", "name: payments\nruntime: python\n")
    head = compiled(tree, command, tmp_path)
    answer = command(
        "review", "infra", "--base", "HEAD", "--head", str(head), "--format", "markdown", cwd=tree.root
    )
    assert answer.out.startswith("<!-- dra-infra review app/dev")


def test_the_base_says_where_a_head_is_placed(tree, command, infra, tmp_path: Path):
    program(tree, "old", settings="config: {dra-infra:fleet: hgx-h100 x 1}\n")
    tree.commit()
    program(tree, "new", settings="config: {dra-infra:fleet: hgx-h100 x 100}\n")
    head = compiled(tree, command, tmp_path)
    answer = command(
        "review", "infra", "--base", "HEAD", "--head", str(head), "--format", "json", cwd=tree.root
    )
    (note,) = json.loads(answer.out)["notes"]
    assert (
        note
        == "The head sets dra-infra:fleet to 'hgx-h100 x 100'; it is placed on 'hgx-h100 x 1', as the base says."
    )


def test_a_program_that_fails_leaves_why(tree, command, infra, tmp_path: Path):
    program(tree, "old")
    tree.commit()
    tree.write("infra/__main__.py", "raise ValueError('boom')\n")
    head = compiled(tree, command, tmp_path)
    markdown = tmp_path / "review.md"
    answer = command(
        "review", "infra", "--base", "HEAD", "--head", str(head), "--markdown", str(markdown), cwd=tree.root
    )
    assert (answer.code, answer.codes) == (2, {"program-raised"})
    assert "There is no review" in markdown.read_text()
    assert markdown.read_text().startswith("<!-- dra-infra review app/dev")


def test_nothing_of_the_head_runs_where_it_is_reviewed(tree, command, infra, tmp_path: Path):
    program(tree, "old")
    tree.commit()
    program(tree, "new")
    head = compiled(tree, command, tmp_path)
    data: dict[str, Any] = json.loads(head.read_text())
    assert data["commit"] == tree.git("rev-parse", "HEAD")
    # The working tree is what a pull request would have: a program that must not run.
    tree.write("infra/__main__.py", "raise SystemExit('it ran')\n")
    tree.write("infra/Pulumi.yaml", PROJECT)
    answer = command("review", "infra", "--base", "HEAD", "--head", str(head), cwd=tree.root)
    assert answer.code == 0, answer.err
    assert "it ran" not in answer.err + answer.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--engine",), "--head"),
        (("--source", "chart"), "compiled-of-another-kind"),
        (("--head-commit", "b" * 40), "compiled-of-another-commit"),
        (("--head-commit", ""), "compiled-of-another-commit"),
        (("--stack", "prod"), "compiled-of-another-stack"),
    ],
)
def test_what_does_not_go_with_a_compiled_head_is_refused(
    tree, command, infra, tmp_path: Path, arguments: tuple[str, ...], said: str
):
    program(tree, "old")
    tree.commit()
    program(tree, "new")
    head = compiled(tree, command, tmp_path)
    answer = command("review", "infra", "--base", "HEAD", "--head", str(head), *arguments, cwd=tree.root)
    assert answer.code == 2
    assert said in answer.err


def test_a_head_of_another_folder_is_refused(tree, command, infra, tmp_path: Path):
    program(tree, "old")
    tree.commit()
    program(tree, "new")
    head = compiled(tree, command, tmp_path)
    answer = command("review", "other", "--base", "HEAD", "--head", str(head), cwd=tree.root)
    assert (answer.code, answer.codes) == (2, {"compiled-of-another-path"})


def test_a_commit_without_a_head_is_refused(tree, command):
    answer = command("review", "--head-commit", "b" * 40, cwd=tree.root)
    assert (answer.code, "needs --head" in answer.err) == (2, True)


@pytest.mark.parametrize("broken", ["absent", "no head", "another commit", "another kind", "another stack"])
def test_a_head_that_cannot_be_used_is_told_where_an_older_review_stands(
    tree, command, infra, tmp_path: Path, broken: str
):
    program(tree, "old")
    tree.commit()
    program(tree, "new")
    head = compiled(tree, command, tmp_path, *(("--stack", "prod") if broken == "another stack" else ()))
    more = ("--head-commit", "b" * 40) if broken == "another commit" else ()
    if broken == "absent":
        head.unlink()
    elif broken == "no head":
        head.write_text("{}")
    elif broken == "another kind":
        head.write_text(json.dumps({**json.loads(head.read_text()), "kind": "chart"}))
    markdown = tmp_path / "review.md"
    answer = command(
        *("review", "infra", "--base", "HEAD", "--head", str(head), "--markdown", str(markdown), *more),
        cwd=tree.root,
    )
    assert answer.code == 2
    assert markdown.read_text().startswith("<!-- dra-infra review app/dev -->\n### ❔ There is no review")
    assert {*re.findall(r"`([a-z-]+)`", markdown.read_text())} == answer.codes


def test_manifests_inside_a_project_are_reviewed_by_two_jobs(tree, command, infra, tmp_path: Path):
    program(tree, "old")
    tree.write("infra/manifests/a.yaml", MANIFEST % "[a]")
    tree.commit()
    tree.write("infra/manifests/a.yaml", MANIFEST % "{}")
    head = tmp_path / "head.json"
    assert command("compile", "infra/manifests", "--output", str(head), cwd=tree.root).code == 0
    tree.git("stash")
    for said in ((), ("--source", "manifests")):
        answer = command(
            "review", "infra/manifests", *said, "--base", "HEAD", "--head", str(head), cwd=tree.root
        )
        assert "infra/manifests/a.yaml:5" in answer.out.replace('"', "")
    asked = ("review", "infra/manifests", "--source", "program", "--base", "HEAD", "--head", str(head))
    assert "compiled-of-another-kind" in command(*asked, cwd=tree.root).codes


@pytest.mark.parametrize("name", [b"n\xfe.yaml", b"broken.yaml", b"pipe.yaml"])
def test_a_file_that_the_other_job_could_not_read_is_told(tree, command, infra, tmp_path: Path, name: bytes):
    tree.write("infra/a.yaml", MANIFEST % "[a]")
    tree.commit()
    path = os.fsencode(infra) + b"/" + name
    if name == b"broken.yaml":
        Path(os.fsdecode(path)).symlink_to("gone.yaml")
    elif name == b"pipe.yaml":
        os.mkfifo(path)
    else:
        Path(os.fsdecode(path)).write_text(MANIFEST % "[b]")
    head = tmp_path / "head.json"
    answer = command("compile", "infra", "--output", str(head), cwd=tree.root)
    assert (answer.code, answer.codes) == (2, {"file-unreadable"})
    Path(os.fsdecode(path)).unlink()
    answer = command("review", "infra", "--base", "HEAD", "--head", str(head), cwd=tree.root)
    assert (answer.code, answer.codes) == (2, {"file-unreadable"})


def test_a_link_out_of_the_repository_is_not_compiled(tree, command, infra, tmp_path: Path):
    tree.commit()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.yaml").write_text(MANIFEST % "[a]")
    infra.symlink_to(tmp_path / "elsewhere")
    answer = command("compile", "infra", "--output", str(tmp_path / "head.json"), cwd=tree.root)
    assert (answer.code, answer.codes) == (2, {"no-repository"})
    assert not (tmp_path / "head.json").exists()


@pytest.mark.parametrize("way", ["compile", "review"])
def test_a_link_into_git_is_left_out(tree, command, infra, tmp_path: Path, way: str):
    tree.write("infra/a.yaml", MANIFEST % "[a]")
    tree.commit()
    (tree.root / ".git" / "planted").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: planted}\n"
    )
    (infra / "x.yaml").symlink_to("../.git/planted")
    if way == "compile":
        head = tmp_path / "head.json"
        assert command("compile", "infra", "--output", str(head), cwd=tree.root).code == 0
        found = json.loads(head.read_text())
        assert (list(found["files"]), found["left_out"]) == (["a.yaml"], ["x.yaml"])
    else:
        answer = command("review", "infra", "--base", "HEAD", "--format", "json", cwd=tree.root)
        assert [each["name"] for each in json.loads(answer.out)["notKnown"]] == ["infra/x.yaml"]
        assert "planted" not in json.dumps(json.loads(answer.out)["changes"])


def test_a_link_out_of_the_repository_is_left_out_and_named(tree, command, infra, tmp_path: Path):
    tree.write("infra/a.yaml", MANIFEST % "[a]")
    tree.commit()
    (tmp_path / "secret.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: planted}\n")
    (infra / "b.yaml").symlink_to(tmp_path / "secret.yaml")
    head = compiled(tree, command, tmp_path)
    assert "cGxhbnRlZ" not in head.read_text()
    answer = command(
        "review", "infra", "--base", "HEAD", "--head", str(head), "--format", "json", cwd=tree.root
    )
    assert [each["name"] for each in json.loads(answer.out)["notKnown"]] == ["infra/b.yaml"]


def test_what_was_compiled_into_a_folder_is_no_manifest_of_it(tree, command):
    tree.write("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n")
    tree.commit()
    for _ in range(2):
        assert "compiled 1 file of" in command("compile", cwd=tree.root).err
    simulated = command("simulate", "--fleet", "hgx-h100", cwd=tree.root)
    assert (simulated.code, simulated.codes) == (0, set())
    reviewed = command("review", "--base", "HEAD", cwd=tree.root)
    assert (reviewed.code, reviewed.codes) == (0, set())
    assert (
        "checked 1 object on Kubernetes 1.34 and 1.37: 0 errors"
        in command("validate", ".", cwd=tree.root).err
    )


@pytest.mark.parametrize("more", [{"apiVersion": "v1", "kind": "Pod"}, {"kind": "List", "items": [{}]}])
def test_no_object_hides_as_what_was_compiled(tree, command, tmp_path: Path, more: dict[str, Any]):
    tree.write("a.yaml", MANIFEST % "[]")
    tree.write("b.json", json.dumps({"format": "dra-infra/compiled/3", **more}))
    tree.write("c.json", '{"format": "dra-infra/compiled/3"}\n{"apiVersion": "v1", "kind": "Pod"}')
    tree.commit()
    head = tmp_path / "head.json"
    assert command("compile", "--output", str(head), cwd=tree.root).code == 0
    assert set(json.loads(head.read_text())["files"]) == {"a.yaml", "b.json", "c.json"}
    assert command("validate", "b.json", cwd=tree.root).codes != {"nothing-checked"}
