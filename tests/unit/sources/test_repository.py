from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.errors import Problem, ProgramError
from dra_infra.sources import git as calls
from dra_infra.sources import revision as revisions
from dra_infra.sources.repository import Repository, find_repository
from dra_infra.sources.revision import archived


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def make(folder: Path, *options: str) -> Path:
    """A repository with two commits that change `infra/a`."""
    (folder / "infra").mkdir(parents=True)
    git(folder, "init", *options)
    for text in ("one", "two"):
        (folder / "infra" / "a").write_text(text)
        git(folder, "add", "--all")
        git(folder, "commit", "--message", text)
    return folder


@pytest.fixture
def top(tmp_path: Path) -> Path:
    return make(tmp_path / "top")


def refused(path: Path) -> Problem:
    with pytest.raises(ProgramError) as error:
        find_repository(path)
    (problem,) = error.value.problems
    assert problem.code == "no-repository"
    return problem


def text_at(path: Path, revision: str) -> str:
    with archived(find_repository(path), revision) as old:
        return (old.root / "a").read_text()


ONE_COMMIT = [
    "HEAD",
    "main",
    "v1",
    "HEAD~1",
    "HEAD^",
    "HEAD^{}",
    "HEAD^{/one}",
    ":/two",
    "@{-1}",
    "HEAD@{1}",
    "@",
    "FETCH_HEAD",
]


@pytest.mark.parametrize("revision", ONE_COMMIT)
def test_what_names_one_commit_is_a_base(top: Path, revision: str):
    git(top, "tag", "--annotate", "--message", "v1", "v1")
    git(top, "checkout", "-b", "other")
    git(top, "fetch", ".", "main")
    assert find_repository(top).resolve(revision) == git(
        top, "rev-parse", f"{revision}^0" if revision[0] != ":" else "HEAD"
    )


SEVERAL = ["^HEAD", "HEAD~1..HEAD", "HEAD~1...HEAD", "HEAD^@", "HEAD^!", "HEAD^-", "--all", "--not", "-", ""]
NO_COMMIT = [
    "HEAD:infra",
    "HEAD:infra/a",
    "HEAD^{tree}",
    ":infra/a",
    ":/nowhere",
    "HEAD^{/nowhere}",
    "@{-9}",
    "a b",
    "x\ny",
    "x\0y",
]


@pytest.mark.parametrize("revision", [*SEVERAL, *NO_COMMIT])
def test_what_names_no_commit_or_several_is_none(top: Path, revision: str):
    # Even where a file is called so that what is asked about it looks like a commit.
    (top / "infra" / "a^{commit}").write_text("x")
    git(top, "add", "--all")
    git(top, "commit", "--message", "a file")
    with pytest.raises(ProgramError) as error:
        find_repository(top).resolve(revision)
    (problem,) = error.value.problems
    assert (problem.path, problem.code) == ("--base", "base-not-found")
    assert "git fetch" not in problem.hint


@pytest.mark.parametrize("path", ["", "infra", "infra/a", ".hidden"])
def test_a_path_is_told_from_the_top(top: Path, path: str):
    (top / ".hidden").mkdir()
    found = find_repository(top / path)
    assert (found.top, found.prefix) == (top, path)


def test_a_worktree_of_its_own_has_its_own_head(top: Path, tmp_path: Path):
    git(top, "worktree", "add", "-b", "beside", str(tmp_path / "beside"), "HEAD~1")
    (tmp_path / "beside" / "infra" / "a").write_text("changed")
    found = find_repository(tmp_path / "beside" / "infra")
    assert found.resolve("HEAD") == git(top, "rev-parse", "main~1")
    assert found.uncommitted() == {"infra/a": " M"}
    assert text_at(tmp_path / "beside" / "infra", "main") == "two"


def test_a_worktree_whose_head_is_not_in_a_file_is_refused(top: Path, tmp_path: Path):
    git(top, "worktree", "add", "-b", "beside", str(tmp_path / "beside"))
    git(top, "config", "extensions.refStorage", "reftable")
    assert "git does not read" in refused(tmp_path / "beside").message


@pytest.mark.parametrize("options", [["--object-format=sha256"], ["--separate-git-dir=../elsewhere"]])
def test_repositories_of_other_forms_are_read(tmp_path: Path, options: list[str]):
    top = make(tmp_path / "top", *options)
    assert text_at(top / "infra", "HEAD~1") == "one"


def test_packed_shallow_borrowing_and_split_repositories_are_read(top: Path, tmp_path: Path):
    git(top, "gc")
    git(top, "update-index", "--split-index")
    (top / "infra" / "a").write_text("three")
    assert find_repository(top).uncommitted() == {"infra/a": " M"}
    git(tmp_path, "clone", "--shared", str(top), "borrowing")
    assert text_at(tmp_path / "borrowing" / "infra", "HEAD~1") == "one"
    git(tmp_path, "clone", "--depth=1", f"file://{top}", "shallow")
    assert text_at(tmp_path / "shallow" / "infra", "origin/main") == "two"
    with pytest.raises(ProgramError, match="shallow clone"):
        find_repository(tmp_path / "shallow").resolve("HEAD~1")


def test_how_the_user_has_files_written_is_kept(top: Path, tmp_path: Path):
    git(top, "config", "core.autocrlf", "true")
    git(top, "config", "core.fileMode", "false")
    git(top, "config", "core.excludesFile", str(tmp_path / 'ig"no\\re'))
    (tmp_path / 'ig"no\\re').write_text("*.mine\n")
    (top / "x.mine").write_text("")
    (top / "infra" / "a").chmod(0o755)
    assert find_repository(top).uncommitted() == {}


def test_a_repository_inside_of_the_one_around_the_user_is_refused(
    top: Path, monkeypatch: pytest.MonkeyPatch
):
    inside = make(top / "clones" / "inside")
    assert find_repository(top / "infra").prefix == "infra"
    assert "inside" in refused(inside / "infra").message
    # Who stands in it means it.
    monkeypatch.chdir(inside)
    assert find_repository(inside / "infra").top == inside
    monkeypatch.chdir(top)
    assert refused(Path("clones/inside/infra")).hint == f"run the review from there: `cd {inside}` first"


def test_a_submodule_is_a_repository_of_its_own(top: Path, tmp_path: Path):
    inner = make(tmp_path / "inner")
    git(top, "-c", "protocol.file.allow=always", "submodule", "add", f"file://{inner}", "sub")
    assert text_at(top / "sub" / "infra", "HEAD~1") == "one"


def test_a_link_out_of_the_repository_is_refused_and_one_into_it_is_not(top: Path, tmp_path: Path):
    other = make(tmp_path / "other")
    (top / "out").symlink_to(other / "infra")
    assert refused(top / "out").hint == f"name the folder that it leads to: {other}/infra"
    (top / "nowhere").symlink_to(tmp_path)
    assert "leads out" in refused(top / "nowhere").message
    (tmp_path / "into").symlink_to(top / "infra")
    (top / "within").symlink_to("infra")
    (tmp_path / "around").symlink_to(top)
    for each in (tmp_path / "into", top / "within", tmp_path / "around" / "infra"):
        assert find_repository(each).prefix == "infra"


@pytest.mark.parametrize("made", ["folder", "file", "link"])
def test_a_git_that_is_no_repository_ends_the_search(top: Path, tmp_path: Path, made: str):
    # Also where the folder around it looks like a bare repository, which git would take.
    bare = make(tmp_path / "other") / ".git"
    for each in bare.iterdir():
        each.rename(top / "infra" / each.name)
    if made == "folder":
        (top / "infra" / ".git").mkdir()
    elif made == "file":
        (top / "infra" / ".git").write_text("gitdir: /nowhere\n")
    else:
        (top / "infra" / ".git").symlink_to("nowhere")
    assert "git does not read" in refused(top / "infra").message


def test_objects_that_stand_in_for_others_do_not_count(top: Path):
    git(top, "replace", git(top, "rev-parse", "HEAD"), git(top, "rev-parse", "HEAD~1"))
    assert text_at(top / "infra", "HEAD") == "two"


def test_a_base_whose_trees_are_missing_is_no_empty_base(top: Path):
    tree = git(top, "rev-parse", "HEAD~1:infra")
    (top / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    with pytest.raises(ProgramError) as error:
        text_at(top / "infra", "HEAD~1")
    (problem,) = error.value.problems
    assert (problem.code, "git archive --output=" in problem.hint) == ("base-not-archived", True)


def test_a_partial_clone_fetches_nothing_until_the_user_does(top: Path, tmp_path: Path):
    git(top, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--filter=blob:none", f"file://{top}", "partial")
    with pytest.raises(ProgramError) as error:
        text_at(tmp_path / "partial" / "infra", "HEAD~1")
    (problem,) = error.value.problems
    command = problem.hint.split("`")[3].split()
    assert command[:2] == ["git", "archive"]
    git(tmp_path / "partial", *command[1:])
    assert text_at(tmp_path / "partial" / "infra", "HEAD~1") == "one"


def code_of(repository: Repository) -> str:
    with pytest.raises(ProgramError) as error:
        repository.uncommitted()
    return error.value.problems[0].code


def test_a_git_that_does_not_end_is_ended(top: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "DEADLINE", 0.3)
    found = find_repository(top)
    (top / ".git" / "index").unlink()
    # Nobody ever writes into it.
    os.mkfifo(top / ".git" / "index")
    assert code_of(found) == "git-no-answer"


def test_a_git_that_prints_without_end_is_ended(top: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(calls, "LONGEST_OUTPUT", 100)
    found = find_repository(top)
    assert found.uncommitted() == {}
    (top / ("x" * 200)).write_text("")
    assert code_of(found) == "git-no-answer"


def test_a_base_that_fills_the_disk_is_not_unpacked(top: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(revisions, "LARGEST", 2**20)
    (top / "infra" / "large").write_bytes(bytes(2**21))
    git(top, "add", "--all")
    git(top, "commit", "--message", "large")
    with pytest.raises(ProgramError) as error:
        text_at(top / "infra", "HEAD")
    assert "files" in error.value.problems[0].message
    assert text_at(top / "infra", "HEAD~1") == "two"


def test_no_call_leaves_files_behind(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    text_at(top / "infra", "HEAD~1")
    with pytest.raises(ProgramError):
        text_at(top / "infra", "gone")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_process_that_git_leaves_behind_holds_nobody(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    left = tmp_path / "left"
    layout = find_repository(top).layout
    folder = tmp_path / "bin"
    folder.mkdir()
    # It has the pipe of errors, and is in no group of git's.
    start = "subprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL, start_new_session=True).pid"
    (folder / "git").write_text(
        f"#!{sys.executable}\nimport subprocess\nprint('answer')\nopen({str(left)!r}, 'w').write(str({start}))\n"
    )
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr("dra_infra.program.pipe_reader._QUIET", 0.1)
    try:
        assert calls.ask(layout, "status").output == "answer\n"
    finally:
        os.kill(int(left.read_text()), signal.SIGKILL)
