from __future__ import annotations

import hashlib
import os
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from dra_infra import __version__
from tools import krew

ADDRESS = "https://forge.example/OWNER/dra-infra/releases/download/v0.1.0/kubectl-dra-infra.tar.gz"


@pytest.fixture
def written(tmp_path: Path) -> Path:
    assert krew.main([str(tmp_path / "krew"), "--address", ADDRESS]) == 0
    return tmp_path / "krew"


@pytest.fixture
def installed(written: Path, tmp_path: Path) -> Path:
    """The archive unpacked, with a link to its one file, as krew makes it."""
    store, linked = tmp_path / "store", tmp_path / "bin"
    linked.mkdir()
    with tarfile.open(written / krew.ARCHIVE) as opened:
        opened.extractall(store, filter="data")
    (linked / "kubectl-dra_infra").symlink_to(store / "kubectl-dra_infra")
    return linked / "kubectl-dra_infra"


def test_the_manifest_names_the_archive_by_its_hash(written: Path) -> None:
    manifest = yaml.safe_load((written / krew.MANIFEST).read_text())
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert (manifest["kind"], manifest["metadata"]["name"]) == ("Plugin", "dra-infra")
    assert manifest["spec"]["version"] == f"v{__version__}"
    assert manifest["spec"]["homepage"] == "https://forge.example/OWNER/dra-infra"
    assert len(manifest["spec"]["shortDescription"]) <= 50
    [platform] = manifest["spec"]["platforms"]
    data = (written / krew.ARCHIVE).read_bytes()
    assert (platform["uri"], platform["sha256"]) == (ADDRESS, hashlib.sha256(data).hexdigest())
    with tarfile.open(written / krew.ARCHIVE) as opened:
        modes = {each.name: each.mode for each in opened}
    assert modes == {"kubectl-dra_infra": 0o755, "kubectl_complete-dra_infra": 0o755, "LICENSE": 0o644}
    assert platform["bin"] in modes


def test_equal_sources_give_equal_bytes() -> None:
    assert krew.archive() == krew.archive()


def test_the_plugin_runs_the_command_on_the_path(installed: Path, tmp_path: Path) -> None:
    command = tmp_path / "other" / "dra-infra"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    command.chmod(0o755)
    result = subprocess.run(
        [installed, "status", "a b"],
        env={"PATH": f"{command.parent}{os.pathsep}{os.defpath}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout, result.returncode) == ("status a b\n", 3)


def test_without_the_command_the_plugin_names_it(installed: Path) -> None:
    result = subprocess.run(
        [installed], env={"PATH": os.defpath}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 2
    assert "pipx install dra-infra" in result.stderr
