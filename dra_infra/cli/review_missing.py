"""What is written for the comment when there is no review: an older one must not look like this one's answer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dra_infra.cli.review_sides import Asked, label_of
from dra_infra.cli.review_source import Source
from dra_infra.engine.project import load_project
from dra_infra.engine.repository import find_repository
from dra_infra.errors import Problem, ProblemsError
from dra_infra.planning.markdown_report import marker_of


def write_no_review(source: Source, asked: Asked, file: Path, problems: Sequence[Problem]) -> None:
    """Write Markdown with the marker that the review would have had; nothing where that is not known.

    It names the codes alone: messages are for the log, which not everybody sees who sees a comment.
    """
    name = _name(source, asked)
    if name is None:
        return
    codes = ", ".join(f"`{code}`" for code in sorted({each.code for each in problems}))
    lines = [
        marker_of(*name),
        "### ❔ There is no review",
        "",
        f"It could not be made ({codes}): see the log of the job. An older review is out of date.",
    ]
    with suppress(OSError):
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _name(source: Source, asked: Asked) -> tuple[str, str] | None:
    """Project and stack of the review."""
    with suppress(ProblemsError):
        if source.kind == "program":
            project = load_project(source.root, asked.stack, asked.config)
            return project.name, project.stack
        return label_of(source, None if asked.base_path else find_repository(source.root)), ""
    return None
