"""Names of new projects, by Pulumi's rule."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Final

from dra_infra.errors import Problem, ScaffoldError

LONGEST: Final = 100
"""Characters of a project's name: `ValidateProjectName` in Pulumi's sdk/go/common/tokens/project.go."""

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]+")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.-]+")


def project_name(name: str | None, *, folder: Path) -> str:
    """The *name* that was asked for, else that of the *folder*.

    Raises:
        ScaffoldError: `project-name`, with the nearest name that Pulumi takes.
    """
    chosen = folder.name if name is None else name
    if _NAME.fullmatch(chosen) and len(chosen) <= LONGEST:
        return chosen
    why = "is empty" if not chosen else f"{_spelt(chosen)} is not a name that Pulumi takes"
    raise ScaffoldError(
        [
            Problem(
                path="DIR" if name is None else "--name",
                code="project-name",
                message=f"{why}: up to {LONGEST} ASCII letters, digits, hyphens, underscores and periods",
                hint=f"write --name {nearest_name(chosen)}",
            )
        ]
    )


def nearest_name(text: str) -> str:
    """What is left of *text* when it is made a good name; `infra` where nothing is."""
    plain = unicodedata.normalize("NFKD", text[: 10 * LONGEST]).encode("ascii", "ignore").decode()
    return _NOT_IN_NAMES.sub("-", plain).strip("-.")[:LONGEST].rstrip("-.") or "infra"


def _spelt(text: str) -> str:
    # What cannot be seen, or steers a terminal, is spelled out.
    return ascii(text if len(text) <= LONGEST else f"{text[:60]}...")
