"""Repositories of a stranger inside the one that is reviewed: no setting of theirs counts, and no token goes to them."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.e2e.attacks.hostile_git import MANIFEST, Listener, Trap, embed, git_server, listening
from tests.support.forge.runner import clean_environment
from tests.support.forge.sample import ROOT, git

pytestmark = pytest.mark.e2e

TOKEN = "ghs_planted0123456789"
HEADER = "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
JOB_HEADER = "Basic " + base64.b64encode(f"gitlab-ci-token:{TOKEN}".encode()).decode()


class Case(NamedTuple):
    """A way to run a program by what a repository says."""

    settings: str
    attributes: str = ""
    text: str = "x"
    signature: str = ""
    incomplete: bool = False
    """Whether the blob of its manifest is missing."""
    borrows: bool = False
    """Whether it has objects of the origin by `alternates`."""


ON_REVIEW = {
    "fsmonitor": Case('[core]\nfsmonitor = "{run}"'),
    "include": Case('[include]\npath = "{folder}/included"'),
    "includeIf": Case('[includeIf "gitdir:**"]\npath = "{folder}/included"'),
    "filter.clean": Case('[filter "x"]\nclean = "{run}"', attributes="* filter=x\n"),
    "filter.smudge": Case('[filter "x"]\nsmudge = "{run}"', attributes="* filter=x\n"),
    "filter.process": Case('[filter "x"]\nprocess = "{run}"', attributes="* filter=x\n"),
    "export-subst": Case("", attributes="* export-subst\n", text="$Format:%G?$", signature="aaaa"),
    "promisor": Case(
        '[extensions]\npartialClone = origin\n[remote "origin"]\npromisor = true\nurl = "ext::{run}"\n'
        '[protocol "ext"]\nallow = always',
        incomplete=True,
    ),
    "sshCommand of a promisor": Case(
        '[extensions]\npartialClone = origin\n[remote "origin"]\npromisor = true\nurl = "ssh://x.invalid/x"\n'
        '[core]\nsshCommand = "{run}"',
        incomplete=True,
    ),
    "uploadpack of a promisor": Case(
        '[extensions]\npartialClone = origin\n[remote "origin"]\npromisor = true\nurl = "{folder}"\n'
        'uploadpack = "{run}"',
        incomplete=True,
    ),
}
"""By the setting that would run something; each did so before git was called on a view without settings."""

ON_FETCH = {
    "ext": Case('[remote "origin"]\nurl = "ext::{run}"\n[protocol "ext"]\nallow = always'),
    "vcs": Case('[remote "origin"]\nvcs = ext\nurl = "{run}"\n[protocol "ext"]\nallow = always'),
    "uploadpack": Case('[remote "origin"]\nurl = "{folder}"\nuploadpack = "{run}"'),
    "sshCommand": Case('[remote "origin"]\nurl = "ssh://x.invalid/x"\n[core]\nsshCommand = "{run}"'),
    "credential.helper": Case('[remote "origin"]\nurl = "{server}/x"\n[credential]\nhelper = "!{run}"'),
    "askPass": Case('[remote "origin"]\nurl = "{server}/x"\n[core]\naskPass = "{gpg}"'),
    "hooksPath": Case(
        '[remote "origin"]\nurl = "{origin}"\nfetch = +refs/*:refs/x/*\n[core]\nhooksPath = "{folder}/hooks"'
    ),
    "alternateRefsCommand": Case(
        '[remote "origin"]\nurl = "{origin}"\n[core]\nalternateRefsCommand = "{run}"', borrows=True
    ),
}
"""Likewise, where the base is fetched."""

EVERYTHING = (
    '[core]\nfsmonitor = "{run}"\nsshCommand = "{run}"\npager = "{run}"\neditor = "{run}"\naskPass = "{run}"\n'
    'hooksPath = "{folder}/hooks"\nalternateRefsCommand = "{run}"\ngitProxy = "{run}"\n'
    'attributesFile = "{folder}/.gitattributes"\n'
    '[diff]\nexternal = "{run}"\n[diff "x"]\ntextconv = "{run}"\ncommand = "{run}"\n[merge "x"]\ndriver = "{run}"\n'
    '[filter "x"]\nclean = "{run}"\nsmudge = "{run}"\nprocess = "{run}"\nrequired = true\n'
    '[tar "tar"]\ncommand = "{run}"\n[pager]\nstatus = "{run}"\n[alias]\nstatus = "!{run}"\narchive = "!{run}"\n'
    '[credential]\nhelper = "!{run}"\n[protocol "ext"]\nallow = always\n'
    '[remote "origin"]\nurl = "ext::{run}"\nuploadpack = "{run}"\npromisor = true\n[uploadpack]\npackObjectsHook = "{run}"\n'
)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    folder = tmp_path / "trap"
    folder.mkdir()
    return Trap(folder)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A working tree with one commit, and manifests in `infra`."""
    folder = tmp_path / "top"
    (folder / "infra").mkdir(parents=True)
    (folder / "infra" / "map.yaml").write_text(MANIFEST % "old")
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "first")
    return folder


@pytest.fixture
def shallow(tmp_path: Path, top: Path) -> Path:
    """A clone that lacks the branch `gone`, as a CI makes it, with a commit of `main` only."""
    git(top, "branch", "gone")
    (top / "infra" / "map.yaml").write_text(MANIFEST % "newer")
    git(top, "commit", "--quiet", "--all", "--message", "second")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{top}", "clone")
    return tmp_path / "clone"


@pytest.fixture
def listener() -> Iterator[Listener]:
    with listening() as running:
        yield running


@dataclass
class Planted:
    """What lies in a folder of a pull request: `commit` is in the repository that is embedded there."""

    folder: Path
    commit: str


@dataclass
class Attack:
    """Plants repositories, and notes who ran the attacker's script."""

    trap: Trap
    loot: Loot
    top: Path
    listener: Listener

    def plant(self, folder: Path, case: Case, name: str, at: Path | None = None) -> Planted:
        """Make *folder* a repository by *case*; it lies at *at* when it is used."""
        run = self.trap.command(name)
        # What a signature is checked with.
        script = self.trap.folder / "gpg"
        script.write_text(f"#!/bin/sh\n{run}\n")
        script.chmod(0o755)
        settings = case.settings
        for key, value in {
            "run": run,
            "folder": at or folder,
            "gpg": script,
            "server": self.listener.url,
            "origin": f"file://{self.top}",
        }.items():
            settings = settings.replace("{" + key + "}", str(value))
        commit = embed(folder, settings, attributes=case.attributes, text=case.text, signature=case.signature)
        (folder / "included").write_text(f'[core]\n\tfsmonitor = "{run}"\n')
        (folder / "hooks").mkdir()
        for hook in ("reference-transaction", "post-checkout", "post-index-change", "fsmonitor-watchman"):
            shutil.copy(script, folder / "hooks" / hook)
        if case.incomplete:
            blob = git(folder, "--git-dir=.", "rev-parse", "HEAD:a.yaml")
            (folder / "objects" / blob[:2] / blob[2:]).unlink()
        if case.borrows:
            (folder / "objects" / "info").mkdir(exist_ok=True)
            (folder / "objects" / "info" / "alternates").write_text(f"{self.top}/.git/objects\n")
        return Planted(folder, commit)

    def sprung(self) -> bool:
        """Note who ran the attacker's script, and which headers their server got; true where there is any."""
        for each in self.trap.sprung():
            self.loot.add(f"code run by {each}")
        for each in self.listener.authorizations:
            self.loot.add(f"{'the token' if each in (HEADER, JOB_HEADER) else each} over HTTP")
        self.loot.add_if(self.listener.asked, "a request of the job")
        return bool(self.loot.taken)


@pytest.fixture
def attack(trap: Trap, loot: Loot, top: Path, listener: Listener) -> Attack:
    return Attack(trap, loot, top, listener)


def review(cwd: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "dra-infra"), "review", *arguments],
        cwd=cwd,
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def base(cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "ci" / "base.sh")],
        cwd=cwd,
        env=clean_environment(**{"DRA_INFRA_FETCH_TOKEN": TOKEN, **variables}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("name", ON_REVIEW)
def test_a_repository_embedded_in_the_reviewed_folder_runs_nothing(top: Path, attack: Attack, name: str):
    attack.plant(top / "infra", ON_REVIEW[name], name)
    (top / "infra" / "map.yaml").write_text(MANIFEST % "new")
    path = f"{attack.trap.folder}:{os.environ['PATH']}"
    answer = review(top, "infra", "--base", "HEAD", "--format", "json", PATH=path)
    if not attack.sprung():
        # And the answer is about the repository that the user owns.
        assert "data.text" in answer.stdout, answer.stderr


@pytest.mark.parametrize("name", [*ON_REVIEW, "everything"])
def test_settings_that_an_earlier_step_left_in_the_repository_run_nothing(
    attack: Attack, tmp_path: Path, name: str
):
    own = tmp_path / "own"
    case = ON_REVIEW.get(name, Case(EVERYTHING, attributes="* filter=x diff=x merge=x\n"))
    attack.plant(own / ".git", case, name)
    git(own / ".git", "--git-dir=.", "config", "core.worktree", str(own))
    for each in ("a.yaml", ".gitattributes"):
        if (own / ".git" / each).exists():
            shutil.copy(own / ".git" / each, own)
    path = f"{attack.trap.folder}:{os.environ['PATH']}"
    answer = review(own, "--base", "HEAD", "--format", "json", PATH=path)
    if not attack.sprung():
        told = (answer.returncode, "[base-not-archived]" in answer.stderr, "data.text" in answer.stdout)
        assert told == ((2, True, False) if case.incomplete else (0, False, True)), answer.stderr


@pytest.mark.parametrize("name", ON_FETCH)
def test_a_repository_embedded_in_the_folder_of_a_job_fetches_nothing(
    shallow: Path, attack: Attack, name: str
):
    attack.plant(shallow / "infra", ON_FETCH[name], name)
    result = base(shallow, DRA_INFRA_PATH="infra", DRA_INFRA_BASE="gone")
    if not attack.sprung():
        assert result.stdout.strip() == git(attack.top, "rev-parse", "gone"), result.stderr


def test_no_server_named_by_an_embedded_repository_gets_the_token(shallow: Path, attack: Attack):
    attack.plant(shallow / "infra", Case('[remote "origin"]\nurl = "{server}/x.git"'), "url")
    result = base(shallow, DRA_INFRA_PATH="infra", DRA_INFRA_BASE="gone")
    if not attack.sprung():
        assert result.stdout.strip() == git(attack.top, "rev-parse", "gone"), result.stderr


@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("script", ["review", "base"])
def test_what_names_itself_git_in_the_reviewed_folder_is_not_followed(
    shallow: Path, attack: Attack, kind: str, script: str
):
    # No checkout makes it: an archive that was unpacked, or an earlier step.
    folder = shallow / "infra"
    place = folder / (".git" if kind == "folder" else "evil")
    if kind == "file":
        (folder / ".git").write_text("gitdir: evil\n")
    attack.plant(place, Case(EVERYTHING), f".git {kind}")
    git(place, "--git-dir=.", "config", "core.worktree", str(folder))
    if script == "review":
        answer = review(shallow, "infra", "--base", "HEAD")
        if not attack.sprung():
            assert (answer.returncode, "[no-repository]" in answer.stderr) == (2, True), answer.stderr
    else:
        result = base(shallow, DRA_INFRA_PATH="infra", DRA_INFRA_BASE="gone")
        if not attack.sprung():
            assert result.stdout.strip() == git(attack.top, "rev-parse", "gone"), result.stderr


@pytest.mark.parametrize("script", ["review", "base"])
def test_variables_of_git_that_an_earlier_step_left_are_not_followed(
    shallow: Path, attack: Attack, tmp_path: Path, script: str
):
    planted = tmp_path / "planted"
    planted.mkdir()
    attack.plant(planted, Case(EVERYTHING), "GIT_DIR")
    run = attack.trap.command("a variable")
    settings = {"core.fsmonitor": run, "remote.origin.url": f"ext::{run}", "protocol.ext.allow": "always"}
    variables = {
        "GIT_DIR": str(planted),
        "GIT_WORK_TREE": str(planted),
        "GIT_INDEX_FILE": str(planted / "index"),
        "GIT_OBJECT_DIRECTORY": str(planted / "objects"),
        "GIT_SSH_COMMAND": run,
        "GIT_ASKPASS": run,
        "GIT_EXTERNAL_DIFF": run,
        "GIT_CONFIG_COUNT": str(len(settings)),
        **{f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(settings)},
        **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(settings.values())},
    }
    (shallow / "infra" / "map.yaml").write_text(MANIFEST % "new")
    if script == "review":
        answer = review(shallow, "infra", "--base", "HEAD", "--format", "json", **variables)
        if not attack.sprung():
            assert "data.text" in answer.stdout, answer.stderr
    else:
        result = base(shallow, DRA_INFRA_PATH="infra", DRA_INFRA_BASE="gone", **variables)
        if not attack.sprung():
            assert result.stdout.strip() == git(attack.top, "rev-parse", "gone"), result.stderr


def test_objects_of_another_repository_are_not_shown_through_an_embedded_one(
    top: Path, attack: Attack, tmp_path: Path
):
    private = tmp_path / "private"
    private.mkdir()
    (private / "a.yaml").write_text(MANIFEST.replace("settings", "private-name") % "x")
    git(private, "init", "--quiet")
    git(private, "add", "--all")
    git(private, "commit", "--quiet", "--message", "private")
    commit = git(private, "rev-parse", "HEAD")
    attack.plant(top / "infra", Case(""), "alternates")
    (top / "infra" / "objects" / "info").mkdir(exist_ok=True)
    (top / "infra" / "objects" / "info" / "alternates").write_text(f"{private}/.git/objects\n")
    (top / "infra" / "refs" / "heads" / "main").write_text(f"{commit}\n")
    answer = review(top, "infra", "--base", "HEAD")
    attack.loot.add_secrets("the review", answer.stdout, "private-name")


def test_a_clone_of_a_submodule_runs_nothing(top: Path, attack: Attack, tmp_path: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    planted = attack.plant(
        inner, Case(EVERYTHING, attributes="* filter=x\n"), "submodule", top / "infra" / "sub" / ".git"
    )
    (top / "infra" / "sub").mkdir()
    (top / "infra" / "map.yaml").write_text(MANIFEST % "new")
    shutil.copy(inner / "a.yaml", top / "infra" / "sub")
    git(top, "update-index", "--add", "--cacheinfo", f"160000,{planted.commit},infra/sub")
    git(top, "commit", "--quiet", "--message", "with a submodule")
    inner.rename(top / "infra" / "sub" / ".git")
    answer = review(top, "infra", "--base", "HEAD", "--format", "json")
    if not attack.sprung():
        assert "submodule of the base" in answer.stdout, answer.stderr


def test_a_folder_that_leads_out_of_the_repository_is_refused(shallow: Path, attack: Attack, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    attack.plant(elsewhere / ".git", Case(EVERYTHING), "link")
    git(elsewhere / ".git", "--git-dir=.", "config", "core.worktree", str(elsewhere))
    (shallow / "out").symlink_to(elsewhere)
    result = base(shallow, DRA_INFRA_PATH="out", DRA_INFRA_BASE="gone")
    answer = review(shallow, "out", "--base", "HEAD")
    if not attack.sprung():
        assert (result.returncode, "[base-not-found]" in result.stderr) == (2, True), result.stderr
        assert (answer.returncode, "[no-repository]" in answer.stderr) == (2, True), answer.stderr


@pytest.fixture
def forge(tmp_path: Path, top: Path) -> Iterator[str]:
    """A server that gives the private repository `team/infra` to who has the token, and to nobody else."""
    folder = tmp_path / "forge"
    (folder / "team").mkdir(parents=True)
    git(folder, "clone", "--quiet", "--bare", str(top), "team/infra.git")
    # GitHub takes the address without ".git" too.
    (folder / "team" / "infra").symlink_to("infra.git")
    with git_server(folder, (HEADER, JOB_HEADER)) as url:
        yield url


@pytest.mark.parametrize("kind", ["GitHub", "GitLab", "GitLab's own token"])
def test_the_token_goes_to_the_server_of_the_forge_alone(
    shallow: Path, attack: Attack, forge: str, kind: str
):
    # What an earlier step can write into the repository's own settings.
    git(shallow, "config", f"url.{attack.listener.url}/.insteadOf", f"{forge}/")
    git(shallow, "config", "remote.origin.url", f"{attack.listener.url}/x.git")
    git(shallow, "config", "http.proxy", attack.listener.url)
    variables = {
        "GitHub": {"GITHUB_SERVER_URL": forge, "GITHUB_REPOSITORY": "team/infra"},
        "GitLab": {"CI_PROJECT_URL": f"{forge}/team/infra"},
        "GitLab's own token": {
            "CI_PROJECT_URL": f"{forge}/team/infra",
            "CI_JOB_TOKEN": TOKEN,
            "DRA_INFRA_FETCH_TOKEN": "",
        },
    }[kind]
    result = base(shallow, DRA_INFRA_PATH="infra", DRA_INFRA_BASE="gone", **variables)
    if not attack.sprung():
        assert result.stdout.strip() == git(attack.top, "rev-parse", "gone"), result.stderr
        # It is in the clone for whoever reads it next, and the clone is whole.
        assert git(shallow, "cat-file", "-t", result.stdout.strip()) == "commit"
        git(shallow, "fsck")


@pytest.mark.parametrize("rewrite", [False, True])
def test_no_server_that_another_one_names_gets_the_token(
    shallow: Path, attack: Attack, tmp_path: Path, rewrite: bool
):
    with listening(redirect=attack.listener.url) as first:
        git(shallow, "config", "remote.origin.url", f"{first.url}/team/infra.git")
        settings = tmp_path / "home" / ".gitconfig"
        settings.parent.mkdir()
        settings.write_text(f'[url "{attack.listener.url}/"]\ninsteadOf = {first.url}/\n' if rewrite else "")
        result = base(
            shallow,
            DRA_INFRA_PATH="infra",
            DRA_INFRA_BASE="gone",
            HOME=str(settings.parent),
            GITHUB_SERVER_URL=first.url,
            GITHUB_REPOSITORY="team/infra",
        )
    if rewrite:
        # The user's own settings name it, so it may be asked.
        attack.listener.asked.clear()
    if not attack.sprung():
        assert (result.returncode, "[base-not-found]" in result.stderr) == (2, True), result.stderr


def checkout_of_base(folder: Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """What the job with the token does first."""
    return subprocess.run(
        ["bash", str(ROOT / "ci" / "trusted.sh"), str(folder)],
        cwd=cwd,
        env=clean_environment(DRA_INFRA_FETCH_TOKEN=TOKEN, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_job_with_the_token_fetches_the_base_from_the_forge_alone(
    attack: Attack, forge: str, tmp_path: Path
):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[url "{attack.listener.url}/"]\ninsteadOf = {forge}/\n')
    folder = tmp_path / "base"
    result = checkout_of_base(
        folder,
        attack.top / "infra",
        DRA_INFRA_FETCH_URL=f"{forge}/team/infra",
        DRA_INFRA_BASE=git(attack.top, "rev-parse", "HEAD"),
        HOME=str(home),
        GIT_DIR=str(attack.top / ".git"),
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0=f"url.{attack.listener.url}/.insteadOf",
        GIT_CONFIG_VALUE_0=f"{forge}/",
    )
    if not attack.sprung():
        assert (result.returncode, result.stdout.strip()) == (0, git(attack.top, "rev-parse", "HEAD")), (
            result.stderr
        )
        assert (folder / "infra" / "map.yaml").is_file()


def test_the_job_with_the_token_follows_no_server_to_another_one(attack: Attack, tmp_path: Path):
    with listening(redirect=attack.listener.url) as first:
        result = checkout_of_base(
            tmp_path / "base", tmp_path, DRA_INFRA_FETCH_URL=f"{first.url}/team/infra", DRA_INFRA_BASE="main"
        )
    if not attack.sprung():
        assert (result.returncode, "[base-not-found]" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    "variables",
    [
        {"DRA_INFRA_BASE": "--upload-pack=x"},
        {"DRA_INFRA_BASE": "main..other"},
        {"DRA_INFRA_BASE": "main:refs/heads/x"},
        {"DRA_INFRA_BASE": "+refs/*"},
        {"DRA_INFRA_MERGE": "refs/heads/main"},
        {"DRA_INFRA_FETCH_URL": "ext::sh x.sh", "DRA_INFRA_BASE": "main"},
        {"DRA_INFRA_FETCH_URL": "http://forge.example.invalid/x", "DRA_INFRA_BASE": "main"},
        {"DRA_INFRA_FETCH_URL": "--upload-pack=x", "DRA_INFRA_BASE": "main"},
    ],
)
def test_what_is_no_base_is_not_fetched(attack: Attack, tmp_path: Path, variables: dict[str, str]):
    given = {"DRA_INFRA_FETCH_URL": f"file://{attack.top}", **variables}
    result = checkout_of_base(tmp_path / "base", tmp_path, **given)
    assert (result.returncode, "[base-not-found]" in result.stderr) == (2, True), result.stderr


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 12\n"


def trusted(folder: Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(ROOT / "ci" / "trusted.sh"), str(folder)],
        cwd=cwd,
        env=clean_environment(**{"DRA_INFRA_FETCH_TOKEN": TOKEN, **variables}),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_server_of_large_files_that_the_repository_names_is_asked_by_nobody(attack: Attack, tmp_path: Path):
    top = attack.top
    (top / "infra" / "large.yaml").write_text(LFS % ("0" * 64))
    (top / ".gitattributes").write_text("* filter=lfs diff=lfs merge=lfs -text\n")
    (top / ".lfsconfig").write_text(
        f"[lfs]\n\turl = {attack.listener.url}/lfs\n[remote]\n\tlfsdefault = evil\n"
    )
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "large files")
    # As runners of GitHub have it for every repository: what stands for git-lfs says who called it.
    home = tmp_path / "home"
    home.mkdir()
    calls = "".join(
        f'\t{each} = "{attack.trap.command(f"lfs {each}")}"\n' for each in ("clean", "smudge", "process")
    )
    (home / ".gitconfig").write_text(f'[filter "lfs"]\n\trequired = true\n{calls}')
    environment = {"HOME": str(home), "DRA_INFRA_FETCH_URL": f"file://{top}"}
    (top / "infra" / "map.yaml").write_text(MANIFEST % "new")
    answer = review(top, "infra", "--base", "HEAD", "--format", "json", HOME=str(home))
    based = base(top, DRA_INFRA_PATH="infra", DRA_INFRA_BASE="HEAD", **environment)
    checkout = trusted(
        tmp_path / "trusted", tmp_path, DRA_INFRA_BASE=git(top, "rev-parse", "HEAD"), **environment
    )
    if not attack.sprung():
        # A file that was not fetched is no empty file: there is no answer.
        assert "lfs-pointer" in answer.stderr + answer.stdout
        assert based.stdout.strip() == git(top, "rev-parse", "HEAD"), based.stderr
        assert checkout.returncode == 0, checkout.stderr
        assert (tmp_path / "trusted" / "infra" / "large.yaml").read_text() == LFS % ("0" * 64)


def test_what_a_partial_clone_lacks_is_fetched_from_no_address(attack: Attack, tmp_path: Path):
    top = attack.top
    clone = tmp_path / "clone"
    (top / "infra" / "map.yaml").write_text(MANIFEST % "newer")
    git(top, "commit", "--quiet", "--all", "--message", "second")
    git(top, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", f"file://{top}", str(clone))
    # An earlier step, or who wrote the settings, has missing objects come from elsewhere.
    git(clone, "config", "remote.origin.url", f"{attack.listener.url}/x.git")
    assert "?" in git(clone, "rev-list", "--objects", "--missing=print", "HEAD~")
    variables = {"DRA_INFRA_FETCH_URL": f"file://{top}", "DRA_INFRA_PATH": "infra", "DRA_INFRA_BASE": "HEAD~"}
    based = base(clone, **variables)
    answer = review(clone, "infra", "--base", "HEAD~")
    if not attack.sprung():
        assert based.stdout.strip() == git(top, "rev-parse", "HEAD~"), based.stderr
        assert (answer.returncode, "[base-not-archived]" in answer.stderr) == (2, True), answer.stderr
