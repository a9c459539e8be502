"""What a path that is not there may have been meant to be."""

from __future__ import annotations

import difflib
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
