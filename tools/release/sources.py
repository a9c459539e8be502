"""The sources that a release is built from: the files that git tracks, as they lie here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

from tools.errors import ToolError

ROOT: Final = Path(__file__).parent.parent.parent


def tracked(root: Path = ROOT) -> list[str]:
    """Paths that git tracks and that are there, sorted.

    Raises:
        ToolError: When *root* is no repository.
    """
    listed = _git(root, "ls-files", "-z").split("\0")
    return sorted(name for name in listed if name and os.path.lexists(root / name))


def untracked(root: Path = ROOT) -> list[str]:
    """Paths that are neither tracked nor ignored: no release has them.

    Raises:
        ToolError: When *root* is no repository.
    """
    return sorted(filter(None, _git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0")))


def commit_time(root: Path = ROOT) -> int:
    """Seconds since 1970 at which the commit was made.

    Raises:
        ToolError: When there is no commit.
    """
    return int(_git(root, "log", "-1", "--format=%ct"))


def copy(folder: Path, root: Path = ROOT) -> None:
    """Copy what git tracks into *folder*, with the bit that makes a file a program, and with no other mode or time."""
    for name in tracked(root):
        source = root / name
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink():
            target.symlink_to(source.readlink())
        else:
            shutil.copyfile(source, target)
            if source.stat().st_mode & 0o100:
                target.chmod(target.stat().st_mode | 0o100)


def version(root: Path = ROOT) -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def notes(text: str, heading: str) -> str:
    """What the changelog *text* says below the heading of a version, or of `Unreleased`.

    Raises:
        ToolError: When there is no such heading, or nothing below it.
    """
    found = re.search(
        rf"^## {re.escape(heading)}(?: - [^\n]*)?\n(?P<notes>.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL
    )
    if found is None or not found["notes"].strip():
        raise ToolError(
            f"CHANGELOG.md says nothing below `## {heading}`",
            hint=f"write a line `## {heading} - DATE` above the changes",
        )
    return found["notes"].strip() + "\n"


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(
            f"git {arguments[0]} failed: {done.stderr.strip()}", hint="run it in a clone of the repository"
        )
    return done.stdout
