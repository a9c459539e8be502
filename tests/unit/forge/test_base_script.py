from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def git(folder: Path, *arguments: str) -> str:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    return subprocess.run(
        ["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """Three commits on main, and a branch merged for a pull request."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for name in ("one", "two", "three"):
        (folder / name).write_text(name)
        git(folder, "add", name)
        git(folder, "commit", "--quiet", "--message", f"{name}\n\nparent of nothing")
    git(folder, "tag", "v1", "HEAD~2")
    git(folder, "checkout", "--quiet", "-b", "branch", "HEAD~1")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "change")
    git(folder, "checkout", "--quiet", "-b", "merged", "main")
    git(folder, "merge", "--quiet", "--no-ff", "--message", "merge", "branch")
    return folder


def clone(origin: Path, *options: str, branch: str = "merged") -> Path:
    target = origin.parent / "clone"
    git(origin.parent, "clone", "--quiet", "--branch", branch, *options, f"file://{origin}", str(target))
    return target


def base(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DRA_INFRA_"))}
    return subprocess.run(
        ["bash", str(ROOT / "ci" / "base.sh")],
        cwd=folder,
        env={**ours, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_merge_is_compared_with_the_branch_that_it_merges_into(origin: Path):
    folder = clone(origin, "--depth=1")
    merge = git(origin, "rev-parse", "merged")
    # The event still names the branch as it was when the pull request was opened.
    result = base(
        folder, DRA_INFRA_MERGE_COMMIT=merge, DRA_INFRA_EVENT_BASE=git(origin, "rev-parse", "main~1")
    )
    assert result.stdout.strip() == git(origin, "rev-parse", "main")


def test_a_merge_with_a_long_message_has_its_parents_too(origin: Path):
    message = origin.parent / "message"
    message.write_text("merge\n\nparent of nothing\n" + "a line of a long message\n" * 10_000)
    git(origin, "commit", "--quiet", "--amend", "--file", str(message))
    folder = clone(origin, "--depth=1")
    result = base(folder, DRA_INFRA_MERGE_COMMIT=git(origin, "rev-parse", "merged"))
    assert result.stdout.strip() == git(origin, "rev-parse", "main"), result.stderr


def test_a_merge_that_the_branch_itself_made_is_not_taken_for_it(origin: Path):
    folder = clone(origin, "--depth=1")
    wanted = git(origin, "rev-parse", "main~1")
    assert base(folder, DRA_INFRA_MERGE_COMMIT="0" * 40, DRA_INFRA_EVENT_BASE=wanted).stdout.strip() == wanted


@pytest.mark.parametrize("name", ["main", "origin/main", "v1", "{sha}"])
def test_what_a_shallow_clone_lacks_is_fetched(origin: Path, name: str):
    folder = clone(origin, "--depth=1")
    wanted = git(origin, "rev-parse", {"v1": "v1", "{sha}": "main~1"}.get(name, "main"))
    result = base(folder, DRA_INFRA_BASE=name.format(sha=wanted))
    assert (result.stdout.strip(), result.stderr) == (wanted, "")


def test_a_full_clone_stays_full(origin: Path):
    folder = clone(origin, "--single-branch", branch="branch")
    assert base(folder, DRA_INFRA_BASE="main").stdout.strip() == git(origin, "rev-parse", "main")
    assert git(folder, "rev-parse", "--is-shallow-repository") == "false"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "gone",
        "0" * 40,
        "--upload-pack=touch pwned",
        "+main:refs/heads/x",
        "main x",
        "a\nb",
        "^HEAD",
        "HEAD~1..HEAD",
        "HEAD^@",
        "HEAD:one",
    ],
)
def test_what_cannot_be_had_is_said_with_two(origin: Path, name: str):
    folder = clone(origin, "--depth=1")
    result = base(folder, DRA_INFRA_BASE=name)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].startswith("  hint: ")
    assert "[base-not-found]" in result.stderr
    assert not (folder / "pwned").exists()


def test_a_folder_that_is_not_there_or_no_repository_is_said(origin: Path, tmp_path: Path):
    assert base(origin, DRA_INFRA_PATH="-none").returncode == 2
    result = base(tmp_path, DRA_INFRA_BASE="main")
    assert (result.returncode, "not in a git repository" in result.stderr) == (2, True)


def test_a_token_for_the_fetch_is_in_no_argument_and_no_message(origin: Path):
    folder = clone(origin, "--depth=1")
    git(folder, "remote", "set-url", "origin", str(origin.parent / "gone"))
    result = base(folder, DRA_INFRA_BASE="v1", DRA_INFRA_FETCH_TOKEN="ghs_planted0123")
    assert result.returncode == 2
    assert "planted" not in result.stderr
    script = (ROOT / "ci" / "base.sh").read_text()
    assert "-c http" not in script


def test_a_checkout_in_a_subfolder_is_the_repository_of_what_is_in_it(origin: Path, tmp_path: Path):
    folder = clone(origin, "--depth=1")
    (folder / "infra").mkdir()
    # What no checkout makes does not come before it.
    git(tmp_path, "init", "--quiet", "clone/infra")
    result = base(tmp_path, DRA_INFRA_PATH="clone/infra", DRA_INFRA_BASE="main")
    assert result.stdout.strip() == git(origin, "rev-parse", "main"), result.stderr


def test_the_script_may_start_below_the_top_and_in_a_worktree(origin: Path, tmp_path: Path):
    folder = clone(origin)
    git(folder, "worktree", "add", "--quiet", str(tmp_path / "beside"), "HEAD~1")
    (tmp_path / "beside" / "infra").mkdir()
    result = base(tmp_path / "beside" / "infra", DRA_INFRA_BASE="HEAD")
    assert result.stdout.strip() == git(origin, "rev-parse", "main"), result.stderr
    (folder / ".git" / "reftable").mkdir()
    result = base(tmp_path / "beside" / "infra", DRA_INFRA_BASE="HEAD")
    assert (result.returncode, "in a reftable" in result.stderr) == (2, True)


def test_a_file_may_be_reviewed_and_a_link_into_the_repository_followed(origin: Path, tmp_path: Path):
    folder = clone(origin)
    (tmp_path / "link").symlink_to(folder)
    for start, path in (
        (folder, "one"),
        (tmp_path, "link"),
        (tmp_path, str(folder)),
        (tmp_path / "link", "."),
    ):
        result = base(start, DRA_INFRA_PATH=path, DRA_INFRA_BASE="HEAD")
        assert result.stdout.strip() == git(origin, "rev-parse", "merged"), result.stderr


def test_a_server_that_never_answers_is_given_up(origin: Path):
    folder = clone(origin, "--depth=1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/team/infra"
        result = base(folder, DRA_INFRA_BASE="v1", DRA_INFRA_FETCH_URL=url, DRA_INFRA_FETCH_TIMEOUT="0.5")
    assert (result.returncode, "cannot be fetched" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "url", ["ext::touch pwned", "../origin", "http://127.0.0.1:1/x", "git://127.0.0.1/x"]
)
def test_an_origin_that_is_no_safe_address_is_not_asked(origin: Path, url: str):
    folder = clone(origin, "--depth=1")
    git(folder, "config", "remote.origin.url", url)
    git(folder, "config", "protocol.ext.allow", "always")
    result = base(folder, DRA_INFRA_BASE="v1")
    assert (result.returncode, "no origin to fetch it from" in result.stderr) == (2, True)
    assert not (folder / "pwned").exists()


def test_a_clone_without_blobs_fetches_none_of_them(origin: Path):
    git(origin, "config", "uploadpack.allowFilter", "true")
    folder = clone(origin, "--filter=blob:none")
    git(folder, "config", "remote.origin.url", str(origin.parent / "gone"))
    assert base(folder, DRA_INFRA_BASE="origin/main~1").stdout.strip() == git(origin, "rev-parse", "main~1")


def test_nothing_is_left_behind(origin: Path, tmp_path: Path):
    (tmp_path / "temporary").mkdir()
    folder = clone(origin, "--depth=1")
    before = sorted(folder.glob(".git/*"))
    base(folder, DRA_INFRA_BASE="v1", TMPDIR=str(tmp_path / "temporary"))
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(folder.glob(".git/*")) == before
