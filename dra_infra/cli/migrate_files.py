"""Writes what a migration changed: in place, or to a folder, and nothing through a link."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dra_infra.answers.migration_inputs import below_output, lies_in
from dra_infra.cli.printing import NO_ROOM, say
from dra_infra.cli.written_files import Folder, LinkedFolderError, hint_for, open_folder
from dra_infra.errors import ProgramError
from dra_infra.sources.rewriting import ChangedFile

BACKUP: Final = ".orig"
"""The ending that the name of a kept file gets."""


def write_files(files: Sequence[ChangedFile], paths: Sequence[str], output: Path | None) -> None:
    """Write files in place, each kept beside it with `.orig`, or below a folder.

    Args:
        files: What is written.
        paths: The input.
        output: The folder; None writes in place.

    Raises:
        ProgramError: `report-not-written`.
    """
    places = find_places([each.name for each in files], paths, output)
    guarded = folders_of(paths, output)
    for file, each in zip(places, files, strict=True):
        made = list[Path]()
        content = each.after.encode()
        try:
            mode = None if each.is_made or each.name == "-" else Path(each.name).stat().st_mode & 0o777
            # What is changed in place may be reached by links of the repository that it is in.
            with open_folder(file.parent, guarded, made=made, within=output is None) as folder:
                if folder.state(file.name):
                    if folder.read(file.name) == content:
                        say(f"{file} is there already")
                        continue
                    _keep(folder, file.name)
                folder.put(file.name, content, mode)
        except OSError as error:
            for new in reversed(made):
                with contextlib.suppress(OSError):
                    new.rmdir()
            other = "make room there" if error.errno in NO_ROOM else "name a folder that may be written to"
            message = f"{file} cannot be written: {error.strerror or error}"
            raise not_written(output, message, hint_for(error, other)) from error
        say(f"wrote {file}")


def _keep(folder: Folder, name: str) -> None:
    """Keep the content of a file beside it, under the first name that holds it already or is free."""
    content = folder.read(name)
    state = folder.state(name)
    for number in itertools.count(1):
        kept = f"{name}{BACKUP}{f'.{number}' if number > 1 else ''}"
        there = folder.state(kept)
        if there is None:
            folder.put(kept, content, state.st_mode & 0o777 if state else None)
            return
        if stat.S_ISREG(there.st_mode) and folder.read(kept) == content:
            return


def find_places(names: Sequence[str], paths: Sequence[str], output: Path | None) -> list[Path]:
    """Where each file of the input *paths* is written: where it is, which is what its link leads to, or below *output*.

    Raises:
        ProgramError: `report-not-written` for a link that leads out of the input, for two files of one place in *output*, for a
            link or a file of the input there, and for a folder that a link leads to.
    """
    folders = {os.path.realpath(each if Path(each).is_dir() else Path(each).parent) for each in paths}
    # A folder around that of --output has nothing of the input there.
    kept = {
        os.path.realpath(each) for each in paths if not (output and lies_in(os.path.realpath(output), each))
    }
    places: dict[Path, str] = {}
    for name in names:
        file = Path(name) if output is None else output / below_output(name)
        _check_folder(file, paths, output)
        is_link = os.path.islink(file)  # noqa: PTH114  (who may not look there is told so when it is written)
        real = Path(os.path.realpath(file))
        around = {str(each) for each in (real, *real.parents)}
        if file in places:
            message = f"{places[file]} and {name} would both be {file}"
            raise not_written(output, message, "migrate one after the other, each to a folder of its own")
        if output and (is_link or around & kept):
            message = f"{file} is {'a link' if is_link else 'of the input'}, and is not replaced"
            raise not_written(output, message, "name another folder; --write changes files in place")
        if is_link and not around & folders:
            message = f"{name} is a link that leads out of the input, to {real}"
            raise not_written(output, message, "name that file, or take --output FOLDER")
        places[Path(os.path.relpath(real)) if is_link else file] = name
    return list(places)


def folders_of(paths: Sequence[str], output: Path | None) -> list[Path]:
    """Return the folders of a migration in which links are not followed: its inputs, and what it writes to."""
    return [Path(each) for each in paths if each != "-"] + ([output] if output else [])


def _check_folder(file: Path, paths: Sequence[str], output: Path | None) -> None:
    """Check that no link is in the way to *file*, before any file is written.

    Raises:
        ProgramError: `report-not-written`.
    """
    try:
        with open_folder(file.parent, folders_of(paths, output), within=output is None):
            pass
    except LinkedFolderError as error:
        raise not_written(
            output, f"{file} cannot be written: {error.strerror}", hint_for(error, "")
        ) from error
    except OSError:
        # It is made, or what is wrong with it is reported, when the file is written.
        pass


def not_written(output: Path | None, message: str, hint: str) -> ProgramError:
    """`report-not-written`, for `--output` where that was taken."""
    option = "--output" if output else "--write"
    return ProgramError.of(path=option, code="report-not-written", message=message, hint=hint)
