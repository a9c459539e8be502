"""Writes the files of a program's objects to a folder, and removes those of objects that are no more; no link is followed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path, PurePosixPath

from dra_infra.answers.object_folder import RECORD, FolderPlan
from dra_infra.cli.printing import NO_ROOM, say
from dra_infra.cli.written_files import hint_for, open_folder
from dra_infra.errors import ProgramError
from dra_infra.output.wording import count_of


def write_folder(plan: FolderPlan, folder: Path) -> None:
    """Carry a plan out: first the files that are new or change, then the removals, then the record.

    Raises:
        ProgramError: `report-not-written`.
    """
    for path, content in plan.written.items():
        if path != RECORD:
            _put(folder, path, content)
            say(f"wrote {folder / path}")
    for path in plan.removed:
        _remove(folder, path)
        say(f"removed {folder / path}")
    if RECORD in plan.written:
        # An interruption before leaves files that the next run takes as they are.
        _put(folder, RECORD, plan.written[RECORD])
    written = len(plan.written.keys() - {RECORD})
    files = count_of(written + plan.unchanged, "file")
    say(f"{files} in {folder}/: {written} written, {len(plan.removed)} removed, {plan.unchanged} unchanged")


def _put(folder: Path, path: str, content: bytes) -> None:
    file = folder / path
    made: list[Path] = []
    try:
        with open_folder(file.parent, (folder,), made=made) as opened:
            opened.put(file.name, content)
    except OSError as error:
        for new in reversed(made):
            with contextlib.suppress(OSError):
                new.rmdir()
        raise _not_written(file, error) from error


def _remove(folder: Path, path: str) -> None:
    """Remove a file, and its folder below *folder* where nothing else is in it."""
    file = folder / path
    try:
        with open_folder(file.parent, (folder,)) as opened:
            os.unlink(file.name, dir_fd=opened.number)
        if len(PurePosixPath(path).parts) > 1:
            with open_folder(folder) as around, contextlib.suppress(OSError):
                os.rmdir(PurePosixPath(path).parts[0], dir_fd=around.number)
    except OSError as error:
        raise _not_written(file, error) from error


def _not_written(file: Path, error: OSError) -> ProgramError:
    otherwise = "make room there" if error.errno in NO_ROOM else "name a folder that may be written to"
    return ProgramError.of(
        path="--output",
        code="report-not-written",
        message=f"{file} cannot be written: {error.strerror or error}",
        hint=hint_for(error, otherwise),
    )
