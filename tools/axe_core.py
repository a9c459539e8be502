"""axe-core, which looks for barriers in web pages: one file of JavaScript, fetched once by exact version and hash.

npm's ordinary client fetches it, runs nothing of it, and the hash below is compared before a byte is used. There is no
lock file, for it would record where one machine downloads from.
"""

from __future__ import annotations

import base64
import hashlib
import io
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tools import cache
from tools.errors import ToolError

VERSION = "4.14.1"

INTEGRITY = "sha512-FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
"""Of the package's archive, as npm's registry publishes it for this version."""

_MEMBER = "package/axe.min.js"
_MINUTES = 5


def script() -> str:
    """The text of axe-core, from the per-user cache or fetched into it.

    Raises:
        ToolError: When npm is missing or fails, or what it fetched is not what was pinned.
    """
    kept = cache.root() / f"axe-core-{VERSION}" / "axe.min.js"
    if not kept.is_file():
        with cache.locked("axe-core", lambda: None):
            if not kept.is_file():
                _keep(unpack(_fetch()), kept)
    return kept.read_text(encoding="utf-8")


def unpack(archive: bytes) -> bytes:
    """The script in *archive*.

    Raises:
        ToolError: When the archive is not the pinned one.
    """
    digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if f"sha512-{digest}" != INTEGRITY:
        raise ToolError(
            f"axe-core {VERSION} has the hash sha512-{digest}",
            hint=f"expected {INTEGRITY}; nothing of it was used",
        )
    with tarfile.open(fileobj=io.BytesIO(archive)) as package:
        file = package.extractfile(_MEMBER)
        assert file is not None  # noqa: S101  (the hash says what is in it)
        return file.read()


def _fetch() -> bytes:
    npm = shutil.which("npm")
    if npm is None:
        raise ToolError("npm is not on PATH", hint="apt-get install npm")
    with tempfile.TemporaryDirectory() as folder:
        command = [
            npm,
            "pack",
            "--silent",
            "--ignore-scripts",
            "--pack-destination",
            folder,
            f"axe-core@{VERSION}",
        ]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=60 * _MINUTES, check=False
            )
        except subprocess.TimeoutExpired:
            raise ToolError(
                f"npm did not end in {_MINUTES} minutes", hint="try it by hand: npm pack axe-core"
            ) from None
        archives = sorted(Path(folder).glob("*.tgz"))
        if done.returncode or not archives:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ToolError(
                f"npm could not fetch axe-core {VERSION}: {last}", hint="try it by hand: npm pack axe-core"
            )
        return archives[0].read_bytes()


def _keep(content: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as file:
        file.write(content)
    Path(file.name).replace(target)
