"""The sites of several versions beside each other, written by the pinned mike into a repository of the test."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import docs_site, docs_versions
from tools.errors import ToolError

pytestmark = pytest.mark.e2e


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=repository, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """What the forge keeps."""
    repository = tmp_path / "published"
    git(tmp_path, "init", "--quiet", "--bare", str(repository))
    return repository


def a_clone(published: Path, name: str) -> Path:
    """What a job of the release has: nothing but the newest commit of the branch."""
    clone = published.parent / name
    git(published.parent, "init", "--quiet", name)
    author = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    git(clone, *author, "commit", "--quiet", "--allow-empty", "--message", "what is released")
    git(clone, "remote", "add", "origin", f"file://{published}")
    if git(clone, "ls-remote", "--heads", "origin", docs_versions.BRANCH):
        git(clone, "fetch", "--quiet", "--depth", "1", "origin", "gh-pages:gh-pages")
    return clone


def test_a_version_is_added_and_those_before_stay(published: Path, tmp_path: Path):
    python = docs_site.environment()
    docs_site.build(python, tmp_path)
    for version in ("0.9.0", "0.10.0", "0.9.1"):
        job = a_clone(published, f"job-{version}")
        docs_versions.add(python, tmp_path / "pages", version, job)
        git(job, "bundle", "create", "docs.bundle", "gh-pages")
        # As the job does that may write: it knows nothing but the bundle.
        site = tmp_path / f"site-{version}"
        git(tmp_path, "init", "--quiet", "--bare", str(site))
        if git(published, "branch", "--list", "gh-pages"):
            git(site, "fetch", "--quiet", "--depth", "1", f"file://{published}", "gh-pages")
        git(site, "fetch", "--quiet", str(job / "docs.bundle"), "gh-pages:gh-pages")
        git(site, "push", "--quiet", f"file://{published}", "gh-pages:gh-pages")
    listed = json.loads(git(published, "show", "gh-pages:versions.json"))
    assert [(each["version"], each["aliases"]) for each in listed] == [
        ("0.10.0", ["latest"]),
        ("0.9.1", []),
        ("0.9.0", []),
    ]
    for name in ("0.9.0", "0.10.0", "0.9.1"):
        assert "versions" not in git(published, "show", f"gh-pages:{name}/index.html").partition("<body")[0]
        assert '"provider": "mike"' in git(published, "show", f"gh-pages:{name}/index.html")
    assert git(published, "show", "gh-pages:latest") == "0.10.0"
    assert "latest" in git(published, "show", "gh-pages:index.html")


@pytest.mark.parametrize("version", ["", "v1.2.3", "1.2", "../1.2.3", "1.2.3 --push"])
def test_what_is_no_version_is_refused(version: str, tmp_path: Path):
    with pytest.raises(ToolError, match="is no version"):
        docs_versions.add(tmp_path / "python", tmp_path, version, tmp_path)
