"""A repository of a team, made for a test: a program on main, and a branch that changes it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]

_ENVIRONMENT = """
import contextlib, os, pathlib
# Only where a test allows it.
with contextlib.suppress(PermissionError):
    pathlib.Path({seen!r}).write_text("\\n".join(sorted(os.environ)) + "\\n" + "\\n".join(os.environ.values()))
print("::error::from the program")
"""


def git(folder: Path, *arguments: str) -> str:
    """Run git as nobody in particular."""
    settings = ("-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")
    result = subprocess.run(
        ["git", *settings, "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, (arguments, result.stderr)
    return result.stdout.strip()


def source_of_dra_infra(folder: Path) -> Path:
    """What a forge gives out as dra-infra: the files of this checkout that the action needs, as one commit."""
    folder.mkdir()
    for name in ("bin", "dra_infra", "ci", "compile", "requirements"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "action.yml", folder)
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "release")
    return folder


@dataclass
class Sample:
    """`work` is a developer's clone; `origin` what the forge holds; `seen` what the program saw of its environment."""

    folder: Path
    seen: Path

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def origin(self) -> str:
        return f"file://{self.folder / 'origin.git'}"

    def change(self, old: str, new: str) -> tuple[str, str]:
        """Commit a change to the branch, and merge it for the forge; its commits of the branch and of the merge."""
        program = self.work / "infra" / "__main__.py"
        text = program.read_text()
        assert old in text
        git(self.work, "checkout", "--quiet", "branch")
        program.write_text(text.replace(old, new) if new not in text else text)
        git(self.work, "commit", "--quiet", "--all", "--message", "change\n\nparent 0000")
        head = git(self.work, "rev-parse", "HEAD")
        git(self.work, "checkout", "--quiet", "--detach", "main")
        git(self.work, "merge", "--quiet", "--no-ff", "--message", "merge", "branch")
        merge = git(self.work, "rev-parse", "HEAD")
        git(self.work, "push", "--quiet", "--force", "origin", "branch", f"{merge}:refs/pull/42/merge")
        git(self.work, "checkout", "--quiet", "branch")
        return head, merge

    def checkout(self, name: str, commit: str) -> Path:
        """What the CI has: one commit and nothing else."""
        clone = self.folder / name
        if clone.exists():
            shutil.rmtree(clone)
        clone.mkdir()
        git(clone, "init", "--quiet")
        git(clone, "remote", "add", "origin", self.origin)
        git(clone, "fetch", "--quiet", "--no-tags", "--depth=1", "origin", commit)
        git(clone, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return clone


def make_sample(folder: Path) -> Sample:
    """The quickstart in a folder of a repository, with two commits on main so that a shallow clone lacks one."""
    sample = Sample(folder=folder, seen=folder / "seen.txt")
    sample.work.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "origin.git")
    # Its address on the forge.
    (folder / "team").mkdir()
    (folder / "team" / "infra").symlink_to(folder / "origin.git")
    (folder / "team" / "infra.git").symlink_to(folder / "origin.git")
    git(sample.work, "init", "--quiet")
    git(sample.work, "remote", "add", "origin", sample.origin)
    (sample.work / "README.md").write_text("infrastructure of a team\n")
    git(sample.work, "add", "--all")
    git(sample.work, "commit", "--quiet", "--message", "begin")
    shutil.copytree(ROOT / "examples" / "00-quickstart", sample.work / "infra")
    program = sample.work / "infra" / "__main__.py"
    program.write_text(program.read_text() + _ENVIRONMENT.format(seen=str(sample.seen)))
    git(sample.work, "add", "--all")
    git(sample.work, "commit", "--quiet", "--message", "the program")
    git(sample.work, "push", "--quiet", "origin", "main")
    git(sample.work, "checkout", "--quiet", "-b", "branch")
    return sample
