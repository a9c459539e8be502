"""The image of the command, built for real: needs apt and its mirrors, and root for chroot."""

from __future__ import annotations

import json
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools import oci_archive
from tools.image import plugin_image, python_packages

pytestmark = pytest.mark.e2e

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: ml}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: COUNT}}]}}
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: ml}
spec:
  containers: [{name: train, image: "registry.example/train:1", resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
"""


@pytest.fixture(scope="module")
def built() -> plugin_image.Built:
    return plugin_image.build(plugin_image.COMMAND)


@pytest.fixture(scope="module")
def manifest(built: plugin_image.Built) -> dict[str, object]:
    with tarfile.open(built.archive) as outer:
        return json.load(outer.extractfile(f"blobs/{built.digest.replace(':', '/')}"))


@pytest.fixture(scope="module")
def root(built: plugin_image.Built, manifest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image as a runtime unpacks it, with a folder of manifests."""
    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)
    with tarfile.open(built.archive) as outer:
        for layer in manifest["layers"]:
            data = outer.extractfile(f"blobs/{layer['digest'].replace(':', '/')}").read()
            subprocess.run(["tar", "--extract", "--gzip", "--directory", folder], input=data, check=True)
    # A runtime makes the devices.
    (folder / "dev" / "null").touch()
    (folder / "dev" / "null").chmod(0o666)
    input_folder = folder / "input"
    input_folder.mkdir()
    (input_folder / "right.yaml").write_text(CLAIM.replace("COUNT", "2") + POD)
    (input_folder / "wrong.yaml").write_text(CLAIM.replace("COUNT", "-1"))
    return folder


def inside(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the image in it, with its environment and as a user without rights."""
    prefix = ["/usr/sbin/chroot", "--userspec=65534:65534", str(root)]
    return subprocess.run(
        [*prefix, *command], env=plugin_image.ENVIRONMENT, capture_output=True, text=True, check=False
    )


def test_the_image_starts_the_command_and_is_known_by_its_digest(
    built: plugin_image.Built, manifest, root: Path
):
    assert oci_archive.digests(built.archive) == (built.digest,)
    with tarfile.open(built.archive) as outer:
        digest = manifest["config"]["digest"].replace(":", "/")
        config = json.load(outer.extractfile(f"blobs/{digest}"))["config"]
    assert config["Entrypoint"] == ["/usr/local/bin/dra-infra"]
    assert config["Labels"]["org.opencontainers.image.title"] == "dra-infra"
    done = inside(root, *config["Entrypoint"], "--version")
    assert (done.stdout, done.stderr) == ("dra-infra 0.1.0\n", "")


def test_it_checks_and_places_manifests(root: Path):
    checked = inside(root, "dra-infra", "validate", "/input/wrong.yaml")
    assert checked.returncode == 1
    assert "[count-below-one]" in checked.stderr
    placed = inside(root, "dra-infra", "simulate", "/input/right.yaml", "--fleet", "hgx-h100", "--json")
    assert placed.returncode == 0, placed.stderr
    assert json.loads(placed.stdout)["joint"]["verdict"] == "always"
    assert "Examples:" in inside(root, "dra-infra", "validate", "--help").stdout


def test_the_contents_name_every_package_with_its_version(root: Path):
    contents = json.loads((root / plugin_image.CONTENTS).read_text())
    found = {each["name"]: each["version"] for each in contents["python"]}
    assert {"dra_infra", "pulumi", "cel_expr_python", "click"} <= found.keys()
    text = python_packages.COMMAND_REQUIREMENTS.read_text()
    assert all(f"{name.replace('_', '-')}=={found[name]}" in text for name in ("pulumi", "click"))


def test_no_folder_of_this_machine_is_named_in_it(root: Path):
    done = subprocess.run(
        [
            "grep",
            "--recursive",
            "--files-with-matches",
            "--fixed-strings",
            str(python_packages.ROOT),
            str(root),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""
