"""The per-user folder in which built binaries are kept, one folder per exact build."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tools import go_buildinfo

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tools.toolsets import Toolset

_RECORD = "build.json"
_UNFINISHED = ".unfinished-"


@dataclass(frozen=True, kw_only=True)
class Built:
    """One finished build.

    Args:
        folder: Folder with the binaries.
        version: Version of the toolset.
        seconds: How long the build took.
        sizes: Bytes by name of the binary.
    """

    folder: Path
    version: str
    seconds: float
    sizes: dict[str, int]


def root() -> Path:
    """``$DRA_INFRA_CACHE/tools``, else ``dra-infra/tools`` in the user's cache folder."""
    if own := os.environ.get("DRA_INFRA_CACHE"):
        return Path(own).expanduser().resolve() / "tools"
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "dra-infra" / "tools"


def links() -> Path:
    """Folder of symbolic links to the newest build of every binary, to be put on PATH."""
    return root() / "bin"


def find(toolset: Toolset, go_version: str) -> Built | None:
    """The build of exactly this toolset by this Go, if there is one."""
    folder = _folder(toolset, go_version)
    try:
        record = json.loads((folder / _RECORD).read_text())
    except (FileNotFoundError, ValueError):
        return None
    if any(not (folder / name).is_file() for name in toolset.binaries):
        return None
    return Built(folder=folder, **record)


def find_by_any_go(toolset: Toolset) -> Built | None:
    """The newest build of exactly this toolset by the Go that its binaries name; for machines without one to ask."""
    records = sorted(root().glob(f"{toolset.name}-*/{_RECORD}"), key=lambda path: path.stat().st_mtime)
    for record in reversed(records):
        binaries = [path for name in toolset.binaries if (path := record.parent / name).is_file()]
        version = go_buildinfo.read(min(binaries, key=lambda path: path.stat().st_size)) if binaries else None
        # Its folder is named by all that it was built from: one of another go.mod has another name.
        if version and _folder(toolset, version) == record.parent and (built := find(toolset, version)):
            return built
    return None


@contextlib.contextmanager
def locked(name: str, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the build lock of a toolset; *on_wait* is called when another process has it."""
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def unfinished(toolset: Toolset) -> Iterator[Path]:
    """A folder to build into; what is still in it at the end goes. The caller holds the lock."""
    prefix = f"{_UNFINISHED}{toolset.name}-"
    for left_over in root().glob(f"{prefix}*"):
        shutil.rmtree(left_over, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(toolset: Toolset, go_version: str, folder: Path, *, seconds: float) -> Built:
    """Make a complete build visible, all binaries at once."""
    sizes = {name: (folder / name).stat().st_size for name in sorted(toolset.binaries)}
    target = _folder(toolset, go_version)
    built = Built(folder=target, version=toolset.version, seconds=round(seconds, 1), sizes=sizes)
    record = asdict(built)
    del record["folder"]
    (folder / _RECORD).write_text(json.dumps(record, indent=2) + "\n")
    # mkdtemp makes it private; the finished build may be shared like any other cache.
    folder.chmod(0o755)
    shutil.rmtree(target, ignore_errors=True)
    folder.rename(target)
    return built


def link(built: Built) -> None:
    """Point the links of all binaries of *built* at it, each one atomically."""
    links().mkdir(parents=True, exist_ok=True)
    for name in built.sizes:
        target = Path(os.path.relpath(built.folder / name, links()))
        present = links() / name
        if present.is_symlink() and present.readlink() == target:
            continue
        fresh = links() / f".{name}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(target)
        fresh.replace(present)


def _folder(toolset: Toolset, go_version: str) -> Path:
    return root() / f"{toolset.name}-{toolset.key(go_version)}"
