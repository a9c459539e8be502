"""Builds a program in Go and runs it, as the host of the language does (pulumi-language-go), which is not needed."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

from dra_infra.program.languages.diagnostics import Ending
from dra_infra.program.languages.hosts import tool_missing
from dra_infra.program.languages.processes import run_to_end
from dra_infra.program.languages.variables import environment_for, settings_for
from dra_infra.program.project import Project

_OFFLINE: Final = {
    # No module, toolchain or checksum is fetched, and no file of the user's changes how Go works.
    "GOPROXY": "off",
    "GOSUMDB": "off",
    "GOTOOLCHAIN": "local",
    "GOENV": "off",
    "GOTELEMETRY": "off",
    "GOWORK": "off",
}


def run(project: Project, address: str, deadline: float) -> Ending:
    """Build the program, unless the project names a binary, and run it.

    Args:
        project: The project.
        address: Where monitor and engine are reached.
        deadline: Until when it may be built and run, of `time.monotonic`.

    Raises:
        ProgramError: `language-host-missing` without Go.
    """
    folder = project.program if project.program.is_dir() else project.program.parent
    environment = environment_for(project)
    with tempfile.TemporaryDirectory(prefix="dra-infra-go-") as made:
        if named := project.runtime_options.get("binary"):
            binary = folder / str(named)
            way = "the program ran"
        else:
            binary = Path(made, "program")
            failed = _build(project, folder, binary, deadline)
            if failed is not None:
                return failed
            way = "go built the program, which ran"
        if not binary.is_file():
            return Ending(error=f"runtime.options.binary: there is no {named}")
        status, printed = run_to_end(
            [str(binary)],
            folder=folder,
            environment={**environment, **settings_for(project, address)},
            deadline=deadline,
        )
    error = "" if status == 0 else f"the program ended with {status}"
    return Ending(way=way, printed=printed, error=error, is_too_long=status is None)


def _build(project: Project, folder: Path, binary: Path, deadline: float) -> Ending | None:
    """Build the program; return how that failed."""
    go = shutil.which("go")
    if go is None:
        raise tool_missing("go", project.runtime)
    has_vendor = (folder / "vendor" / "modules.txt").is_file()
    environment = {
        **environment_for(project),
        **_OFFLINE,
        "GOFLAGS": "-mod=vendor" if has_vendor else "-mod=readonly",
        "CGO_ENABLED": "0",
    }
    target = "." if project.program.is_dir() else project.program.name
    command = [go, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", str(binary), target]
    status, printed = run_to_end(command, folder=folder, environment=environment, deadline=deadline)
    if status == 0:
        return None
    error = f"go build ended with {status}"
    return Ending(printed=printed, error=error, is_too_long=status is None, is_refused=True)
