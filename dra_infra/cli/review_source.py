"""What a review is of: a Pulumi program, a chart, or manifests, read off the path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, get_args

from dra_infra.engine.nearest_paths import nearest_path
from dra_infra.engine.project import find_root
from dra_infra.errors import Problem, ProgramError

Kind = Literal["program", "manifests", "chart"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One side of a review in the working tree.

    Args:
        kind: How it becomes objects.
        root: The folder of the project or chart; for manifests, the folder or file.
        shown: How files in it are named before their path: what the user typed.
    """

    kind: Kind
    root: Path
    shown: str


def find_source(path: Path, kind: str | None = None) -> Source:
    """What lies at *path*.

    Args:
        path: A folder or file.
        kind: What the user says that it is; None reads it off the path: `Chart.yaml` in the folder makes it a chart,
            `Pulumi.yaml` in the folder or above it, inside its repository, a program, everything else is manifests.

    Raises:
        ProgramError: `no-project` when it does not exist.
    """
    if not path.exists():
        raise ProgramError(
            [
                Problem(
                    path=str(path),
                    code="no-project",
                    message="there is no such file or folder",
                    hint=nearest_path(path) or "name a Pulumi project, a folder of manifests, or a chart",
                )
            ]
        )
    if kind == "program" or (kind is None and path.is_dir() and _is_in_project(path)):
        return Source(kind="program", root=find_root(path), shown=str(path))
    if kind == "chart" or (kind is None and (path / "Chart.yaml").is_file()):
        return Source(kind="chart", root=path.resolve(), shown=str(path))
    return Source(kind="manifests", root=path.absolute(), shown=str(path))


def _is_in_project(path: Path) -> bool:
    if (path / "Chart.yaml").is_file():
        return False
    folder = path.resolve()
    for each in (folder, *folder.parents):
        if (each / "Pulumi.yaml").is_file():
            return True
        if (each / ".git").exists():
            return False
    return False
