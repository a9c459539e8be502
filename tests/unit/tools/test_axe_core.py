from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tools import axe_core
from tools.errors import ToolError


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a PATH with nothing but what a test puts there."""
    monkeypatch.setenv("DRA_INFRA_CACHE", str(tmp_path / "cache"))
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    return programs


def write_npm(folder: Path, body: str) -> None:
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\n{body}\n")
    npm.chmod(npm.stat().st_mode | stat.S_IXUSR)


def test_another_archive_than_the_pinned_one_is_not_used(own_cache: Path):
    write_npm(own_cache, 'printf evil > "$5/axe-core.tgz"')
    with pytest.raises(ToolError, match="nothing of it was used"):
        axe_core.script()
    assert not list((own_cache.parent / "cache").rglob("axe.min.js"))


def test_a_missing_npm_says_what_to_install(own_cache: Path):
    assert list(own_cache.iterdir()) == []
    with pytest.raises(ToolError, match="apt-get install npm"):
        axe_core.script()


def test_what_npm_says_last_is_told(own_cache: Path):
    write_npm(own_cache, "echo first >&2; echo 'npm error no such version' >&2; exit 1")
    with pytest.raises(ToolError, match="no such version"):
        axe_core.script()


def test_a_kept_script_is_not_fetched_again(own_cache: Path):
    kept = own_cache.parent / "cache/tools" / f"axe-core-{axe_core.VERSION}" / "axe.min.js"
    kept.parent.mkdir(parents=True)
    kept.write_text("axe")
    assert axe_core.script() == "axe"
