from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from tools import oci_archive

LAYER = oci_archive.layer(
    {"bin/tool": (b"#!/bin/sh\n", 0o755), "etc/passwd": (b"root\n", 0o644)},
    folders={"bin": 0o755, "tmp": 0o1777},
    links={"bin/other": "tool"},
)
IMAGES = [
    oci_archive.Image(name="dra-infra.invalid/one:1", layers=(LAYER,), config={"Cmd": ["/bin/tool"]}),
    oci_archive.Image(name="dra-infra.invalid/two:2", layers=(LAYER,), config={"Entrypoint": ["/bin/other"]}),
]


@pytest.fixture
def archive(tmp_path):
    """Content of each file of an archive with two images."""
    oci_archive.write(tmp_path / "images.tar", IMAGES)
    with tarfile.open(tmp_path / "images.tar") as file:
        return {member.name: file.extractfile(member).read() for member in file}


def blob(archive, descriptor):
    return archive["blobs/" + descriptor["digest"].replace(":", "/")]


def test_each_blob_is_named_by_its_hash_and_of_the_size_that_is_told(archive):
    for path, content in archive.items():
        if path.startswith("blobs/"):
            assert path == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    for manifest in json.loads(archive["index.json"])["manifests"]:
        assert len(blob(archive, manifest)) == manifest["size"]


def test_images_are_named_in_the_way_of_containerd(archive):
    manifests = json.loads(archive["index.json"])["manifests"]
    names = [manifest["annotations"]["io.containerd.image.name"] for manifest in manifests]
    assert names == ["dra-infra.invalid/one:1", "dra-infra.invalid/two:2"]


def test_layer_is_told_by_the_hash_of_what_it_unpacks_to(archive):
    [first, second] = json.loads(archive["index.json"])["manifests"]
    manifest = json.loads(blob(archive, first))
    config = json.loads(blob(archive, manifest["config"]))
    unpacked = gzip.decompress(blob(archive, manifest["layers"][0]))
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(unpacked).hexdigest()}"]
    # What images share is there once.
    assert json.loads(blob(archive, second))["layers"] == manifest["layers"]


def test_layer_has_files_with_their_modes_owned_by_root():
    with tarfile.open(fileobj=io.BytesIO(LAYER)) as file:
        members = {member.name: member for member in file}
        assert {name: member.mode for name, member in members.items()} == {
            "bin": 0o755,
            "tmp": 0o1777,
            "bin/tool": 0o755,
            "etc/passwd": 0o644,
            "bin/other": 0o777,
        }
        assert members["bin/other"].linkname == "tool"
        assert {(member.uid, member.gid, member.mtime) for member in members.values()} == {(0, 0, 0)}


def test_equal_images_are_equal_bytes(tmp_path):
    for name in ("a.tar", "b.tar"):
        oci_archive.write(tmp_path / name, IMAGES)
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_the_digests_of_an_archive_are_those_of_its_manifests(tmp_path: Path):
    oci_archive.write(tmp_path / "images.tar", IMAGES)
    with tarfile.open(tmp_path / "images.tar") as archive:
        for digest in oci_archive.digests(tmp_path / "images.tar"):
            blob = archive.extractfile(f"blobs/{digest.replace(':', '/')}").read()
            assert hashlib.sha256(blob).hexdigest() == digest.removeprefix("sha256:")
            assert json.loads(blob)["mediaType"].endswith(".manifest.v1+json")
    assert len(set(oci_archive.digests(tmp_path / "images.tar"))) == len(IMAGES)
