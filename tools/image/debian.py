"""Python and the libraries that it needs, out of Debian packages that apt downloads and verifies.

Nothing is installed on this machine and nobody has to be root. Packages come in the versions that apt's lists name now:
the mirrors drop old ones, so pins would stop working with the next security update. What was taken is written down in
the image; equal packages give equal bytes.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from tools.errors import ToolError

LIBRARIES: Final = (
    ("libc6",),
    ("zlib1g",),
    ("libexpat1",),
    ("libffi8",),
    ("libssl3", "libssl3t64"),
    ("libbz2-1.0",),
    ("liblzma5",),
    ("libuuid1",),
    ("libgcc-s1",),
    ("libstdc++6",),
)
"""What Python's modules and the wheels are linked against; where releases differ, all names. `shared_libraries` checks it."""

_MERGED: Final = ("bin", "sbin", "lib", "lib64")
"""Folders of the root that are links into /usr, also where packages still name them."""

_LINE: Final = re.compile(r"'(?P<address>[^']+)' (?P<file>\S+) (?P<size>\d+) SHA256:(?P<sha256>[0-9a-f]{64})")

_LEFT_OUT: Final = re.compile(
    r"""
    etc/ | usr/share/(?!doc/[^/]+/copyright$) | usr/s?bin/(?!python3\.\d+$)
    | usr/lib/[^/]+/(gconv|audit)/
    | usr/lib/python3[.\d]*/(test|idlelib|lib2to3|ensurepip|distutils|tkinter|turtledemo|pydoc_data|config-[^/]+)/
    | usr/lib/python3[.\d]*/(sitecustomize\.py|turtle\.py|.*\.pyc$)
    # Modules for terminals, databases and sound, whose libraries are not worth their size, and Python's own tests.
    | usr/lib/python3[.\d]*/lib-dynload/(_curses|_curses_panel|_dbm|_sqlite3|_crypt|nis|readline|ossaudiodev|_test.*|_xxtestfuzz|xxlimited.*)\.
    | usr/lib/python3[.\d]*/(curses|sqlite3|dbm)/
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, order=True)
class Package:
    """A package as apt would download it.

    Args:
        name: Such as `libc6`.
        version: Debian's version.
        file: Name of the file.
        sha256: Of the file, after the signed lists of apt.
    """

    name: str
    version: str
    file: str
    sha256: str


def choose() -> tuple[str, list[Package]]:
    """The version of Python, such as `3.11`, and all packages, sorted.

    A machine that is new has no lists of packages yet, or old ones: they are fetched then.

    Raises:
        ToolError: Where apt is not there or knows no such packages.
    """
    for command in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(command) is None:
            raise ToolError(
                f"{command} is not on PATH; the image is made of Debian packages",
                hint="run make image on Debian or Ubuntu, or build the Containerfile with podman or docker",
            )
    try:
        return _find()
    except ToolError:
        _run(["apt-get", "update", "--quiet"])
        return _find()


def _find() -> tuple[str, list[Package]]:
    depends = _run(["apt-cache", "depends", "--important", "python3-minimal"])
    found = re.search(r"Depends: python(3\.\d+)-minimal", depends)
    if found is None:
        raise ToolError("apt knows no python3-minimal", hint="run apt-get update, which fetches apt's lists")
    python = found[1]
    own = [f"python{python}-minimal", f"libpython{python}-minimal", f"libpython{python}-stdlib"]
    known = set(_run(["apt-cache", "pkgnames"]).split())
    names = own + [next((each for each in several if each in known), several[0]) for several in LIBRARIES]
    printed = _run(["apt-get", "--option", "Acquire::ForceHash=SHA256", "--print-uris", "download", *names])
    packages = sorted(map(_package, _LINE.finditer(printed)))
    if missing := set(names) - {each.name for each in packages}:
        raise ToolError(f"apt knows no {', '.join(sorted(missing))}", hint="run apt-get update")
    return python, packages


def download(packages: Sequence[Package], folder: Path) -> None:
    """Bring *packages* into *folder*, those that are not there yet.

    Raises:
        ToolError: Where that fails, or a file is not what apt's lists say.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [each for each in packages if not (folder / each.file).is_file()]
    if missing:
        _run(["apt-get", "--quiet", "download", *(f"{each.name}={each.version}" for each in missing)], folder)
    for each in packages:
        path = folder / each.file
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != each.sha256:
            path.unlink(missing_ok=True)
            raise ToolError(
                f"{each.file} is not what apt's lists say", hint="run apt-get update, then make image again"
            )


def unpack(package: Path, root: Path) -> None:
    """Put what the image needs of *package* below *root*: no manuals, no tests, no commands but Python."""
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        for entry in archive:
            _put(archive, entry, root)
    if process.returncode != 0:
        raise ToolError(f"dpkg-deb cannot read {package.name}", hint="delete it, then run make image again")


def _put(archive: tarfile.TarFile, entry: tarfile.TarInfo, root: Path) -> None:
    parts = PurePosixPath(entry.name).parts
    if parts and parts[0] in _MERGED:
        parts = ("usr", *parts)
    name = "/".join(parts)
    if not parts or ".." in parts or _LEFT_OUT.match(name if not entry.isdir() else f"{name}/"):
        return
    path = root / name
    if entry.isdir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        path.unlink(missing_ok=True)
        path.symlink_to(entry.linkname)
    elif data := archive.extractfile(entry):
        path.write_bytes(data.read())
        path.chmod(0o755 if entry.mode & 0o100 else 0o644)


def make_links(root: Path, python: str) -> None:
    """The links of a merged root, and `python3`."""
    for name in _MERGED:
        if (root / "usr" / name).is_dir():
            (root / name).symlink_to(f"usr/{name}")
    (root / "usr/bin/python3").symlink_to(f"python{python}")


def dangling_links(root: Path) -> Iterator[str]:
    """Links below *root* that point at nothing there."""
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            target = path.readlink()
            inside = root / str(target).lstrip("/") if target.is_absolute() else path.parent / target
            if not inside.exists():
                yield f"{path.relative_to(root)} -> {target}"


def _package(line: re.Match[str]) -> Package:
    name, version, _ = line["file"].split("_")
    # apt quotes the colon of an epoch in names of files.
    return Package(name, version.replace("%3a", ":"), line["file"], line["sha256"])


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise ToolError(
            f"`{' '.join(command[:3])} ...` failed: {said[-1] if said else 'it said nothing'}",
            hint="run apt-get update, then make image again",
        )
    return done.stdout
