"""Files that `dra-infra synth --output FOLDER/` writes and removes: only its own, and none that was edited since (ADR 29)."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dra_infra.answers.synthesizing import Synthesis
from dra_infra.errors import Place, Problem, ProgramError
from dra_infra.output.escaping import json_text
from dra_infra.program.object_files import FILE_NAME, KUSTOMIZATION, Controller, digest_of, lay_out

RECORD: Final = ".dra-infra-files"
"""The file that records what was written, with digests. No controller takes it for a manifest: its name has no ending."""

_FORMAT: Final = "dra-infra/files/v1"
_LARGEST: Final = 2**26
"""Bytes of a file that is compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderPlan:
    """The changes of a folder.

    Args:
        written: Content of the files that are new or change, by path in the folder. The record comes last.
        removed: Files of objects that are no more.
        unchanged: Number of files that stay as they are.
        problems: Objects that have no file.
    """

    written: Mapping[str, bytes]
    removed: tuple[str, ...]
    unchanged: int
    problems: tuple[Problem, ...]


def plan_folder(synthesis: Synthesis, folder: Path, controller: Controller | None = None) -> FolderPlan:
    """Compare the files of a program's objects with those of a folder.

    Args:
        synthesis: The program, without errors.
        folder: The folder, which may not be there yet.
        controller: The controller that prunes the objects.

    Raises:
        ProgramError: `synth-file-kept` for each file in the way that synth did not write, or that was edited since; and for a record
            that cannot be read.
    """
    recorded = _read_record(folder / RECORD)
    present = [path for path in recorded if _digest_at(folder / path) is not None]
    laid_out = lay_out(
        synthesis.program.objects, controller=controller, secrets=synthesis.secrets, kept=present
    )
    contents = {path: text.encode() for path, text in laid_out.files.items()}
    kept: list[Problem] = []
    written: dict[str, bytes] = {}
    for path, content in contents.items():
        current = _digest_at(folder / path)
        if current == digest_of(content):
            continue
        if current is not None and current != recorded.get(path):
            kept.append(_kept(folder / path, is_ours=path in recorded))
        written[path] = content
    removed = sorted(set(present) - contents.keys() - laid_out.unwritten)
    kept += [
        _kept(folder / path, is_ours=True) for path in removed if _digest_at(folder / path) != recorded[path]
    ]
    if kept:
        raise ProgramError(kept)
    unchanged = len(contents) - len(written)
    digests = {path: digest_of(content) for path, content in contents.items()}
    digests |= {path: recorded[path] for path in laid_out.unwritten.intersection(present)}
    record = f"{json_text({'format': _FORMAT, 'files': digests}, sort_keys=True)}\n".encode()
    if _digest_at(folder / RECORD) != digest_of(record):
        written[RECORD] = record
    return FolderPlan(
        written=written, removed=tuple(removed), unchanged=unchanged, problems=laid_out.problems
    )


def _read_record(file: Path) -> Mapping[str, str]:
    """Return the digests of the files that were written earlier, by path in the folder."""
    if _digest_at(file) is None:
        return {}
    try:
        data = json.loads(file.read_bytes())
        files = data["files"]
        is_whole = data["format"] == _FORMAT and all(
            FILE_NAME.fullmatch(path) and isinstance(digest, str) for path, digest in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise ProgramError.of(
            path="--output",
            code="synth-file-kept",
            message=f"{file} is no record of the files that dra-infra synth wrote, so none of them is replaced",
            hint="after a merge, take either side of it: git checkout --ours; or write to a new folder",
        )
    return dict(files)


def _digest_at(file: Path) -> str | None:
    """Return the digest of a file; None where nothing is. Of a link, a folder and a file too large to compare it is no file's."""
    try:
        state = os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(state.st_mode) or state.st_size > _LARGEST:
        return ""
    return digest_of(file.read_bytes())


def _kept(file: Path, *, is_ours: bool) -> Problem:
    name = file.name
    if is_ours:
        message = "it was edited after dra-infra synth wrote it, and is not replaced or removed"
        hint = (
            "put the change into the program, then remove the file or check it out again, and run this again"
        )
    elif name == KUSTOMIZATION:
        message = "it is a kustomization that dra-infra synth did not write, and is not replaced"
        hint = "write to a folder below this one, and name that folder under its resources"
    else:
        message = "dra-infra synth did not write it, and does not replace it"
        hint = "name a folder of its own"
    return Problem(
        path="--output", code="synth-file-kept", message=message, hint=hint, place=Place(file=str(file))
    )
