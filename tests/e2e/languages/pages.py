"""Blocks of a page of the documentation, and the lines that its commands print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.pages.documents import Block, blocks_of


def block(page: Path, language: str, text: str) -> Block:
    """Return the one block of a page in a language that has a text."""
    (found,) = [each for each in blocks_of(page) if each.language == language and text in each.text]
    return found


def lines_shown(block: Block) -> Iterator[str]:
    """Yield the lines that a command of the page prints, without what differs from run to run."""
    for command in block.commands:
        for line in command.shown:
            if line.strip() and line != "...":
                yield re.sub(r"\s+", " ", line.removesuffix("...").strip())
