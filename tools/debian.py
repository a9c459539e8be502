"""Programs out of Debian's packages: downloaded and unpacked into the per-user cache, nothing is installed.

apt checks the signatures, so nothing is pinned here: a security update of Debian is taken with the next empty cache.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from tools import cache
from tools.errors import ToolError

_MINUTES = 5


def program(package: str, path: str) -> Path:
    """A program of a package, from the cache or fetched into it.

    Where there is no apt, a program of that name on PATH is taken.

    Args:
        package: Such as ``busybox-static``.
        path: Where the package has the program, such as ``bin/busybox``.

    Raises:
        ToolError: When apt cannot download the package, or it has no such file.
    """
    kept = cache.root() / f"debian-{package}"
    if not kept.is_dir():
        if shutil.which("apt-get") is None:
            return _on_path(package, path)
        with cache.locked(f"debian-{package}", lambda: None):
            if not kept.is_dir():
                _fetch(package, kept)
    found = kept / path
    if not found.is_file():
        raise ToolError(f"Debian's package {package} has no {path}", hint=f"remove {kept} and try again")
    return found


def _on_path(package: str, path: str) -> Path:
    found = shutil.which(Path(path).name)
    if found is None:
        raise ToolError(f"{Path(path).name} is not on PATH", hint=f"install it; Debian has it in {package}")
    return Path(found)


def _fetch(package: str, target: Path) -> None:
    cache.root().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache.root(), prefix=".unfinished-debian-") as name:
        folder = Path(name)
        failure = _run(["apt-get", "download", "-qq", package], folder)
        if failure is not None:
            # A machine that is new has no lists of packages yet.
            _run(["apt-get", "update", "-qq"], folder)
            failure = _run(["apt-get", "download", "-qq", package], folder)
        archives = sorted(folder.glob("*.deb"))
        if failure is not None or not archives:
            raise ToolError(
                f"apt could not download {package}: {failure or 'no message'}",
                hint=f"try it by hand: apt-get download {package}",
            )
        unpacked = folder / "unpacked"
        if (failure := _run(["dpkg-deb", "--extract", str(archives[0]), str(unpacked)], folder)) is not None:
            raise ToolError(f"dpkg could not unpack {package}: {failure}")
        unpacked.rename(target)


def _run(command: list[str], folder: Path) -> str | None:
    """Run a command; returns None, or its last words when it failed."""
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=60 * _MINUTES, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{command[0]} did not end in {_MINUTES} minutes"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["no message"])[-1]
