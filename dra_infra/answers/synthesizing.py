"""The answer of `dra-infra synth`: the objects of a program, checked by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dra_infra.advice.program import check_program
from dra_infra.answers.settings import load_checked
from dra_infra.catalog.drivers import read_pins
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import DeviceClass, ObjectMeta
from dra_infra.program.charts import with_charts
from dra_infra.program.program_yaml import find_incomplete
from dra_infra.program.project import secret_texts_of
from dra_infra.program.python_start import add_for_own_program
from dra_infra.program.synth import DEFAULT_TIMEOUT, synth_project
from dra_infra.program_objects import Program


@dataclass(frozen=True, kw_only=True, slots=True)
class Synthesis:
    """The answer.

    Args:
        program: The objects.
        problems: What is wrong with them.
        incomplete: Objects that YAML has as comments, because values of theirs are secret or not known yet.
        secrets: Texts of the stack's settings and of the environment that are secret.
    """

    program: Program
    problems: tuple[Problem, ...]
    incomplete: tuple[Problem, ...] = ()
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def is_refused(self) -> bool:
        """True when the program has errors."""
        return any(problem.severity == "error" for problem in self.problems)

    @property
    def exit_code(self) -> int:
        """1 when the program has errors, or when the YAML has objects as comments; else 0."""
        return 1 if self.is_refused or self.incomplete else 0


def synthesize(
    directory: Path | str = ".",
    *,
    stack: str | None = None,
    config: Mapping[str, str],
    timeout: float = DEFAULT_TIMEOUT,
    charts: bool = False,
    as_yaml: bool = True,
    warn: Callable[[Sequence[Problem]], None] = lambda _: None,
) -> Synthesis:
    """Run a Pulumi program in this process, with all rights of the user, and check its objects.

    Args:
        directory: The folder of a Pulumi project.
        stack: Stack whose configuration is read.
        config: Settings over those of the stack file.
        timeout: Seconds that the program may run.
        charts: Whether charts that the program installs are rendered by helm.
        as_yaml: Whether the objects will be written as YAML. JSON has all that there is of every object, and says of each value whether
            it is known.
        warn: Called with warnings about the settings before the program runs.

    Raises:
        ProgramError: When there is no program, it fails, or it has no such stack or setting.
    """
    project, warnings = load_checked(Path(directory), stack, config)
    warn(warnings)
    add_for_own_program()
    program = synth_project(project, timeout=timeout, is_own_process=True)
    if charts:
        program = with_charts(program, project.root)
    # Which classes a cluster has is not known here: one that another program makes is taken by `class_ref`.
    known = {*read_pins(program.driver).classes, *(each.metadata.name for each in program.stand_in_classes)}
    elsewhere = [
        DeviceClass(metadata=ObjectMeta(name=name)) for name in program.elsewhere if name not in known
    ]
    synthesis = Synthesis(
        program=program,
        problems=tuple(check_program(program, classes=elsewhere)),
        secrets=secret_texts_of(project),
    )
    if synthesis.is_refused or not as_yaml:
        return synthesis
    return replace(synthesis, incomplete=tuple(find_incomplete(program.objects)))
