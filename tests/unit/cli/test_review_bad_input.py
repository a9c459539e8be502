from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Tree

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n---\n"


@pytest.fixture
def manifests(tree):
    tree.write("k/a.yaml", CONFIG % "a")
    tree.commit()
    return tree


def left_out(answer) -> dict[str, str]:
    assert answer.code == 0, answer.err
    return {each["name"]: each["reason"] for each in json.loads(answer.out)["notKnown"]}


def names(answer) -> list[str]:
    assert answer.code in (0, 1), answer.err
    return [each["object"]["name"] for each in json.loads(answer.out)["changes"]]


@pytest.mark.parametrize("revision", ["nope", "origin/nope", "-x", "", "HEAD~7", "a b", "HEAD:k", "\x1b[31m"])
def test_a_base_that_is_not_there_ends_with_2(manifests, review, revision: str):
    answer = review("k", "--base", revision)
    assert (answer.code, answer.out) == (2, "")
    assert "base-not-found" in answer.codes
    assert "\x1b" not in answer.err


def test_without_a_review_the_file_of_the_comment_says_so(manifests, review):
    marker = review("k", "--format", "markdown").out.splitlines()[0]
    answer = review("k", "--base", "nope", "--markdown", "review.md", "--json", "review.json")
    assert (answer.code, answer.codes) == (2, {"base-not-found"})
    text = (manifests.root / "review.md").read_text()
    assert text.startswith(f"{marker}\n### ❔ There is no review\n")
    assert "`base-not-found`" in text
    report = json.loads((manifests.root / "review.json").read_text())
    assert report["schema"] == "dra-infra.problems/v1"
    assert [each["code"] for each in report["problems"]] == ["base-not-found"]


def test_without_a_project_no_file_of_a_comment_is_written(manifests, review):
    assert review("other", "--markdown", "review.md").code == 2
    assert not (manifests.root / "review.md").exists()


@pytest.fixture
def shallow(tree, tmp_path: Path) -> Tree:
    """A clone of one commit and one branch, as CI makes them; `old` is its parent."""
    tree.write("k/a.yaml", CONFIG % "old")
    tree.commit()
    tree.git("tag", "v1")
    tree.git("branch", "old")
    tree.write("k/a.yaml", CONFIG % "new")
    tree.commit()
    clone = tmp_path / "clone"
    url = f"file://{tree.root}"
    tree.git("config", "uploadpack.allowAnySHA1InWant", "true")
    tree.git("clone", "--depth=1", "--single-branch", "--branch=main", url, str(clone))
    return Tree(clone)


@pytest.mark.parametrize("base", ["origin/old", "v1", "HEAD~1", "HEAD^", "hash"])
def test_a_shallow_clone_is_told_the_command_that_works(tree, shallow, command, base: str):
    revision = tree.git("rev-parse", "old") if base == "hash" else base
    answer = command("review", "k", "--base", revision, cwd=shallow.root)
    assert answer.code == 2
    assert "shallow clone" in answer.err
    fetch = answer.err.partition("`")[2].partition("`")[0]
    assert fetch.startswith(("git fetch --depth=", "git fetch --deepen="))
    subprocess.run(shlex.split(fetch), cwd=shallow.root, check=True, capture_output=True)
    again = "FETCH_HEAD" if "--base FETCH_HEAD" in answer.err else revision
    answer = command("review", "k", "--base", again, "--format", "json", cwd=shallow.root)
    assert names(answer) == ["old", "new"]


def test_a_working_tree_that_differs_from_its_commit_is_reviewed_and_told(manifests, review):
    manifests.write("k/b.yaml", CONFIG % "b")
    manifests.commit()
    manifests.write("k/c.yaml", CONFIG % "c")
    answer = review("k", "--base", "HEAD~1", "--format", "json")
    assert names(answer) == ["b", "c"]
    (note,) = json.loads(answer.out)["notes"]
    assert "1 file not committed (k/c.yaml)" in note


def test_reports_of_the_last_run_are_no_uncommitted_work(manifests, review):
    manifests.write("k/b.yaml", CONFIG % "b")
    manifests.commit()
    arguments = ("--base", "HEAD~1", "--html", "k/r.html", "--markdown", "k/r.md", "--format", "json")
    assert [json.loads(review("k", *arguments).out)["notes"] for _ in "ab"] == [[], []]


@pytest.fixture
def submodule(manifests, tmp_path: Path):
    inner = Tree(tmp_path / "inner")
    inner.write("b.yaml", CONFIG % "inner")
    inner.commit()
    manifests.git("submodule", "add", f"file://{inner.root}", "k/inner")
    manifests.commit()
    return manifests


def test_a_submodule_is_unpacked_from_its_clone(submodule, review):
    submodule.write("k/inner/b.yaml", CONFIG % "changed")
    assert names(review("k", "--format", "json")) == ["inner", "changed"]


def test_a_change_in_a_submodule_is_told_in_a_note(submodule, review):
    submodule.write("k/c.yaml", CONFIG % "c")
    submodule.commit()
    submodule.write("k/inner/b.yaml", CONFIG % "changed")
    (note,) = json.loads(review("k", "--base", "HEAD~1", "--format", "json").out)["notes"]
    assert "1 file not committed (k/inner)" in note


def test_a_submodule_whose_repository_lies_in_its_own_folder_is_not_read(submodule, review):
    (submodule.root / "k/inner/.git").unlink()
    (submodule.root / ".git/modules/k/inner").rename(submodule.root / "k/inner/.git")
    submodule.git("config", "--file", "k/inner/.git/config", "--unset", "core.worktree")
    assert "git submodule absorbgitdirs" in left_out(review("k", "--format", "json"))["k/inner"]
    # And where the user stands in it, it is the user's.
    submodule.git("submodule", "absorbgitdirs")
    assert left_out(review("k", "--format", "json")) == {}


def test_a_submodule_without_a_clone_is_told(submodule, review):
    submodule.git("submodule", "deinit", "--force", "k/inner")
    assert "git submodule update --init" in left_out(review("k", "--format", "json"))["k/inner"]


def test_links_that_lead_out_are_neither_followed_nor_unpacked(manifests, review, tmp_path: Path):
    outside = tmp_path / "outside.yaml"
    outside.write_text(CONFIG % "outside")
    (manifests.root / "k/out.yaml").symlink_to(outside)
    (manifests.root / "k/up.yaml").symlink_to("../../outside.yaml")
    (manifests.root / "k/folder").symlink_to(tmp_path)
    manifests.commit()
    manifests.write("k/a.yaml", CONFIG % "a2")
    answer = review("k", "--format", "json")
    assert names(answer) == ["a", "a2"]
    assert {"k/out.yaml", "k/up.yaml", "k/folder"} <= set(left_out(answer))
    assert "outside" not in answer.out.replace("out of the", "")


def test_a_link_inside_the_repository_is_followed_on_both_sides(manifests, review):
    manifests.write("shared/b.yaml", CONFIG % "b")
    (manifests.root / "k/b.yaml").symlink_to("../shared/b.yaml")
    manifests.commit()
    assert names(review("k", "--format", "json")) == []


def test_files_that_archives_leave_out_are_told(manifests, review):
    manifests.write(".gitattributes", "k/b.yaml export-ignore\n")
    manifests.write("k/b.yaml", CONFIG % "b")
    manifests.commit()
    answer = review("k", "--format", "json")
    assert "export-ignore" in left_out(answer)["k/b.yaml"]


def test_pointers_of_git_lfs_are_told(manifests, review):
    manifests.write("k/big.yaml", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n")
    answer = review("k")
    assert answer.code == 1
    assert "lfs-pointer" in answer.codes
    assert "git lfs pull" in answer.out


def test_a_bare_repository_is_told(manifests, command, tmp_path: Path):
    manifests.git("clone", "--bare", str(manifests.root), str(tmp_path / "bare.git"))
    answer = command("review", ".", "--source", "manifests", cwd=tmp_path / "bare.git")
    assert (answer.code, "no-repository" in answer.codes, "bare" in answer.err) == (2, True, True)


def test_a_folder_outside_a_repository_is_told(command, tmp_path: Path):
    (tmp_path / "a.yaml").write_text(CONFIG % "a")
    answer = command("review", cwd=tmp_path)
    assert (answer.code, "no-repository" in answer.codes, "--base-path" in answer.err) == (2, True, True)


def test_a_repository_of_another_user_is_told_with_the_command(
    manifests, review, monkeypatch, tmp_path: Path
):
    # A variable would not reach git.
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nGIT_TEST_ASSUME_DIFFERENT_OWNER=1 exec {shutil.which("git")} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    answer = review("k")
    assert (answer.code, "no-repository" in answer.codes) == (2, True)
    assert "git config --global --add safe.directory" in answer.err


@pytest.mark.parametrize("path", ["absent", "absent/deeper.yaml"])
def test_a_path_that_is_not_there_is_told(manifests, review, path: str):
    answer = review(path)
    assert (answer.code, "no-project" in answer.codes) == (2, True)


def test_a_folder_without_anything_is_told(manifests, review):
    (manifests.root / "empty").mkdir()
    answer = review("empty")
    assert (answer.code, "no-project" in answer.codes) == (2, True)


def test_a_base_path_that_is_not_there_is_told(manifests, review):
    answer = review("k", "--base-path", "absent")
    assert (answer.code, "base-not-found" in answer.codes) == (2, True)


def test_a_damaged_repository_is_told(manifests, review):
    blob = manifests.git("rev-parse", "HEAD:k/a.yaml")
    (manifests.root / ".git/objects" / blob[:2] / blob[2:]).unlink()
    answer = review("k")
    assert (answer.code, "base-not-archived" in answer.codes) == (2, True)


def test_what_was_unreadable_at_the_base_does_not_fail_the_head(manifests, review):
    manifests.write("k/b.yaml", "a: [\n")
    manifests.commit()
    manifests.write("k/b.yaml", CONFIG % "b")
    answer = review("k", "--format", "json")
    assert names(answer) == ["b"]
    assert any("yaml-syntax" in reason for reason in left_out(answer).values())


def test_what_is_unreadable_at_the_head_fails_at_its_line(manifests, review):
    manifests.write("k/b.yaml", "a: 1\nb: [\n")
    answer = review("k", "--format", "json")
    assert answer.code == 1
    (found,) = json.loads(answer.out)["problems"]
    assert (found["code"], found["place"]["file"]) == ("yaml-syntax", "k/b.yaml")


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, "fleet-unreadable"), (b"\xff\xfe", "fleet-unreadable"), (b"a: [", "yaml-syntax")],
)
def test_a_snapshot_that_cannot_be_read_is_told(manifests, review, content: bytes | None, code: str):
    if content is not None:
        manifests.write("cluster.yaml", content)
    answer = review("k", "--snapshot", "cluster.yaml")
    assert (answer.code, code in answer.codes) == (2, True)


HOSTILE = (
    *("`fence`", "a|b", "<script>alert(1)</script>", "\x1b[31mred", "\u202egnp.exe", "a\nb", "--option"),
    *("::error::x", "]]>", "\ud83d"),
)


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json", "sarif", "junit"])
def test_hostile_names_and_long_values_pass_through_every_form(manifests, review, form: str):
    objects = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": name},
            "data": {name: name},
        }
        for name in HOSTILE
    ]
    objects.append(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "x" * 2**20},
            "data": {"a": "y" * 2**20},
        }
    )
    manifests.write("k/<b>`$(x)`.json", json.dumps({"kind": "List", "items": objects}))
    answer = review("k", "--format", form)
    assert answer.code in (0, 1), answer.err
    assert "\x1b" not in answer.out
    assert "\u202e" not in answer.out
    assert "<script>alert(1)" not in (answer.out if form == "html" else "")
    assert len(answer.out) < 8 * 2**20
