"""`pulumi package add` with the address of a git repository."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.languages.git_server import serve
from tests.support.lab import Lab
from tests.support.pages.documents import ROOT
from tools.pulumi_home import PulumiHome

pytestmark = pytest.mark.e2e


def git(folder: Path, *arguments: str) -> None:
    settings = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repositories(tmp_path: Path) -> Path:
    """A folder with the bare repository `org/dra-infra.git`, whose tag v0.1.0 has the folder of the package.

    What Pulumi's own host installs into the environment of the folder is committed: the tests' host installs nothing.
    """
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "pulumi-package", clone / "pulumi-package")
    python = clone / "pulumi-package" / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    python.chmod(0o755)
    git(clone, "init")
    git(clone, "add", "--all", "--force")
    git(clone, "commit", "--message", "release")
    git(clone, "tag", "v0.1.0")
    bare = tmp_path / "repositories" / "org" / "dra-infra.git"
    bare.parent.mkdir(parents=True)
    git(clone, "clone", "--bare", str(clone), str(bare))
    return bare.parents[1]


def test_the_folder_of_a_repository_is_a_package(
    home: PulumiHome, repositories: Path, tmp_path: Path
) -> None:
    lab = Lab.create(tmp_path, home=home, namespace="ml", environment={})
    file = lab.stack.directory / "Pulumi.yaml"
    file.write_text(yaml.safe_dump({"name": "project", "runtime": "yaml", "plugins": lab.home.plugins}))
    with serve(repositories, tmp_path) as environment:
        lab.stack.environment |= {**environment, "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "false"}
        address = "https://git.example.org/org/dra-infra/pulumi-package@v0.1.0"
        lab.stack.run("package", "add", address).check()
    written = yaml.safe_load(file.read_text())
    properties = {"deviceClass": "gpu.example.com", "namespace": "ml"}
    written["resources"] = {"gpus": {"type": "dra-infra:GpuClaimTemplate", "properties": properties}}
    file.write_text(yaml.safe_dump(written))

    types = {each.type for each in lab.stack.preview().check().steps}

    assert types >= {
        "dra-infra:index:GpuClaimTemplate",
        "kubernetes:resource.k8s.io/v1:ResourceClaimTemplate",
    }
    assert written["packages"] == {"dra-infra": "git.example.org/org/dra-infra/pulumi-package@v0.1.0"}


def test_the_address_of_a_file_is_taken_for_a_path(
    home: PulumiHome, repositories: Path, tmp_path: Path
) -> None:
    lab = Lab.create(tmp_path, home=home, namespace="ml", environment={})

    added = lab.stack.run("package", "add", f"{(repositories / 'org').as_uri()}/dra-infra.git")

    assert added.exit_code == 1
    assert "no such file or directory" in added.text
    assert "dra-infra" not in lab.stack.directory.joinpath("Pulumi.yaml").read_text()
