"""The images of the node plugin and of the command: Python, its libraries, their requirements, our wheel, and nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools import cache, oci_archive
from tools.errors import ToolError
from tools.image import debian, python_packages, shared_libraries
from tools.image.tree import Tree

REGISTRY: Final = "localhost"
"""No registry has that name: a node on which the image was not imported says so, and asks nobody on the internet for it."""

CONTENTS: Final = "usr/share/dra-infra/contents.json"
"""In the image: every package in it, with its version."""

ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "LANG": "C.UTF-8",
    # Its dozen threads allocate in turns: a heap for each would take memory and save no time.
    "MALLOC_ARENA_MAX": "1",
}

_KEY: Final = "[0-9a-f]" * 16
_KEPT_SECONDS: Final = 2 * 24 * 3600
_HASHED: Final = ("bin", "dra_infra", "tools/image", "tools/oci_archive.py", "pyproject.toml")

_FILES: Final = {
    # Where no user is known, ssl and getpass fail in odd ways.
    "etc/passwd": "root:x:0:0:root:/:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One of the images.

    Args:
        command: The command that it runs, whose name it has.
        requirements: The file with the pins of what is in it.
        install: Puts packages into the folder of modules, for a version of Python.
        starters: Returns the text of each command, for the folder of modules.
        is_optimized: Whether its modules have no docstrings and asserts.
    """

    command: str
    requirements: Path
    install: Callable[[Path, str], None]
    starters: Callable[[Path], Mapping[str, str]]
    is_optimized: bool


PLUGIN: Final = Kind(
    command="dra-infra-plugin",
    requirements=python_packages.REQUIREMENTS,
    install=python_packages.install,
    starters=python_packages.starters,
    is_optimized=True,
)
"""The node plugin, on every node with GPUs."""

COMMAND: Final = Kind(
    command="dra-infra",
    requirements=python_packages.COMMAND_REQUIREMENTS,
    install=python_packages.install_command,
    starters=python_packages.command_starter,
    is_optimized=False,
)
"""The command, for jobs of a CI."""


@dataclass(frozen=True)
class Built:
    """A finished image.

    Args:
        archive: The OCI archive.
        name: Name of the image, with its tag.
        is_fresh: Whether it was built now, and not taken from the cache.
        digest: Of the image's manifest, `sha256:...`: a registry has it under that too, if it is copied as it is.
    """

    archive: Path
    name: str
    is_fresh: bool
    digest: str


def image_name(kind: Kind = PLUGIN) -> str:
    """The name that `make image` gives: `localhost/dra-infra-plugin:` and the version of this checkout."""
    project = tomllib.loads((python_packages.ROOT / "pyproject.toml").read_text())["project"]
    return f"{REGISTRY}/{kind.command}:{project['version']}"


def build(kind: Kind = PLUGIN) -> Built:
    """The image of this checkout, from the per-user cache where the same was built before.

    Raises:
        ToolError: Where packages cannot be had, or the image would lack something.
    """
    # apt lets one process at a time fetch its lists, and two that download take each other's files for broken ones.
    with cache.locked("plugin-image", lambda: None):
        python, packages = debian.choose()
        folder = cache.root().parent / "image"
        name = image_name(kind)
        key = _key(kind, packages)
        archive = folder / f"{kind.command}-{key}.tar"
        is_there = archive.is_file()
        if not is_there:
            _make(kind, archive, python, packages)
    (digest,) = oci_archive.digests(archive)
    return Built(archive, name, is_fresh=not is_there, digest=digest)


def _make(kind: Kind, archive: Path, python: str, packages: Sequence[debian.Package]) -> None:
    """Build the image and put it in its place, whole."""
    folder = archive.parent
    debian.download(packages, folder / "packages")
    _forget_old(folder, kind)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".unfinished-") as scratch:
        root = Path(scratch) / "root"
        draft = Path(scratch) / "image.tar"
        make_root(root, python, packages, folder / "packages", kind)
        write(draft, root, image_name(kind), kind)
        draft.chmod(0o644)
        draft.replace(archive)


def make_root(
    root: Path, python: str, packages: Sequence[debian.Package], folder: Path, kind: Kind = PLUGIN
) -> None:
    """The root folder of the image, complete and checked.

    Args:
        root: Where it is made.
        python: Version of Python, `3.11`.
        packages: The packages.
        folder: Where their files are.
        kind: The image.

    Raises:
        ToolError: Where a library or the target of a link is not there.
    """
    for package in packages:
        debian.unpack(folder / package.file, root)
    debian.make_links(root, python)
    modules = root / f"usr/local/lib/python{python}/dist-packages"
    modules.mkdir(parents=True)
    kind.install(modules, python)
    for name, text in {**_FILES, **_commands(kind, modules)}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for path in (root / "usr/local/bin").glob("*"):
        path.chmod(0o755)
    _write_contents(root, packages, modules)
    lacking = [*shared_libraries.missing(root), *debian.dangling_links(root)]
    if lacking:
        raise ToolError(
            "the image would lack " + "; ".join(lacking),
            hint="add the package to LIBRARIES in tools/image/debian.py, or leave the file out there",
        )
    python_packages.compile_all(root, python, is_optimized=kind.is_optimized)


def write(path: Path, root: Path, name: str, kind: Kind = PLUGIN) -> None:
    """Write the archive of the image whose root folder is *root*."""
    tree = Tree.of_folder(root)
    for folder in ("dev", "proc", "sys", "run"):
        tree.add_folder(folder)
    tree.add_folder("tmp", 0o1777)
    tree.add_link("var/run", "../run")
    config = {
        "Entrypoint": [f"/usr/local/bin/{kind.command}"],
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
        "Labels": {
            "org.opencontainers.image.title": kind.command,
            "org.opencontainers.image.version": name.rpartition(":")[2],
            "org.opencontainers.image.licenses": "Apache-2.0",
            "dra-infra.contents": f"/{CONTENTS}",
        },
    }
    oci_archive.write(path, [oci_archive.Image(name=name, layers=(tree.to_tar(),), config=config)])


def _forget_old(folder: Path, kind: Kind = PLUGIN) -> None:
    """Delete what was built days ago: each change of the sources is another archive, which others may be reading now."""
    for path in (*folder.glob(f"{kind.command}-{_KEY}.tar"), *folder.glob(".unfinished-*")):
        if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _commands(kind: Kind, modules: Path) -> dict[str, str]:
    return {f"usr/local/bin/{name}": text for name, text in kind.starters(modules).items()}


def _write_contents(root: Path, packages: Sequence[debian.Package], modules: Path) -> None:
    contents = {
        "debian": [{"name": each.name, "version": each.version, "sha256": each.sha256} for each in packages],
        "python": [{"name": name, "version": version} for name, version in python_packages.versions(modules)],
    }
    path = root / CONTENTS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(contents, indent=1) + "\n")


def _key(kind: Kind, packages: Sequence[debian.Package]) -> str:
    """What decides the bytes of the image, as far as it is known before building."""
    hashed = hashlib.sha256("\n".join(each.sha256 for each in packages).encode())
    for path in _sources(kind):
        hashed.update(f"{path}\0".encode() + (python_packages.ROOT / path).read_bytes())
    return hashed.hexdigest()[:16]


def _sources(kind: Kind) -> Iterator[str]:
    for name in (*_HASHED, os.fspath(kind.requirements.relative_to(python_packages.ROOT))):
        start = python_packages.ROOT / name
        found = [start] if start.is_file() else start.rglob("*")
        files = (each for each in found if each.is_file() and "__pycache__" not in each.parts)
        yield from sorted(os.fspath(each.relative_to(python_packages.ROOT)) for each in files)
