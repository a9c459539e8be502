"""Links below a folder that is the root of another system, as a node's is in a container."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_MOST_LINKS: Final = 40
"""As many as the kernel follows."""


def resolve(path: Path, root: Path) -> Path | None:
    """Follow links as a process would whose root is *root*: absolute ones start there.

    Returns:
        The file or folder, as we see it; None where there is none.
    """
    left = list(path.relative_to(root).parts)
    here, links = root, 0
    while left:
        part = left.pop(0)
        if part == "..":
            here = here.parent if here != root else root
            continue
        here = here / part
        try:
            target = here.readlink()
        except OSError:
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        here = root if target.is_absolute() else here.parent
        left = [each for each in target.parts if each != "/"] + left
    return here if os.path.lexists(here) else None
