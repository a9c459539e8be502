from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.warm_commands import warm

IDENTITY = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]


@dataclass(frozen=True)
class Answer:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str

    @property
    def codes(self) -> set[str]:
        """Codes of the problems that it printed."""
        return set(re.findall(r"\[([a-z0-9-]+)\]", self.out + self.err))


class Tree:
    """A throw-away git repository; `write` changes the working tree, `commit` keeps it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init")

    def git(self, *arguments: str) -> str:
        command = ["git", "-C", str(self.root), *IDENTITY, "-c", "protocol.file.allow=always", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(text, bytes):
            path.write_bytes(text)
        else:
            path.write_text(textwrap.dedent(text))
        return path

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--message", "a state")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "repository")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Runs `dra-infra` in this process, from a folder."""

    def call(*arguments: str, cwd: Path) -> Answer:
        from dra_infra.cli.app import main

        capfd.readouterr()
        with monkeypatch.context() as patched:
            patched.chdir(cwd)
            patched.setattr(sys, "argv", ["dra-infra", *arguments])
            # Runs programs.
            patched.setattr(sys, "executable", warm().python)
            code = 0
            try:
                main()
            except SystemExit as ended:
                code = int(ended.code or 0)
        said = capfd.readouterr()
        assert "Traceback" not in said.err + said.out
        return Answer(code, said.out, said.err)

    return call


@pytest.fixture
def review(tree: Tree, command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Runs `dra-infra review` in the repository of the test."""
    return lambda *arguments, cwd=None: command("review", *arguments, cwd=cwd or tree.root)


@pytest.fixture
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that nobody may enter or read, not even root, whom no mode keeps out."""
    folder = tmp_path / "manifests" / "locked"
    folder.mkdir(parents=True)

    def refusing(call: Callable[..., Any], *, itself: bool) -> Callable[..., Any]:
        def refuse(path: Any = ".", *arguments: Any, **named: Any) -> Any:
            at = Path(os.path.abspath(path)) if isinstance(path, str | Path) else Path()  # noqa: PTH100
            if folder in at.parents or (itself and at == folder):
                raise PermissionError(errno.EACCES, "Permission denied", str(path))
            return call(path, *arguments, **named)

        return refuse

    for name in ("stat", "lstat", "open", "scandir", "listdir"):
        itself = name in ("open", "scandir", "listdir")
        monkeypatch.setattr(os, name, refusing(getattr(os, name), itself=itself))
    return folder
