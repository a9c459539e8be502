"""What git says of a working tree: where it begins, what a revision is, which files are not committed."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ProgramError

_HASH: Final = re.compile(r"[0-9a-f]{7,64}")
_BEHIND: Final = re.compile(r"(?P<from>[^~^]+)(?P<steps>(?:[~^]\d*)+)")


@dataclass(frozen=True, slots=True)
class Repository:
    """A working tree.

    Args:
        top: Its folder.
        prefix: The folder or file that was asked about, from *top*; empty for *top* itself.
    """

    top: Path
    prefix: str

    def command(self, *arguments: str) -> list[str]:
        """A call of git; paths are taken literally, and nothing asks for a password."""
        return ["git", "-C", str(self.top), "--literal-pathspecs", *arguments]

    def git(self, *arguments: str) -> str | None:
        """What git prints; None when it fails.

        Raises:
            ProgramError: `no-git`.
        """
        done = _run(self.command(*arguments))
        return done.stdout if done.returncode == 0 else None

    def resolve(self, revision: str) -> str:
        """The full hash of the commit.

        Raises:
            ProgramError: `base-not-found`, with the command that fetches it.
        """
        # A revision that starts with a dash would be read as an option.
        if not revision.startswith("-") and "\0" not in revision:
            commit = self.git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
            if commit is not None:
                return commit.strip()
        shallow = (self.git("rev-parse", "--is-shallow-repository") or "").strip() == "true"
        message = f"{revision[:200]!r} is not a revision of this repository"
        if shallow:
            message += ", which is a shallow clone"
        raise ProgramError(
            [
                Problem(
                    path="--base",
                    code="base-not-found",
                    message=message,
                    hint=self._how_to_fetch(revision, shallow=shallow),
                )
            ]
        )

    def uncommitted(self, *, everything: bool = False) -> dict[str, str]:
        """Files below the folder that differ from the last commit, or are not in it, with git's two letters.

        Args:
            everything: Whether to name every file of folders that git does not know.
        """
        untracked = "all" if everything else "normal"
        arguments = ["status", "--porcelain=v1", "-z", f"--untracked-files={untracked}", "--no-renames"]
        said = self.git(*arguments, *(["--", self.prefix] if self.prefix else []))
        return {line[3:]: line[:2] for line in (said or "").split("\0") if line}

    def _how_to_fetch(self, revision: str, *, shallow: bool) -> str:
        remotes = (self.git("remote") or "").split()
        depth = "--depth=1 " if shallow else ""
        remote, _, branch = revision.partition("/")
        behind = _BEHIND.fullmatch(revision)
        if not remotes or not re.fullmatch(r"[\w./~^-]+", revision):
            return "name a branch, a tag or a commit; `git log --oneline` lists commits"
        if (
            behind
            and self.git("rev-parse", "--verify", "--quiet", f"{behind['from']}^{{commit}}") is not None
        ):
            if not shallow:
                return "its history is not that long; `git log --oneline` lists it"
            steps = sum(int(each or 1) for each in re.findall(r"[~^](\d*)", behind["steps"]))
            return f"run `git fetch --deepen={steps}` first"
        if branch and remote in remotes:
            reference = f"+refs/heads/{branch}:refs/remotes/{remote}/{branch}"
            return f"run `git fetch {depth}{remote} {reference}` first"
        origin = "origin" if "origin" in remotes else remotes[0]
        if _HASH.fullmatch(revision):
            return f"run `git fetch {depth}{origin} {revision}` first"
        return f"run `git fetch {depth}{origin} {revision}` first, and compare with --base FETCH_HEAD"


def environment() -> dict[str, str]:
    """This process's environment, for a git that speaks English, takes no locks and asks nobody."""
    return {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def find_repository(directory: Path) -> Repository:
    """The working tree that *directory*, a folder or a file, is in.

    Raises:
        ProgramError: `no-project` when it does not exist, `no-repository`, `no-git`.
    """
    folder = directory if directory.is_dir() else directory.parent
    if not directory.exists():
        raise ProgramError(
            [
                Problem(
                    path=str(directory),
                    code="no-project",
                    message="there is no such file or folder",
                    hint="name a Pulumi project, a folder of manifests, or a chart",
                )
            ]
        )
    done = _run(["git", "-C", str(folder), "rev-parse", "--show-toplevel", "--show-prefix"])
    if done.returncode:
        raise ProgramError([_no_repository(directory, folder, done.stderr)])
    top, _, prefix = done.stdout.partition("\n")
    prefix = prefix.rstrip("\n")
    name = "" if directory.is_dir() else directory.name
    return Repository(Path(top), f"{prefix}{name}".rstrip("/"))


def _no_repository(directory: Path, folder: Path, said: str) -> Problem:
    message = "is not in a git repository, so there is nothing to compare with"
    hint = "name the former state with --base-path, or put it in git: `git init`, and commit"
    if "dubious ownership" in said:
        message = "is in a repository of another user, which git does not read"
        hint = f"run `git config --global --add safe.directory {folder.resolve()}` first"
    elif (_run(["git", "-C", str(folder), "rev-parse", "--is-bare-repository"]).stdout).strip() == "true":
        message = "is in a bare repository, which has no files to review"
        hint = "clone it: `git clone` gives a working tree"
    return Problem(path=str(directory), code="no-repository", message=message, hint=hint)


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            stdin=subprocess.DEVNULL,
            env=environment(),
            check=False,
        )
    except FileNotFoundError:
        raise ProgramError(
            [
                Problem(
                    path="git",
                    code="no-git",
                    message="git is not on PATH",
                    hint="a review compares two revisions and needs git; --base-path compares with a folder",
                )
            ]
        ) from None
