"""A revision of a repository in a temporary folder, from `git archive`: no checkout is touched."""

from __future__ import annotations

import contextlib
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.engine.repository import Repository, environment, find_repository
from dra_infra.errors import Problem, ProgramError
from dra_infra.model.program import NotSeen

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
def archived(directory: Path, revision: str, *, only_directory: bool = False) -> Iterator[Revision]:
    """The folder *directory* as it was at *revision*, in a temporary folder that is removed at the end.

    Submodules are unpacked from their clones in the working tree, where these have the commit. Links that lead out of
    the repository are left out.

    Args:
        directory: A folder, or a file, of the working tree.
        revision: What git takes as a revision.
        only_directory: Whether to unpack only what is in *directory*; a program may import from beside itself.

    Raises:
        ProgramError: With codes `no-project`, `no-git`, `no-repository`, `base-not-found`, `base-not-archived`.
    """
    repository = find_repository(directory)
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
        yield Revision(root=top / repository.prefix, top=top, commit=commit, left_out=tuple(sorted(left_out)))


def _list(repository: Repository, commit: str, within: str) -> dict[str, str]:
    """Every path of the commit, with the commit of a submodule, `_LINK`, or nothing."""
    arguments = ["ls-tree", "-r", "-z", "--full-tree", commit, *(["--", within] if within else [])]
    found: dict[str, str] = {}
    for line in (repository.git(*arguments) or "").split("\0"):
        what, _, path = line.partition("\t")
        if path:
            mode, _, number = what.split()
            found[path] = number if mode == _SUBMODULE else _LINK if mode == _LINK else ""
    return found


def _unpack(repository: Repository, commit: str, target: Path, within: str = "") -> dict[str, bool]:
    """Every path of the archive, and whether it was unpacked."""
    command = repository.command("archive", "--format=tar", commit, *(["--", within] if within else []))
    unpacked: dict[str, bool] = {}

    def kept(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
        try:
            safe = tarfile.data_filter(member, folder)
        except tarfile.FilterError:
            safe = None
        unpacked[member.name] = safe is not None
        return safe

    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, stdin=subprocess.DEVNULL, env=environment()
        ) as process,
    ):
        try:
            with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                archive.extractall(target, filter=kept)  # noqa: S202  (the filter is stricter than data's)
        except (tarfile.TarError, OSError) as error:
            process.kill()
            process.wait()
            said.seek(0)
            reason = said.read(2000).decode(errors="replace").strip() or str(error)
            raise ProgramError([_not_archived(commit, reason)]) from error
    return unpacked


def _find_ignored(
    repository: Repository, listed: dict[str, str], unpacked: dict[str, bool]
) -> Iterator[NotSeen]:
    below = f"{repository.prefix}/" if repository.prefix else ""
    for path, submodule in listed.items():
        if submodule in ("", _LINK) and path not in unpacked and path.startswith(below):
            reason = "the repository's .gitattributes keep it out of archives (export-ignore)"
            yield NotSeen(what="file of the base", name=path, reason=reason)


def _unpack_submodule(repository: Repository, path: str, commit: str, top: Path) -> Iterator[NotSeen]:
    clone = repository.top / path
    if (clone / ".git").exists():
        inner = Repository(top=clone, prefix="")
        if inner.git("cat-file", "-e", f"{commit}^{{commit}}") is not None:
            (top / path).mkdir(parents=True, exist_ok=True)
            unpacked = _unpack(inner, commit, top / path)
            yield from (_link(f"{path}/{name}") for name, kept in unpacked.items() if not kept)
            return
    reason = f"it is not there at {commit[:12]}; run `git submodule update --init` and fetch it"
    yield NotSeen(what="submodule of the base", name=path, reason=reason)


def _link(path: str) -> NotSeen:
    return NotSeen(what="link in the base", name=path, reason="it leads out of the repository")


def _not_archived(commit: str, reason: str) -> Problem:
    return Problem(
        path="--base",
        code="base-not-archived",
        message=f"git cannot unpack {commit[:12]}: {reason}",
        hint="`git fsck` says whether the repository is whole; a partial clone has to fetch what is missing",
    )
