"""Runs a program in another language: its host, our monitor and the package of components, until all have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from dra_infra.errors import ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.wording import join_words
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.collection import collect
from dra_infra.program.languages import component_package, go_program, node_program, yaml_host
from dra_infra.program.languages.component_package import ComponentPackage
from dra_infra.program.languages.diagnostics import Ending, read_problems
from dra_infra.program.languages.endpoint import Endpoint
from dra_infra.program.languages.hosts import check_language, name_language
from dra_infra.program.languages.registrations import LanguageMonitor
from dra_infra.program.languages.remote_transforms import RemoteTransforms
from dra_infra.program.languages.yaml_program import YamlProgram, read_program
from dra_infra.program.monitor import Engine
from dra_infra.program.project import Project, secret_texts_of
from dra_infra.program.stand_ins import read_stand_ins
from dra_infra.program_objects import NotSeen, Program

_RUNNERS: Final[Mapping[str, Callable[[Project, str, float], Ending]]] = {
    "yaml": yaml_host.run,
    "nodejs": node_program.run,
    "go": go_program.run,
}
"""Run a program against the address of our monitor, until a deadline."""


def run_in_language(project: Project, *, timeout: float) -> Program:
    """Run the program of a project without an engine.

    Args:
        project: The project.
        timeout: Seconds that it may run.

    Raises:
        ProgramError: `language-not-run`, `language-host-missing`, `packages-missing`, or why the program gives no objects.
    """
    check_language(project.runtime)
    run = _RUNNERS[project.runtime]
    deadline = time.monotonic() + timeout
    written = read_program(project.program, project.root) if project.runtime == "yaml" else YamlProgram()
    transforms = RemoteTransforms(deadline)
    monitor = LanguageMonitor(
        project=project.name,
        stack=project.stack,
        root=project.root,
        names=MadeUpNames(project.config),
        transforms=transforms,
        config=project.config,
        stand_ins=read_stand_ins(project.root),
        folder=project.program if project.program.is_dir() else project.program.parent,
        places=written.places,
        functions=written.functions,
    )
    engine = Engine()

    def schema_of(package: str) -> bytes:
        return component_package.schema() if package == "dra-infra" else written.schema(package)

    # The package has an endpoint of its own: registrations of the program that wait for it would take all threads of one.
    ours, of_package = (
        Endpoint(monitor=monitor, registrar=monitor, engine=engine, schema_of=schema_of) for _ in range(2)
    )
    package = ComponentPackage(project=project, address=of_package.address, deadline=deadline)
    monitor.package = package
    try:
        ours.start()
        of_package.start()
        ending = run(project, ours.address, deadline)
    finally:
        transforms.stop()
        package.stop()
        ours.stop()
        of_package.stop()
    ending.logged.extend(engine.logged)
    if ending.has_failed:
        mask = report_mask(secret_texts_of(project))
        of_language = [mask.problem(each) for each in read_problems(ending, project, limit=timeout)]
        raise ProgramError(monitor.problems if monitor.has_refused else [*monitor.problems, *of_language])
    monitor.not_seen.update(_find_not_seen(project, ending, written))
    monitor.leave_out_incomplete()
    return collect(project, monitor, (), {})


def _find_not_seen(project: Project, ending: Ending, written: YamlProgram) -> Iterator[NotSeen]:
    """Yield how the program was run, and what its host could not check."""
    reason = f"{ending.way} without an engine"
    if unknown := sorted(written.packages - {"dra-infra"}):
        reason += f"; it did not check the properties of resources of {join_words(unknown)}: their schema is not known here"
    yield NotSeen(what="language", name=name_language(project.runtime), reason=reason)
