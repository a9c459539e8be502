"""`dra-infra init`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

from dra_infra.cli.init_fleet import starting_point
from dra_infra.cli.init_names import project_name
from dra_infra.cli.init_project import NewProject, files_of
from dra_infra.cli.init_writing import write_whole
from dra_infra.cli.printing import write_output

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
    as_json: bool,
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
    written = write_whole(files_of(project), force=force)
    shown = {
        "version": 1,
        "project": project.name,
        "directory": str(directory),
        "written": [_shown(path) for path in written.new],
        "replaced": [_shown(path) for path in written.replaced],
        "unchanged": [_shown(path) for path in written.same],
    }
    write_output(json.dumps(shown, indent=2) if as_json else "\n".join(_lines(project, directory, shown)))
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
