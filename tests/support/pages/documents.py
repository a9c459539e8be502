"""What is written between fences in README, docs and examples, and the comments that say how it is run.

A comment stands on the lines before a fence, where readers do not see it:

- `<!-- given: x = 1 -->`: Python that the blocks of the page need and do not show.
- `<!-- project: examples/09-mig-notebook -->`: what `infra/` is, for the page; else the quickstart.
- `<!-- files: tests/contract/pages/validate -->`: a folder whose content takes the place of what is there.
- `<!-- runs in: tests/e2e/... -->`: the test that runs what needs real parts, a cluster or a network.
- `<!-- exits: 0 1 -->`: the exit code of each command of a console block; else 0.
- `<!-- made by: tests/... -->`: the test that holds the block, or writes it.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "errors").glob("*.md")),
    *sorted((ROOT / "examples").glob("*/README.md")),
)
MARKERS: Final = ("given", "project", "files", "runs in", "exits", "made by")

_FENCE: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)(?P<title>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_COMMENT: Final = re.compile(r"<!-- (?P<key>[a-z ]+): (?P<value>.*?) -->", re.DOTALL)
_COMMENTS_BEFORE: Final = re.compile(r"(?:<!--(?:(?!-->).)*-->\s*)+\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """What is between two fences."""

    page: Path
    line: int
    language: str
    text: str
    markers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> list[Command]:
        """The commands of a console block, each with what it prints there."""
        found: list[Command] = []
        lines = iter(self.text.splitlines())
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = f"{command[:-1]} {next(lines).strip()}"
                found.append(Command(command))
            elif found:
                found[-1].shown.append(line)
        return found


@dataclass(frozen=True, slots=True)
class Command:
    """A line behind a prompt, and the lines that follow it."""

    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def program(self) -> str:
        """The first word."""
        return shlex.split(self.text, comments=True)[0]


@cache
def blocks_of(page: Path) -> tuple[Block, ...]:
    """All blocks of *page*, in order."""
    text = page.read_text()
    found = []
    for fence in _FENCE.finditer(text):
        before = _COMMENTS_BEFORE.search(text[: fence.start()])
        markers = {each["key"]: each["value"] for each in _COMMENT.finditer(before[0] if before else "")}
        indent = len(fence["indent"])
        body = "".join(line[indent:] for line in fence["text"].splitlines(keepends=True))
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(page, line, fence["language"], body, markers))
    return tuple(found)


def blocks_in(*languages: str) -> list[Block]:
    """The blocks of all pages in one of *languages*."""
    return [block for page in PAGES for block in blocks_of(page) if block.language in languages]


def pages_with(*languages: str) -> list[Path]:
    """The pages that have such blocks."""
    return list(dict.fromkeys(block.page for block in blocks_in(*languages)))


def without_fences(text: str) -> str:
    """*text* with blocks and code spans blanked, so that what is left is prose with links."""
    return re.sub(r"(`+)(?!`).+?\1", "", _FENCE.sub("", text))
