"""Paths that people name: the nearest to one that is not there, and links that lead out of a repository."""

from __future__ import annotations

import difflib
import os
from pathlib import Path


def nearest_path(path: Path) -> str:
    """`did you mean manifests/a.yaml?`: the nearest name in the folder where *path* stops being there; else empty."""
    for parent in path.parents:
        if not parent.is_dir():
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
    """Whether *path* is named as one in the repository at *top*, and `is_outside`."""
    inside = Path(os.path.realpath(top))
    below = (path, *Path(os.path.abspath(path)).parents)  # noqa: PTH100  (without following links)
    return is_outside(path, top) and any(
        Path(os.path.realpath(each)).is_relative_to(inside) for each in below
    )


def is_outside(path: Path, top: Path) -> bool:
    """Whether *path* is, when links are followed, no file of the repository at *top*: it is elsewhere, or in a `.git`.

    Whoever wrote a link may not see what lies there.
    """
    real, inside = Path(os.path.realpath(path)), Path(os.path.realpath(top))
    return not real.is_relative_to(inside) or ".git" in real.relative_to(inside).parts
