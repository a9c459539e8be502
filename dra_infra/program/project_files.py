"""Files of a project, and paths that people name: Pulumi.yaml under each of its names, and YAML with bounds.

A path that is not there is told with the nearest one that is; a link may not lead out of its repository.
"""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path
from typing import Any, Final

import yaml

from dra_infra.documents.yaml_events import RefusedYamlError, read_documents
from dra_infra.errors import ProgramError
from dra_infra.output.wording import join_words

MAX_FILE_BYTES: Final = 4 * 2**20
_ENDINGS: Final = (".json", ".yaml", ".yml")
"""Endings of Pulumi.yaml and of stack files, in the order in which Pulumi looks for them."""


def project_file(folder: Path) -> Path | None:
    """Return `Pulumi.yaml` in *folder*, whatever its ending is; None where there is none."""
    files = (folder / f"Pulumi{ending}" for ending in _ENDINGS)
    return next((each for each in files if each.is_file()), None)


def find_root(directory: Path) -> Path:
    """Return the nearest folder with a Pulumi.yaml, from *directory* upwards.

    Raises:
        ProgramError: With code `no-project`, also when *directory* does not exist.
    """
    if not directory.exists():
        # The folder above would answer in its place, for another program than the one that was asked for.
        message = "there is no such folder"
        hint = nearest_path(directory) or "check the path; name the folder of a Pulumi project"
        raise ProgramError.of(path=str(directory), code="no-project", message=message, hint=hint)
    start = directory.resolve()
    for folder in (start, *start.parents):
        if project_file(folder):
            return folder
    raise ProgramError.of(
        path=str(directory),
        code="no-project",
        message="there is no Pulumi.yaml here or above",
        hint=_hint_on_project(start),
    )


def _hint_on_project(start: Path) -> str:
    """Return what a folder or a program needs to be a project."""
    is_file = start.suffix == ".py" and start.is_file()
    if not is_file and not (start / "__main__.py").is_file():
        return "make a project with `dra-infra init`; for manifests: `dra-infra review PATH --fleet NAME`"
    folder = start.parent if is_file else start
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", folder.name) or "my-project"
    lines = [f"name: {name}", "runtime: python", *([f"main: {start.name}"] if is_file else [])]
    return f"write a Pulumi.yaml beside it with the lines {join_words([f'`{each}`' for each in lines])}"


def read_yaml(file: Path, *, is_pulumis: bool = False) -> dict[str, Any]:
    """Return the mapping in *file*; an empty one for an empty file.

    Args:
        file: The file.
        is_pulumis: Whether Pulumi reads it, for which `yes`, `on` and `y` are texts.

    Raises:
        ProgramError: With code `invalid-project`.
    """
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise invalid(file, f"is larger than {MAX_FILE_BYTES} bytes", "")
        text = file.read_text(encoding="utf-8")
        documents = [each.data for each in read_documents(_quote_words(text) if is_pulumis else text)]
    except (OSError, UnicodeDecodeError, RefusedYamlError) as error:
        raise invalid(file, f"cannot be read: {_first_line(error)}", "") from error
    if len(documents) > 1:
        raise invalid(file, "has more than one document", "")
    content = documents[0] if documents else None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise invalid(file, "is not a mapping", "")
    return content


_WORDS: Final = frozenset(
    form for word in ("y", "n", "yes", "no", "on", "off") for form in (word, word.title(), word.upper())
)
"""True and false in YAML 1.1. gopkg.in/yaml.v3 (resolve.go), with which Pulumi reads its files, knows `true` and `false` alone."""

_ANY_WORD: Final = re.compile(r"\b(?:y|n|yes|no|on|off)\b", re.IGNORECASE)


def _quote_words(text: str) -> str:
    """Return YAML in which each word of `_WORDS` is in quotes."""
    if not _ANY_WORD.search(text):
        return text
    parts = []
    end = 0
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            mark = event.end_mark
            if mark and isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value in _WORDS:
                # An anchor belongs to the event, so its start is not that of the word.
                start = mark.index - len(event.value)
                if text[start : mark.index] == event.value:
                    parts.append(f'{text[end:start]}"{event.value}"')
                    end = mark.index
    except yaml.YAMLError:
        # Reading it again says what is wrong and where.
        return text
    return "".join([*parts, text[end:]])


def invalid(file: Path, message: str, hint: str) -> ProgramError:
    """Return the problem of a file of a project that cannot be used."""
    return ProgramError.of(path=file.name, code="invalid-project", message=message, hint=hint)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def nearest_path(path: Path) -> str:
    """`did you mean manifests/a.yaml?`: the nearest name in the folder where *path* stops being there; else empty."""
    # A link that leads nowhere is there; and what may not be looked at is not there for os.path.
    for parent in () if os.path.lexists(path) else path.parents:
        if not os.path.isdir(parent):  # noqa: PTH112
            continue
        rest = path.relative_to(parent).parts
        try:
            names = sorted(each.name for each in parent.iterdir())
        except OSError:
            return ""
        near = difflib.get_close_matches(rest[0][:255], names, n=1)
        return f"did you mean {parent.joinpath(near[0], *rest[1:])}?" if near else ""
    return ""


def leads_out(path: Path, top: Path) -> bool:
    """True for a path that is named as one in the repository at *top*, and `is_outside`."""
    inside = Path(os.path.realpath(top))
    below = (path, *Path(os.path.abspath(path)).parents)  # noqa: PTH100  (without following links)
    return is_outside(path, top) and any(
        Path(os.path.realpath(each)).is_relative_to(inside) for each in below
    )


def is_outside(path: Path, top: Path) -> bool:
    """True for a path that is, when links are followed, no file of the repository at *top*: it is elsewhere, or in a `.git`.

    Whoever wrote a link may not see what lies there.
    """
    real, inside = Path(os.path.realpath(path)), Path(os.path.realpath(top))
    return not real.is_relative_to(inside) or ".git" in real.relative_to(inside).parts
