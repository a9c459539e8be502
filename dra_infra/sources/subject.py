"""The subject of a review, read off the path: a Pulumi program, a chart, a kustomization, or manifests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, cast, get_args

from dra_infra.errors import ProgramError
from dra_infra.program.kustomizations import is_kustomization
from dra_infra.program.program_json import Compiled
from dra_infra.program.project_files import find_root, nearest_path, project_file
from dra_infra.sources.files import SUFFIXES, files_in

Kind = Literal["program", "manifests", "chart", "kustomization"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
RENDERED: Final[tuple[Kind, ...]] = ("chart", "kustomization")
"""Kinds whose objects another program makes of files."""

_NAMES: Final[Mapping[Kind, str]] = {
    "program": "a program",
    "manifests": "manifests",
    "chart": "a chart",
    "kustomization": "a kustomization",
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """One side of a review in the working tree.

    Args:
        kind: How it becomes objects.
        root: The folder of the project, chart or kustomization; for manifests, the folder or file.
        shown: How files in it are named before their path: what the user typed.
        stack: Stack of a program; None takes the only one that has a file, else `dev`.
        config: Settings over those of the stack file.
    """

    kind: Kind
    root: Path
    shown: str
    stack: str | None = None
    config: Mapping[str, str] = field(default_factory=dict)


def find_source(
    path: Path,
    kind: str | None = None,
    *,
    stack: str | None = None,
    config: Mapping[str, str] = MappingProxyType({}),
) -> Source:
    """Find the program, chart, kustomization or manifests at *path*.

    Args:
        path: A folder or file.
        kind: What the user says that it is; None reads it off the path: `Chart.yaml` in the folder makes it a chart,
            `kustomization.yaml` a kustomization, `Pulumi.yaml` in the folder or above it, inside its repository, or a file of Python,
            a program, everything else is manifests, and so is a folder of a project that holds manifests and no Python.
        stack: Stack of a program.
        config: Settings over those of the stack file.

    Raises:
        ProgramError: `no-project` when it does not exist.
    """
    if not path.exists():
        raise ProgramError.of(
            path=str(path),
            code="no-project",
            message="there is no such file or folder",
            hint=nearest_path(path) or "name a Pulumi project, a folder of manifests, or a chart",
        )
    is_program = _is_in_project(path) if path.is_dir() else path.suffix == ".py"
    if kind == "program" or (kind is None and is_program):
        return Source(kind="program", root=find_root(path), shown=str(path), stack=stack, config=config)
    if kind == "chart" or (kind is None and (path / "Chart.yaml").is_file()):
        return Source(kind="chart", root=path.resolve(), shown=str(path), config=config)
    if kind == "kustomization" or (kind is None and is_kustomization(path)):
        return Source(kind="kustomization", root=path.resolve(), shown=str(path), config=config)
    return Source(kind="manifests", root=path.absolute(), shown=str(path), config=config)


def check_kind_of_head(trusted: Source, head: Compiled, kind: str | None = None) -> None:
    """Refuse a compiled head that is of another kind than what the trusted tree has at its path.

    The tree says how the path is read, or the user, and not the head, which could have a program read as manifests and so as
    nothing.

    Raises:
        ProgramError: `compiled-of-another-kind`.
    """
    if trusted.kind == head.kind:
        return
    says = f"{_NAMES[trusted.kind]} is reviewed" if kind else f"the base has {_NAMES[trusted.kind]} there"
    raise ProgramError.of(
        path="--head",
        code="compiled-of-another-kind",
        message=f"it holds {_NAMES[head.kind]}, and {says}",
        hint="review what replaces it at a path of its own",
    )


def trusted_source(
    path: Path,
    kind: str | None,
    *,
    stack: str | None = None,
    config: Mapping[str, str] = MappingProxyType({}),
) -> Source | None:
    """The source that the tree has at *path*, or the user says that it is; None where neither tells."""
    with suppress(ProgramError):
        source = find_source(path, kind, stack=stack, config=config)
        if kind or source.kind != "manifests" or any(isinstance(each, Path) for each in files_in(path)):
            return source
    # A pull request may add it.
    if kind is None:
        return None
    return Source(kind=cast("Kind", kind), root=path.absolute(), shown=str(path), stack=stack, config=config)


def _is_in_project(path: Path) -> bool:
    if (path / "Chart.yaml").is_file() or is_kustomization(path):
        return False
    folder = path.resolve()
    for each in (folder, *folder.parents):
        if project_file(each):
            return each == folder or any(folder.glob("*.py")) or not _holds_manifests_alone(folder)
        if (each / ".git").exists():
            return False
    return False


def _holds_manifests_alone(folder: Path) -> bool:
    """True with manifests in the folder itself, or in those below and no Python of its own, which could read them."""
    found = False
    for file in files_in(folder, (*SUFFIXES, ".py")):
        # What is installed there is not the user's.
        if not isinstance(file, Path) or "node_modules" in file.relative_to(folder).parts:
            continue
        if file.suffix == ".py" or file.parent == folder:
            return file.suffix != ".py"
        found = True
    return found
