"""The `dra-infra init` command: lays out a new project.

Names of new projects follow Pulumi's rule.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import Final, Literal

from dra_infra.cli.init_project import NewProject, files_of, starting_point, write_whole
from dra_infra.cli.printing import write_json, write_lines
from dra_infra.errors import ScaffoldError
from dra_infra.output.report_data import make_report

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
    raise ScaffoldError.of(
        path="DIR" if name is None else "--name",
        code="project-name",
        message=f"{why}: up to {LONGEST} ASCII letters, digits, hyphens, underscores and periods",
        hint=f"write --name {nearest_name(chosen)}",
    )


def nearest_name(text: str) -> str:
    """The nearest name to *text* that Pulumi takes; `infra` where nothing of it can stay."""
    plain = unicodedata.normalize("NFKD", text[: 10 * LONGEST]).encode("ascii", "ignore").decode()
    return _NOT_IN_NAMES.sub("-", plain).strip("-.")[:LONGEST].rstrip("-.") or "infra"


def _spelt(text: str) -> str:
    # What cannot be seen, or steers a terminal, is spelled out.
    return ascii(text if len(text) <= LONGEST else f"{text[:60]}...")


DEFAULT_FLEET = "hgx-h100 x 4"

CI = Literal["github", "gitlab", "none"]


def run(
    directory: Path,
    *,
    name: str | None,
    fleet: str,
    ci: CI,
    kubernetes: str,
    force: bool,
    form: str,
) -> int:
    """Lay out a project in *directory*: all of it, or nothing.

    Raises:
        ScaffoldError: `project-name`, `files-differ`, `folder-not-usable`, `fleet-without-gpus`.
        FleetError: When the fleet cannot be read, or the minor is none.
    """
    root = Path(os.path.abspath(directory))  # noqa: PTH100  (resolve() would follow links that the user named)
    start = starting_point(fleet, kubernetes=kubernetes)
    project = NewProject(
        name=project_name(name, folder=root), root=root, kubernetes=kubernetes, ci=ci, start=start
    )
    written = write_whole(files_of(project), force=force, root=root)
    shown: dict[str, object] = {
        "project": project.name,
        "directory": str(directory),
        "written": [_shown(path) for path in written.new],
        "replaced": [_shown(path) for path in written.replaced],
        "unchanged": [_shown(path) for path in written.same],
    }
    if form == "json":
        write_json(make_report("init", shown), sort_keys=False)
    else:
        write_lines(_lines(project, directory, shown))
    return 0


def _lines(project: NewProject, directory: Path, shown: dict[str, object]) -> list[str]:
    signs = {"written": "+", "replaced": "~", "unchanged": "="}
    lines = [
        f"{sign} {path}"
        for key, sign in signs.items()
        for path in shown[key]  # type: ignore[attr-defined]
    ]
    if not (shown["written"] or shown["replaced"]):
        return [*lines, "", "all of it is there already; nothing was written"]
    lines += ["", f"project {project.name} for {project.start.fleet}. Next:"]
    if str(directory) != ".":
        lines += [f"  cd {directory}"]
    return [*lines, "  dra-infra synth", "  dra-infra simulate", "  pytest"]


def _shown(path: Path) -> str:
    return os.path.relpath(path)
