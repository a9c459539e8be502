"""The image of the node plugin, built for real: needs apt and its mirrors, and root for chroot."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from tools import oci_archive
from tools.image import debian, import_closure, plugin_image, python_packages

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def archive() -> Path:
    return plugin_image.build().archive


@pytest.fixture(scope="module")
def root(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image as a runtime unpacks it."""
    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)
    with tarfile.open(archive) as outer:
        index = json.load(outer.extractfile("index.json"))
        (described,) = index["manifests"]
        manifest = json.load(outer.extractfile(f"blobs/{described['digest'].replace(':', '/')}"))
        for layer in manifest["layers"]:
            data = outer.extractfile(f"blobs/{layer['digest'].replace(':', '/')}").read()
            subprocess.run(["tar", "--extract", "--gzip", "--directory", folder], input=data, check=True)
    return folder


def inside(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the image in it, with its environment and as a user without rights."""
    prefix = ["/usr/sbin/chroot", "--userspec=65534:65534", str(root)]
    return subprocess.run(
        [*prefix, *command], env=plugin_image.ENVIRONMENT, capture_output=True, text=True, check=False
    )


def test_the_command_of_the_image_runs(root: Path):
    done = inside(root, "dra-infra-plugin", "--version")
    assert done.returncode == 0, done.stderr
    assert "0.1.0" in done.stdout


@pytest.mark.parametrize(
    "modules",
    [
        "grpc, google.protobuf, pydantic, prometheus_client, pynvml, urllib3, yaml",
        "ssl, ctypes, hashlib, zlib, bz2, lzma, uuid, asyncio, multiprocessing, decimal",
    ],
)
def test_what_the_plugin_needs_loads(root: Path, modules: str):
    done = inside(root, "/usr/bin/python3", python_packages.FLAGS, "-c", f"import {modules}")
    assert (done.returncode, done.stderr) == (0, "")


def test_every_module_of_the_plugin_loads_in_the_image(root: Path):
    code = (
        "import importlib, pkgutil, dra_infra.plugin as start\n"
        "for each in pkgutil.walk_packages(start.__path__, 'dra_infra.plugin.'):\n"
        "    importlib.import_module(each.name)\n"
        "import sys; print(sorted(set(sys.modules) & {'pulumi', 'cel_expr_python', 'click', 'requests'}))"
    )
    done = inside(root, "/usr/bin/python3", python_packages.FLAGS, "-c", code)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_modules_are_compiled_so_that_nothing_is_compiled_at_start(root: Path):
    code = "import dra_infra.plugin.preparations as one, grpc; print(one.__cached__); print(grpc.__cached__)"
    done = inside(root, "/usr/bin/python3", python_packages.FLAGS, "-c", code)
    assert done.returncode == 0, done.stderr
    for name in done.stdout.split():
        compiled = (root / name.lstrip("/")).read_bytes()
        # Unchecked by hash (PEP 552): no time of a build, and no look at the source.
        assert compiled[4:8] == b"\x01\x00\x00\x00"


def test_nothing_that_authors_programs_is_in_it_and_no_shell(root: Path):
    (modules,) = root.glob("usr/local/lib/python3*/dist-packages")
    present = {each.name.lower().partition("-")[0] for each in modules.iterdir()}
    assert present & set(python_packages.FORBIDDEN) == set()
    closure = import_closure.find_closure(python_packages.ROOT, python_packages.CARRIED)
    ours = {str(each.relative_to(modules)) for each in (modules / "dra_infra").rglob("*.py")}
    assert ours == {str(each.relative_to(python_packages.ROOT)) for each in closure.values()}
    assert sorted(each.name for each in (root / "usr/bin").iterdir()) == ["python3", "python3.11"]
    assert not (root / "usr/bin/sh").exists()


def test_the_contents_name_every_package_with_its_version(root: Path):
    contents = json.loads((root / plugin_image.CONTENTS).read_text())
    assert {"libc6", "libssl3"} <= {each["name"] for each in contents["debian"]}
    pinned = {
        line.split("==")[0].replace("-", "_"): line.split("==")[1].split()[0]
        for line in python_packages.REQUIREMENTS.read_text().splitlines()
        if "==" in line and not line.startswith(" ")
    }
    found = {each["name"]: each["version"] for each in contents["python"]}
    assert found == {**pinned, "dra_infra": "0.1.0"}


def test_no_folder_of_this_machine_is_named_in_it(root: Path):
    for place in {str(python_packages.ROOT), os.environ.get("HOME", "/root") + "/.cache"}:
        done = subprocess.run(
            ["grep", "--recursive", "--files-with-matches", "--fixed-strings", place, str(root)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == ""


def test_two_builds_give_the_same_bytes(archive: Path, tmp_path: Path):
    python, packages = debian.choose()
    folder = archive.parent / "packages"
    plugin_image.make_root(tmp_path / "root", python, packages, folder)
    plugin_image.write(tmp_path / "again.tar", tmp_path / "root", plugin_image.image_name())
    assert (tmp_path / "again.tar").read_bytes() == archive.read_bytes()
    # So that a digest in a program says which sources and packages run, and not on which day they were built.
    assert oci_archive.digests(tmp_path / "again.tar") == (plugin_image.build().digest,)


def test_it_is_small(archive: Path):
    # Megabytes: 33 now, most of it grpc, OpenSSL and Python.
    assert archive.stat().st_size < 40e6
