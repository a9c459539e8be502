"""The images that a real node has from its start: busybox for the pods of tests, and what holds a pod's sandbox."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

from tools import cache, debian, oci_archive

BUSYBOX = "dra-infra.invalid/busybox:1"
"""A shell and the usual small programs, in 1 MB."""

PAUSE = "dra-infra.invalid/pause:1"
"""Holds the namespaces of a pod. A pause program of its own is not needed: sandboxes are ended with SIGKILL."""

ENVIRONMENT = {"Env": ["PATH=/bin"]}
"""Of an image with busybox."""

_FOLDERS = {"bin": 0o755, "etc": 0o755, "root": 0o700, "tmp": 0o1777, "var": 0o755, "var/run": 0o755}


def archive() -> Path:
    """The archive with both images, from the per-user cache or made of Debian's static busybox.

    Raises:
        ToolError: When busybox cannot be had.
    """
    busybox = debian.program("busybox-static", "bin/busybox")
    key = hashlib.sha256(busybox.read_bytes() + Path(__file__).read_bytes()).hexdigest()[:16]
    kept = cache.root() / f"node-images-{key}.tar"
    if not kept.is_file():
        draft = kept.with_suffix(f".{os.getpid()}")
        write(draft, busybox)
        draft.replace(kept)
    return kept


def layer(busybox: Path) -> bytes:
    """A layer with all programs of *busybox*, which has to be linked statically."""
    printed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout
    return oci_archive.layer(
        {
            "bin/busybox": (busybox.read_bytes(), 0o755),
            "etc/passwd": (b"root:x:0:0:root:/root:/bin/sh\n", 0o644),
            "etc/group": (b"root:x:0:\n", 0o644),
        },
        folders=_FOLDERS,
        links={f"bin/{name}": "busybox" for name in printed.split() if name != "busybox"},
    )


def write(path: Path, busybox: Path) -> None:
    """Write the archive of both images; *busybox* has to be linked statically."""
    both = (layer(busybox),)
    oci_archive.write(
        path,
        [
            oci_archive.Image(name=BUSYBOX, layers=both, config={**ENVIRONMENT, "Cmd": ["sh"]}),
            oci_archive.Image(
                name=PAUSE, layers=both, config={**ENVIRONMENT, "Entrypoint": ["/bin/sleep", "2147483647"]}
            ),
        ],
    )
