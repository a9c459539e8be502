"""Runs a program in TypeScript or JavaScript by Node.js and the runner of Pulumi's SDK, as the host of the language does.

The host itself (pulumi-language-nodejs) is not needed: it finds the runner among the program's packages and starts it.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Final

from dra_infra.errors import ProgramError
from dra_infra.program.languages.diagnostics import Ending
from dra_infra.program.languages.hosts import tool_missing
from dra_infra.program.languages.processes import run_to_end
from dra_infra.program.languages.variables import environment_for, settings_for
from dra_infra.program.project import Project

_RUNNER: Final = Path("@pulumi", "pulumi", "cmd", "run", "index.js")
_LOGGED: Final = 32
"""Exit status of the runner if it has logged the error (cmd/run/index.ts)."""


def run(project: Project, address: str, deadline: float) -> Ending:
    """Run the program.

    Args:
        project: The project.
        address: Where monitor and engine are reached.
        deadline: Until when the program may run, of `time.monotonic`.

    Raises:
        ProgramError: `language-host-missing` without Node.js, `packages-missing` without Pulumi's SDK.
    """
    node = shutil.which("node")
    if node is None:
        raise tool_missing("node", project.runtime)
    folder = project.program if project.program.is_dir() else project.program.parent
    options = project.runtime_options
    command = [
        node,
        *shlex.split(str(options.get("nodeargs") or "")),
        str(_find_runner(project)),
        f"--monitor={address}",
        f"--engine={address}",
        "--organization=organization",
        f"--project={project.name}",
        f"--root-directory={project.root}",
        f"--stack={project.stack}",
        "--parallel=1",
        "--dry-run",
        f"--pwd={folder}",
        "." if project.program.is_dir() else project.program.name,
    ]
    settings = settings_for(project, address)
    environment = {
        **environment_for(project),
        **{name: settings[name] for name in ("PULUMI_CONFIG", "PULUMI_CONFIG_SECRET_KEYS")},
        "PULUMI_NODEJS_TYPESCRIPT": "false" if options.get("typescript") is False else "true",
    }
    status, printed = run_to_end(command, folder=folder, environment=environment, deadline=deadline)
    is_reported = status == _LOGGED
    error = "" if status == 0 or is_reported else f"the program ended with {status}"
    return Ending(
        way="node ran the program",
        printed=printed,
        error=error,
        is_reported=is_reported,
        is_too_long=status is None,
    )


def _find_runner(project: Project) -> Path:
    """Return the runner, which is among the packages of the program."""
    runner = project.environment / _RUNNER if project.environment else _RUNNER
    if not runner.is_file():
        raise ProgramError.of(
            path=str(runner.parents[4]),
            code="packages-missing",
            message="the packages of the program are not installed: there is no @pulumi/pulumi",
            hint="install them first: `npm ci` in the folder of the program",
        )
    return runner
