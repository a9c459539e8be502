"""Writes files of a new project: all of them, or none."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dra_infra.errors import Problem, ScaffoldError


@dataclass(frozen=True, slots=True)
class Written:
    """What was done with each file."""

    new: tuple[Path, ...]
    replaced: tuple[Path, ...]
    same: tuple[Path, ...]


def write_whole(files: Mapping[Path, str], *, force: bool) -> Written:
    """Write *files*; those that hold the same already are left alone.

    A run that fails takes away what it wrote, and puts back what it replaced.

    Args:
        files: Text by path.
        force: Whether files with other content are replaced.

    Raises:
        ScaffoldError: `files-differ` with each of them, or `folder-not-usable`; then nothing is changed.
    """
    states = {path: _state(path, text) for path, text in files.items()}
    new, differ, same, odd = (
        tuple(path for path, state in states.items() if state == each)
        for each in ("new", "differs", "same", "no file")
    )
    refused = [_differs(path) for path in differ if not force] + [_no_file(path) for path in odd]
    if refused:
        raise ScaffoldError(refused)
    _write({path: files[path] for path in (*new, *differ)})
    return Written(new, differ, same)


def _state(path: Path, text: str) -> str:
    for folder in path.parents:
        if folder.exists() and not folder.is_dir():
            raise _unusable(folder, NotADirectoryError(20, "it is a file"))
    if not os.path.lexists(path):
        return "new"
    # A link may lead out of the project: what it points at is not ours to write.
    if path.is_symlink() or not path.is_file():
        return "no file"
    try:
        return "same" if path.read_bytes() == text.encode() else "differs"
    except OSError as error:
        raise _unusable(path, error) from error


def _write(files: Mapping[Path, str]) -> None:
    """Write beside each place first, so that what can fail fails before anything is in place."""
    folders: list[Path] = []
    beside: dict[Path, Path] = {}
    kept: dict[Path, Path] = {}
    placed: list[Path] = []
    done = False
    path = Path()
    try:
        for path, text in files.items():
            _make_folders(path.parent, folders)
            beside[path] = _free_name(path)
            beside[path].write_bytes(text.encode())
        for path, written in beside.items():
            if path.exists():
                kept[path] = _free_name(path)
                path.rename(kept[path])
            placed.append(path)
            written.rename(path)
        done = True
    except OSError as error:
        raise _unusable(path, error) from error
    finally:
        # Also when the user interrupts.
        if not done:
            for each in placed:
                each.unlink(missing_ok=True)
            for each, old in kept.items():
                old.rename(each)
        for each in (*beside.values(), *(kept.values() if done else ())):
            each.unlink(missing_ok=True)
        for folder in () if done else reversed(folders):
            # Somebody else may have put a file there by now.
            with suppress(OSError):
                folder.rmdir()


def _make_folders(folder: Path, made: list[Path]) -> None:
    missing = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    for each in reversed(missing):
        each.mkdir()
        made.append(each)


def _free_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(6)}")


def _differs(path: Path) -> Problem:
    return Problem(
        path=os.path.relpath(path),
        code="files-differ",
        message="is there already, and holds something else; nothing was written",
        hint="name another folder, or replace it with --force",
    )


def _no_file(path: Path) -> Problem:
    return Problem(
        path=os.path.relpath(path),
        code="folder-not-usable",
        message="is there already, and is no plain file; nothing was written",
        hint="name another folder",
    )


def _unusable(path: Path, error: OSError) -> ScaffoldError:
    problem = Problem(
        path=os.path.relpath(path),
        code="folder-not-usable",
        message=f"cannot be written: {error.strerror or error}; nothing was changed",
        hint="name a folder that you may write to",
    )
    return ScaffoldError([problem])
