"""Makes problems of what a host, a compiler or a program printed when it failed, each at its file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
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


@dataclass(kw_only=True, slots=True)
class Ending:
    """How the run of a program ended.

    Args:
        printed: What host and program printed, to its end.
        logged: What the program logged, as severity and text.
        error: What the host answered; empty where it has none.
        is_reported: Whether the program failed with an error that was logged or printed.
        is_too_long: Whether it was ended.
    """

    printed: str = ""
    logged: list[tuple[str, str]] = field(default_factory=list)
    error: str = ""
    is_reported: bool = False
    is_too_long: bool = False

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
    reader = _read_yaml if project.runtime == "yaml" else _read_nothing
    found = list(dict.fromkeys(reader(printed)))[:_MOST]
    return found or [_read_last(ending, printed)]


def _read_yaml(printed: str) -> Iterator[Problem]:
    for match in _YAML.finditer(printed):
        if match["severity"] != "Error":
            continue
        at = _YAML_PLACE.search(match["rest"])
        place = Place(file=at["file"], line=int(at["line"])) if at else None
        detail = " ".join((_YAML_PLACE.sub("", match["rest"])).split())
        yield Problem(
            path=place.file if place else "program",
            code="program-refused",
            message=_cut(match["summary"]),
            hint=_cut(detail),
            place=place,
        )


def _read_nothing(_printed: str) -> Iterator[Problem]:
    yield from ()


def _read_last(ending: Ending, printed: str) -> Problem:
    """Return a problem of what was logged, answered or printed, where no form is known."""
    logged = [text for severity, text in ending.logged if severity == "error"]
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
