"""What commands read from the stack: its settings, held to those that there are, and its fleet."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from dra_infra.catalog import load_fleet
from dra_infra.cli.printing import print_problems
from dra_infra.engine.project import Project, load_project, stacks_with_file
from dra_infra.errors import Problem, ProgramError
from dra_infra.model.fleet import Fleet
from dra_infra.model.gates import SUPPORTED_MINORS

FLEET_SETTING = "dra-infra:fleet"
SETTINGS: Final = ("driver", "fleet", "kubernetes")
"""Settings of ours in a stack: each as `dra-infra:NAME`."""


def choose_fleet(
    fleet: str | None,
    directory: Path,
    *,
    stack: str | None,
    config: Mapping[str, str],
    driver: str | None = None,
) -> Fleet | None:
    """The fleet that was named, else the stack's, else none; *driver* is for names that say no release.

    Raises:
        FleetError: When it cannot be read.
        ProgramError: As `load_checked` says.
    """
    project = load_checked(directory, stack, config)
    settings = project.config
    name = fleet or settings.get(FLEET_SETTING)
    if name and not fleet and FLEET_SETTING not in config and (project.root / name).is_file():
        # The stack file names it as it lies beside it, wherever the command is run.
        name = str(project.root / name)
    minor = settings.get("dra-infra:kubernetes")
    minor = minor if minor in SUPPORTED_MINORS else None
    return load_fleet(name, kubernetes=minor, driver=driver) if name else None


def load_checked(directory: Path, stack: str | None, config: Mapping[str, str]) -> Project:
    """The project in *directory*, whose stack and settings were not mistyped; what may be a slip is told as a warning.

    Only what is asked about is held to this: the base of a review may be older than a stack.

    Raises:
        ProgramError: With codes `stack-not-known`, `unknown-setting`, and those of `load_project`.
    """
    project = load_project(directory, stack, config)
    found = [*_stack_problems(project, asked=stack is not None), *_setting_problems(project)]
    if found:
        raise ProgramError(found)
    print_problems([*_bare_names(project, config, load_project(directory, stack))])
    return project


def _stack_problems(project: Project, *, asked: bool) -> Iterator[Problem]:
    files = stacks_with_file(project.root)
    if not asked or not files or project.stack in files:
        return
    near = difflib.get_close_matches(project.stack[:80], files, n=1)
    start = f"did you mean {near[0]}?" if near else f"stacks with a file are {', '.join(files)};"
    yield Problem(
        path="--stack",
        code="stack-not-known",
        message=f"there is no Pulumi.{project.stack}.yaml, so {project.stack!r} has no settings",
        hint=f"{start} for a stack without settings, write an empty Pulumi.{project.stack}.yaml",
    )


def _setting_problems(project: Project) -> Iterator[Problem]:
    known = [f"dra-infra:{name}" for name in SETTINGS]
    for key in sorted(project.config):
        if key.startswith("dra-infra:") and key not in known:
            near = difflib.get_close_matches(key[:80], known, n=1, cutoff=0.8)
            hint = f"did you mean {near[0]}?" if near else f"settings are {', '.join(known)}"
            yield Problem(path=key, code="unknown-setting", message="there is no such setting", hint=hint)


def _bare_names(project: Project, config: Mapping[str, str], without: Project) -> Iterator[Problem]:
    for key in sorted(set(config) & set(SETTINGS)):
        # A program may have a setting of that name; one that its stack knows is meant.
        if f"{project.name}:{key}" not in without.config:
            yield Problem(
                path=f"--config {key}",
                code="unknown-setting",
                message=f"sets {project.name}:{key}, a setting of the program",
                hint=f"for the stack's {key} write --config dra-infra:{key}=...",
                severity="warning",
            )
