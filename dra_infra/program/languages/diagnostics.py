"""Makes problems of what a host, a compiler or a program printed when it failed, each at its file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from dra_infra.errors import Place, Problem
from dra_infra.program.project import Project

_LONGEST: Final = 2000
_MOST: Final = 50
"""Problems of one run that are shown."""

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_YAML: Final = re.compile(
    r"^(?P<severity>Error|Warning): (?P<summary>[^\n]*)\n(?P<rest>.*?)(?=^(?:Error|Warning): |\Z)",
    re.MULTILINE | re.DOTALL,
)
"""One diagnostic of the host of YAML (hashicorp/hcl, diagnostic_text.go)."""

_YAML_PLACE: Final = re.compile(
    r"^  on (?P<file>[^\n]+?) line (?P<line>\d+)[^\n]*:\n(?:[^\n]+\n)*", re.MULTILINE
)


_TYPESCRIPT: Final = re.compile(
    r"^(?P<file>[^\s(:][^\n(:]*)[(:](?P<line>\d+)[,:](?P<column>\d+)\)?(?: -|:) error (?P<message>TS\d+: [^\n]*)",
    re.MULTILINE,
)
"""One error of the compiler, in both forms in which it prints them."""

_JAVASCRIPT: Final = re.compile(
    r"^(?:Uncaught )?(?P<message>(?:\w*Error|\w*Exception)\b[^\n]*)\n(?P<trace>(?:[^\n]*\n)*?(?:[ \t]+at [^\n]*\n?)+)",
    re.MULTILINE,
)
_FRAME: Final = re.compile(r"at (?:[^\n(]*\()?(?P<file>(?:file://)?/[^\n():]+):(?P<line>\d+):(?P<column>\d+)")
_GO: Final = re.compile(
    r"^(?:vet: )?(?P<file>[^\s:][^\n:]*\.go|go\.mod):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<message>[^\n]*)",
    re.MULTILINE,
)
_PANIC: Final = re.compile(r"^panic: (?P<message>[^\n]*)\n(?P<trace>.*)", re.MULTILINE | re.DOTALL)
_GO_FRAME: Final = re.compile(r"^\t(?P<file>/[^\n:]+\.go):(?P<line>\d+)", re.MULTILINE)
_GO_FAILED: Final = re.compile(
    r"^error: program failed: (?P<message>.*?)(?=^exit status |\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(kw_only=True, slots=True)
class Ending:
    """How the run of a program ended.

    Args:
        printed: What host and program printed, to its end.
        logged: What the program logged, as severity and text.
        error: What the host answered; empty where it has none.
        is_reported: Whether the program failed with an error that was logged or printed.
        is_too_long: Whether it was ended.
        is_refused: Whether the program was not built.
        way: What ran the program.
    """

    printed: str = ""
    logged: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    is_reported: bool = False
    is_too_long: bool = False
    is_refused: bool = False
    way: str = ""

    @property
    def has_failed(self) -> bool:
        """Whether the program has no objects."""
        return bool(self.error) or self.is_reported or any(severity == "error" for severity, _ in self.logged)


def read_problems(ending: Ending, project: Project, *, limit: float) -> list[Problem]:
    """Return the problems of a program that failed, at least one.

    Args:
        ending: How its run ended.
        project: Its project.
        limit: Seconds that it had.
    """
    if ending.is_too_long:
        message = f"the program did not end within {limit:g} s"
        return [
            Problem(
                path="program", code="program-timeout", message=message, hint="--timeout gives it more time"
            )
        ]
    printed = _ANSI.sub("", ending.printed)
    logged = "\n".join(text for severity, text in ending.logged if severity == "error")
    readers = {"yaml": _read_yaml, "nodejs": _read_node, "go": _read_go}
    problems = readers[project.runtime](_ANSI.sub("", f"{printed}\n{logged}"), project.root)
    return list(dict.fromkeys(problems))[:_MOST] or [_read_last(ending, printed)]


def _read_yaml(printed: str, _root: Path) -> Iterator[Problem]:
    for match in _YAML.finditer(printed):
        if match["severity"] != "Error":
            continue
        where = _YAML_PLACE.search(match["rest"])
        place = Place(file=where["file"], line=int(where["line"])) if where else None
        detail = " ".join((_YAML_PLACE.sub("", match["rest"])).split())
        yield Problem(
            path=place.file if place else "program",
            code="program-refused",
            message=_cut(match["summary"]),
            hint=_cut(detail),
            place=place,
        )


def _read_node(printed: str, root: Path) -> Iterator[Problem]:
    """Yield errors of the compiler of TypeScript; else the error that was thrown, at the innermost line of the user's own."""
    refused = [
        _refused(match["message"], _place_of(match["file"], match["line"], match["column"], root))
        for match in _TYPESCRIPT.finditer(printed)
    ]
    yield from refused
    thrown = None if refused else _JAVASCRIPT.search(printed)
    if thrown:
        places = (
            _place_of(each["file"], each["line"], each["column"], root)
            for each in _FRAME.finditer(thrown["trace"])
        )
        yield _raised(thrown["message"], next(filter(None, places), None))


def _read_go(printed: str, root: Path) -> Iterator[Problem]:
    """Yield errors of the compiler of Go; else what the program returned, or the panic that ended it."""
    refused = [
        _refused(match["message"], _place_of(match["file"], match["line"], match["column"] or "0", root))
        for match in _GO.finditer(printed)
    ]
    yield from refused
    if refused:
        return
    if panic := _PANIC.search(printed):
        places = (
            _place_of(each["file"], each["line"], "0", root) for each in _GO_FRAME.finditer(panic["trace"])
        )
        yield _raised(panic["message"], next(filter(None, places), None))
    elif failed := _GO_FAILED.search(printed):
        yield _raised(" ".join(failed["message"].split()), None)


def _place_of(file: str, line: str, column: str, root: Path) -> Place | None:
    """Return a place in the user's own files; None for those of packages and of the runtime."""
    path = Path(file.removeprefix("file://"))
    path = path if path.is_absolute() else root / path
    real = Path(os.path.normpath(path))
    if not real.is_relative_to(root) or "node_modules" in real.parts:
        return None
    return Place(file=str(real.relative_to(root)), line=int(line), column=int(column))


def _refused(message: str, place: Place | None) -> Problem:
    path = place.file if place else "program"
    return Problem(path=path, code="program-refused", message=_cut(message.strip()), place=place)


def _raised(message: str, place: Place | None) -> Problem:
    path = place.file if place else "program"
    return Problem(path=path, code="program-raised", message=_cut(message.strip()), place=place)


def _read_last(ending: Ending, printed: str) -> Problem:
    """Return a problem of what was logged, answered or printed, where no form is known."""
    logged = [_ANSI.sub("", text) for severity, text in ending.logged if severity == "error"]
    lines = [each for each in printed.splitlines() if each.strip()]
    message = "\n".join(logged) or ending.error or "the program failed"
    return Problem(
        path="program",
        code="program-raised",
        message=_cut(message.strip()),
        hint=f"it printed: {_cut(chr(10).join(lines[-20:]))}" if lines and not logged else "",
    )


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
