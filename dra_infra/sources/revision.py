"""A revision of a repository in a temporary folder, from `git archive`: no checkout is touched.

Releases of packages that a project pins are read from its lock and requirement files.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.program_objects import NotSeen
from dra_infra.sources import git
from dra_infra.sources.repository import Repository

if TYPE_CHECKING or sys.version_info >= (3, 12):
    import tarfile
else:
    # Python 3.11 has safe filters from 3.11.4 only, and Debian 12 has 3.11.2. The copy has no types.
    from backports import tarfile

LARGEST: Final = 2**31
"""Bytes of files that are unpacked."""

_SUBMODULE: Final = "160000"
_LINK: Final = "120000"
"""Modes of entries that are no files (git-fast-import(1))."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Revision:
    """A folder as it was.

    Args:
        root: The folder at the revision; it may not exist there.
        top: The unpacked repository.
        commit: Full hash.
        left_out: What the archive does not have, by path.
    """

    root: Path
    top: Path
    commit: str
    left_out: tuple[NotSeen, ...] = ()


@contextlib.contextmanager
def archived(repository: Repository, revision: str, *, only_directory: bool = False) -> Iterator[Revision]:
    """The folder of *repository* that was asked about as it was at *revision*, in a temporary folder that is removed at the end.

    Submodules are unpacked from their clones in the working tree, where these have the commit. Links that lead out of
    the repository are left out.

    Args:
        repository: The working tree, and the folder or file of it.
        revision: What git takes as a revision.
        only_directory: Unpack nothing but that folder; a program may import from beside itself.

    Raises:
        ProgramError: With codes `no-git`, `base-not-found`, `base-not-archived`.
    """
    commit = repository.resolve(revision)
    with tempfile.TemporaryDirectory(prefix="dra-infra-base-") as folder:
        top = Path(folder).resolve()
        within = repository.prefix if only_directory else ""
        listed = _list(repository, commit, within)
        if _LINK in listed.values() and within:
            # What they lead to may lie elsewhere in the repository.
            within = ""
            listed = _list(repository, commit, within)
        left_out: list[NotSeen] = []
        if listed:
            unpacked = _unpack(repository, commit, top, within)
            left_out += [_link(path) for path, kept in unpacked.items() if not kept]
            left_out += _find_ignored(repository, listed, unpacked)
        for path, submodule in listed.items():
            if submodule not in ("", _LINK):
                left_out += _unpack_submodule(repository, path, submodule, top)
        yield Revision(
            root=top / repository.prefix,
            top=top,
            commit=commit,
            left_out=tuple(sorted(left_out)),
        )


def _list(repository: Repository, commit: str, within: str) -> dict[str, str]:
    """Every path of the commit, with the commit of a submodule, `_LINK`, or nothing."""
    said = git.ask(repository.layout, "ls-tree", "-r", "-z", "--full-tree", commit, *_only(within))
    if said.code:
        raise ProgramError([_not_archived(commit, said.reason)])
    found: dict[str, str] = {}
    for line in said.output.split("\0"):
        what, _, path = line.partition("\t")
        if path:
            mode, _, number = what.split()
            found[path] = {_SUBMODULE: number, _LINK: _LINK}.get(mode, "")
    return found


def _unpack(repository: Repository, commit: str, target: Path, within: str = "") -> dict[str, bool]:
    """Every path of the archive, and whether it was unpacked."""
    unpacked: dict[str, bool] = {}
    size = 0

    def kept(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
        nonlocal size
        size += member.size
        if size > LARGEST:
            raise ProgramError.of(
                path="--base",
                code="base-not-archived",
                message=f"{commit[:12]} has more than {LARGEST >> 30} GiB of files",
                hint="name a folder of manifests, of which that alone is unpacked, or compare with a folder: --base-path",
            )
        try:
            safe = tarfile.data_filter(member, folder)
        except tarfile.FilterError:
            safe = None
        unpacked[member.name] = safe is not None
        return safe

    with git.calling(repository.layout, "archive", "--format=tar", commit, *_only(within)) as call:
        try:
            with tarfile.open(fileobj=call.output, mode="r|") as archive:
                archive.extractall(target, filter=kept)  # noqa: S202  (the filter is stricter than data's)
        except (tarfile.TarError, OSError) as error:
            call.end()
            raise ProgramError([_not_archived(commit, call.reason or str(error))]) from error
    return unpacked


def _only(within: str) -> list[str]:
    return ["--", within] if within else []


def _find_ignored(
    repository: Repository, listed: dict[str, str], unpacked: dict[str, bool]
) -> Iterator[NotSeen]:
    below = f"{repository.prefix}/" if repository.prefix else ""
    for path, submodule in listed.items():
        if submodule in ("", _LINK) and path not in unpacked and path.startswith(below):
            reason = "the repository's .gitattributes keep it out of archives (export-ignore)"
            yield NotSeen(what="file of the base", name=path, reason=reason)


def _unpack_submodule(repository: Repository, path: str, commit: str, top: Path) -> Iterator[NotSeen]:
    inner = repository.submodule(path)
    if inner is not None and inner.git("cat-file", "-e", f"{commit}^{{commit}}") is not None:
        (top / path).mkdir(parents=True, exist_ok=True)
        unpacked = _unpack(inner, commit, top / path)
        yield from (_link(f"{path}/{name}") for name, kept in unpacked.items() if not kept)
        return
    update = "run `git submodule update --init` and fetch it"
    if (repository.top / path / ".git").is_dir():
        update = (
            "its repository lies in its own folder, where it is not read; run `git submodule absorbgitdirs`"
        )
    reason = f"it is not there at {commit[:12]}; {update}"
    yield NotSeen(what="submodule of the base", name=path, reason=reason)


def _link(path: str) -> NotSeen:
    return NotSeen(what="link in the base", name=path, reason="it leads out of the repository")


def _not_archived(commit: str, reason: str) -> Problem:
    return Problem(
        path="--base",
        code="base-not-archived",
        message=f"git cannot unpack {commit[:12]}: {reason}",
        hint=f"`git fsck` says whether the repository is whole; for a partial clone, which nothing is fetched for here, "
        f"`git archive --output={os.devnull} {commit[:12]}` fetches what is missing",
    )


PACKAGES: Final = ("dra-infra", "pulumi", "pulumi-kubernetes")
"""Packages whose release decides what a program compiles to."""

_LOCKS: Final = ("uv.lock", "poetry.lock", "pdm.lock", "pylock.toml")
_MAX_BYTES: Final = 8 * 1024 * 1024
_LINE: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*([=<>!~^][^;#\\]*)")


def read_package_pins(root: Path) -> dict[str, str]:
    """The version of each package that the project in *root* pins, else the range as written.

    A lock file counts before requirement files, those before `pyproject.toml`. What cannot be read is passed over, for
    nothing but a remark of the review follows from it.
    """
    pins: dict[str, str] = {}
    for name in _LOCKS:
        for package in _mappings(_read_toml(root / name), "package", "packages"):
            _add(pins, package.get("name"), package.get("version"))
    for path in sorted(root.glob("*requirements*.txt")):
        for line in _read(path).splitlines():
            if found := _LINE.match(line.strip()):
                _add(pins, found[1], found[2])
    project = _read_toml(root / "pyproject.toml").get("project")
    dependencies = project.get("dependencies") if isinstance(project, Mapping) else None
    for line in dependencies if isinstance(dependencies, list) else ():
        if found := _LINE.match(str(line).strip()):
            _add(pins, found[1], found[2])
    return dict(sorted(pins.items()))


def _add(pins: dict[str, str], name: Any, version: Any) -> None:
    plain = re.sub(r"[-_.]+", "-", str(name)).lower()
    if plain in PACKAGES and isinstance(version, str) and version.strip():
        pins.setdefault(plain, version.strip().removeprefix("=="))


def _mappings(tree: Mapping[str, Any], *keys: str) -> Iterator[Mapping[str, Any]]:
    for key in keys:
        items = tree.get(key)
        yield from (item for item in items if isinstance(item, Mapping)) if isinstance(items, list) else ()


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(_read(path))
    except tomllib.TOMLDecodeError:
        return {}


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return stream.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
