"""A revision of a repository in a temporary folder, from `git archive`: no checkout is touched."""

from __future__ import annotations

import contextlib
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from dra_infra.errors import Problem, ProgramError


@contextlib.contextmanager
def archived(directory: Path, revision: str) -> Iterator[Path]:
    """The folder *directory* as it was at *revision*, in a temporary folder that is removed at the end.

    The whole repository is unpacked, for a program may import from beside itself.

    Raises:
        ProgramError: With codes `no-repository`, `base-not-found`.
    """
    if not directory.is_dir():
        raise ProgramError(
            [
                Problem(
                    path=str(directory),
                    code="no-project",
                    message="is not a folder",
                    hint="name a Pulumi project",
                )
            ]
        )
    top, prefix = _locate(directory)
    commit = _resolve(top, revision)
    with tempfile.TemporaryDirectory(prefix="dra-infra-base-") as folder:
        with (
            subprocess.Popen(["git", "-C", str(top), "archive", commit], stdout=subprocess.PIPE) as process,
            tarfile.open(fileobj=process.stdout, mode="r|") as archive,
        ):
            archive.extractall(folder, filter="data")
        yield Path(folder) / prefix


def _locate(directory: Path) -> tuple[Path, str]:
    result = _git(directory, "rev-parse", "--show-toplevel", "--show-prefix")
    if result is None:
        raise ProgramError(
            [
                Problem(
                    path=str(directory),
                    code="no-repository",
                    message="is not in a git repository, so there is nothing to compare with",
                    hint="commit the program first, or use `dra-infra simulate`",
                )
            ]
        )
    top, _, prefix = result.partition("\n")
    return Path(top), prefix.strip()


def _resolve(top: Path, revision: str) -> str:
    # A revision that starts with a dash would be read as an option.
    commit = None
    if not revision.startswith("-"):
        commit = _git(top, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if commit is None:
        raise ProgramError(
            [
                Problem(
                    path="--base",
                    code="base-not-found",
                    message=f"{revision!r} is not a revision of this repository",
                    hint="fetch it first (in CI: a full clone, or `git fetch origin main`)",
                )
            ]
        )
    return commit


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        result = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise ProgramError(
            [
                Problem(
                    path="git",
                    code="no-git",
                    message="git is not on PATH",
                    hint="a review compares two revisions and needs git",
                )
            ]
        ) from None
    return result.stdout.rstrip("\n") if result.returncode == 0 else None
