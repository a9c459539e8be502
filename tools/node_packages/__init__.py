"""Packages of npm for programs in TypeScript of the tests: the SDK of Pulumi and the compiler, by exact version and hash.

npm's ordinary client installs what `package-lock.json` names, compares the hash of each package, and runs no script of any. The
lock file has no address, so packages come from where the machine's npm is set up to look. To pin other versions, change
`package.json` and run `npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved` beside it.

`@pulumi/pulumi` stays at 3.248, the last release for Node.js 20.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from tools import cache
from tools.errors import ToolError

_FOLDER: Final = Path(__file__).parent
_FILES: Final = ("package.json", "package-lock.json")
_MINUTES: Final = 5


def node_modules() -> Path:
    """Return the folder `node_modules`, from the per-user cache or installed into it.

    Raises:
        ToolError: npm is missing, or cannot install a package as it is pinned.
    """
    key = hashlib.sha256(b"\0".join(_FOLDER.joinpath(name).read_bytes() for name in _FILES)).hexdigest()[:16]
    kept = cache.root() / f"node-packages-{key}"
    if not kept.is_dir():
        with cache.locked("node-packages", lambda: None):
            if not kept.is_dir():
                _install(kept)
    return kept / "node_modules"


def node() -> str:
    """Return the path of Node.js.

    Raises:
        ToolError: It is not on PATH.
    """
    return _find("node", "nodejs")


def _find(command: str, package: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise ToolError(f"{command} is not on PATH", hint=f"apt-get install {package}")
    return path


def _install(target: Path) -> None:
    npm = _find("npm", "npm")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unfinished-") as parent:
        folder = Path(parent) / "packages"
        folder.mkdir()
        for name in _FILES:
            shutil.copy(_FOLDER / name, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=60 * _MINUTES, check=False
            )
        except subprocess.TimeoutExpired:
            raise ToolError(
                f"npm did not end in {_MINUTES} minutes", hint=f"try it by hand: npm ci in {_FOLDER}"
            ) from None
        if done.returncode:
            last = ((done.stderr or done.stdout).strip().splitlines() or ["no message"])[-1]
            raise ToolError(
                f"npm cannot install the packages: {last}", hint=f"try it by hand: npm ci in {_FOLDER}"
            )
        folder.rename(target)
