"""The subject of a review, read off the path: a Pulumi program, a chart, or manifests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast, get_args

from dra_infra.errors import Problem, ProgramError
from dra_infra.program.paths import nearest_path
from dra_infra.program.program_json import Compiled
from dra_infra.program.project import find_root
from dra_infra.sources.files import files_in

Kind = Literal["program", "manifests", "chart"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
_NAMES: Final[Mapping[Kind, str]] = {"program": "a program", "manifests": "manifests", "chart": "a chart"}


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


def source_beside(path: Path, head: Compiled, kind: str | None = None) -> Source:
    """The source that a compiled head is compared with: the same path in the trusted tree.

    What lies there says how it is read, or the user, and not the head, which could have a program read as manifests and so as
    nothing. Only where the tree lacks the path, or has nothing there, does the head say it.

    Args:
        path: As the user typed it.
        head: What another job compiled.
        kind: What the user says that it is.

    Raises:
        ProgramError: `compiled-of-another-kind`.
    """
    source = trusted_source(path, kind)
    if source is None:
        return Source(kind=head.kind, root=path.absolute(), shown=str(path))
    if source.kind != head.kind:
        says = f"{_NAMES[source.kind]} is reviewed" if kind else f"the base has {_NAMES[source.kind]} there"
        problem = Problem(
            path="--head",
            code="compiled-of-another-kind",
            message=f"it holds {_NAMES[head.kind]}, and {says}",
            hint="review what replaces it at a path of its own",
        )
        raise ProgramError([problem])
    return source


def trusted_source(path: Path, kind: str | None) -> Source | None:
    """What the tree has at *path*, or the user says that it is; None where neither tells."""
    with suppress(ProgramError):
        source = find_source(path, kind)
        if kind or source.kind != "manifests" or any(isinstance(each, Path) for each in files_in(path)):
            return source
    # A pull request may add it.
    return Source(kind=cast("Kind", kind), root=path.absolute(), shown=str(path)) if kind else None


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
