"""Write container images as an OCI archive, without a registry and without a daemon; equal input gives equal bytes."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_OCI = "application/vnd.oci.image"
_NAME = "io.containerd.image.name"
_TAG = "org.opencontainers.image.ref.name"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_LONG_AGO = "1970-01-01T00:00:00Z"
_LEVEL = 6
"""Of compression: 9 takes five times as long for an image of 90 MB, and saves a hundredth."""


@dataclass(frozen=True, kw_only=True)
class Image:
    """An image of one layer or more.

    Args:
        name: With its tag, such as ``dra-infra.invalid/busybox:1``; no registry is ever asked for it.
        layers: Uncompressed tar archives, the lowest first; see `layer`.
        config: What runs in it: ``Entrypoint``, ``Cmd``, ``Env`` and so on, as in the image specification.
    """

    name: str
    layers: tuple[bytes, ...]
    config: Mapping[str, Any] = field(default_factory=dict)


def layer(
    files: Mapping[str, tuple[bytes, int]], *, folders: Mapping[str, int], links: Mapping[str, str]
) -> bytes:
    """A layer of an image, owned by root, of no time.

    Args:
        files: Content and mode by path.
        folders: Mode by path; one below another comes after it.
        links: Where a symbolic link points to, by its path.
    """
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path, mode in folders.items():
            _add(archive, path, mode=mode, kind=tarfile.DIRTYPE)
        for path, (content, mode) in sorted(files.items()):
            _add(archive, path, content, mode=mode)
        for path, target in sorted(links.items()):
            _add(archive, path, mode=0o777, kind=tarfile.SYMTYPE, target=target)
    return written.getvalue()


def write(path: Path, images: Iterable[Image]) -> None:
    """Write *images* for the processor of this machine as one archive that ``ctr images import`` takes."""
    blobs: dict[str, bytes] = {}
    manifests = [_manifest(image, blobs) for image in images]
    index = {"schemaVersion": 2, "mediaType": f"{_OCI}.index.v1+json", "manifests": manifests}
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        _add(archive, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", _json(index))
        for digest, content in sorted(blobs.items()):
            _add(archive, f"blobs/{digest.replace(':', '/')}", content)


def digests(path: Path) -> tuple[str, ...]:
    """The digests of the images of an archive, `sha256:...`, by which nothing else can take their place."""
    with tarfile.open(path) as archive:
        index = archive.extractfile("index.json")
        return tuple(each["digest"] for each in json.load(index)["manifests"]) if index else ()


def _manifest(image: Image, blobs: dict[str, bytes]) -> dict[str, Any]:
    machine = {"architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()), "os": "linux"}
    layers = [
        _blob(blobs, gzip.compress(content, _LEVEL, mtime=0), f"{_OCI}.layer.v1.tar+gzip")
        for content in image.layers
    ]
    config = {
        **machine,
        "created": _LONG_AGO,
        "config": dict(image.config),
        "rootfs": {"type": "layers", "diff_ids": [_digest(content) for content in image.layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _blob(blobs, _json(config), f"{_OCI}.config.v1+json"),
        "layers": layers,
    }
    return {
        **_blob(blobs, _json(manifest), f"{_OCI}.manifest.v1+json"),
        "annotations": {_NAME: image.name, _TAG: image.name.rpartition(":")[2]},
        "platform": machine,
    }


def _blob(blobs: dict[str, bytes], content: bytes, media_type: str) -> dict[str, Any]:
    digest = _digest(content)
    blobs[digest] = content
    return {"mediaType": media_type, "digest": digest, "size": len(content)}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _add(
    archive: tarfile.TarFile,
    path: str,
    content: bytes = b"",
    *,
    mode: int = 0o644,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
) -> None:
    member = tarfile.TarInfo(path)
    member.mode, member.type, member.linkname, member.size = mode, kind, target, len(content)
    archive.addfile(member, io.BytesIO(content))
