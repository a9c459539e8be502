"""Runs a Pulumi program in process, against a monitor and engine of ours, and gives what it asks for.

They answer as the engine does in a preview in which every provider is away (`dra_infra.program.monitor`).
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dra_infra.components.report import (
    RefusedComponentsError,
    classes_elsewhere_of_run,
    judged_at_end,
    problems_of_run,
    targets_of_run,
)
from dra_infra.errors import Problem, ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.process import collector_paused
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.collection import collect
from dra_infra.program.host import hosted, run_file
from dra_infra.program.languages.running import run_in_language
from dra_infra.program.monitor import Engine, Monitor
from dra_infra.program.project import (
    PYTHON,
    Project,
    load_project,
    secret_texts_of,
)
from dra_infra.program.stack_settings import full_key
from dra_infra.program.stand_ins import StandIns, read_stand_ins
from dra_infra.program.surroundings import (
    ProgramTimeoutError,
    bounded,
    close_loop,
    explain,
    new_loop,
    output_on_stderr,
    sdk_quiet,
    sdk_shortcuts,
)
from dra_infra.program.transforms import Transforms
from dra_infra.program_objects import Program
from dra_infra.target import ClusterTarget

DEFAULT_TIMEOUT = 60.0
"""Seconds that a program may run."""


def synth(
    directory: Path | str = ".",
    *,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Program:
    """Run the Pulumi program in *directory* with preview semantics: no CLI, no network, no cluster.

    Args:
        directory: A Pulumi project whose runtime is python.
        stack: Stack whose configuration is read; None takes the only one, else `dev`.
        config: Settings over those of the stack file, by key such as `dra-infra:kubernetes`.
        timeout: Seconds that the program may run.

    Returns:
        The program with every problem that its components reported in `problems`.

    Raises:
        ProgramError: When the program cannot be found, raises, or does not end.
    """
    return synth_project(load_project(Path(directory), stack, config), timeout=timeout)


def synth_project(
    project: Project, *, timeout: float = DEFAULT_TIMEOUT, is_own_process: bool = False
) -> Program:
    """Run the program of a project that was read before, as `synth` does.

    Args:
        project: The project.
        timeout: Seconds that the program may run.
        is_own_process: Whether this process was started for the program, and has no modules of others.

    Raises:
        ProgramError: When the program raises, or does not end.
    """
    if project.runtime != PYTHON:
        return run_in_language(project, timeout=timeout)
    stand_ins = read_stand_ins(project.root)
    with hosted(project.program, project.variables, project.environment, is_own_process=is_own_process):
        return _run(project, lambda: run_file(project.program), timeout, stand_ins)


def synth_function(
    program: Callable[[], Any],
    *,
    project: str | None = None,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Program:
    """Run a function that declares resources, as `synth` runs a project.

    Args:
        program: The function.
        project: What `pulumi.get_project()` returns, and the namespace of settings without one; None takes `test`.
        stack: What `pulumi.get_stack()` returns; None takes `test`.
        config: Settings by key.
        timeout: Seconds that it may run.
    """
    root = Path.cwd()
    name = project or "test"
    stack = stack or "test"
    settings = Project(
        name=name,
        root=root,
        program=root,
        stack=stack,
        stack_file=root / f"Pulumi.{stack}.yaml",
        config={full_key(name, key): value for key, value in (config or {}).items()},
    )
    return _run(settings, program, timeout, StandIns())


def _run(project: Project, body: Callable[[], Any], timeout: float, stand_ins: StandIns) -> Program:
    # Of its own context, so that a run leaves the SDK's settings in the caller's context as they were.
    return contextvars.copy_context().run(_run_in_context, project, body, timeout, stand_ins)


def _run_in_context(
    project: Project, body: Callable[[], Any], timeout: float, stand_ins: StandIns
) -> Program:
    from pulumi import runtime
    from pulumi.runtime import settings, stack

    judged_at_end.set(True)
    transforms = Transforms()
    monitor = Monitor(
        project=project.name,
        stack=project.stack,
        root=project.root,
        names=MadeUpNames(project.config),
        transforms=transforms,
        config=project.config,
        stand_ins=stand_ins,
        folder=project.program if project.program.is_dir() else project.program.parent,
    )
    settings.set_root_resource(None)  # type: ignore[arg-type]  # a run before this one in the process left its own
    runtime.configure(
        runtime.Settings(
            project=project.name,
            stack=project.stack,
            monitor=monitor,
            engine=Engine(),
            dry_run=True,
            organization="organization",
            root_directory=str(project.root),
        )
    )
    runtime.set_all_config(dict(project.config), list(project.secret_keys))
    loop = new_loop()
    settings.SETTINGS.callbacks = transforms.start(monitor, loop)
    loop.set_exception_handler(lambda _loop, _context: None)
    problems: list[Problem] = []
    targets: dict[str, ClusterTarget] = {}
    elsewhere: set[str] = set()
    raised: list[Exception] = []

    def observed() -> Any:
        nonlocal problems, targets, elsewhere
        problems = problems_of_run()
        targets = targets_of_run()
        elsewhere = classes_elsewhere_of_run()
        try:
            return body()
        except Exception as error:
            # The SDK shows the failure of a component instead, and the user would meet one after the other.
            raised.append(error)
            raise

    try:
        asyncio.set_event_loop(loop)
        with bounded(timeout), collector_paused(), output_on_stderr(), sdk_quiet(), sdk_shortcuts():
            loop.run_until_complete(stack.run_in_stack(observed))
    except (Exception, SystemExit, ProgramTimeoutError) as error:
        cause = raised[0] if raised else _with_trace(error, settings.SETTINGS.rpc_manager)
        # Components that were refused end the run, and their problems say why. What the program itself raised is told besides.
        if not problems or not isinstance(cause, RefusedComponentsError):
            mask = report_mask(secret_texts_of(project))
            found = explain(cause, project, limit=timeout, mask=mask).problems
            raise ProgramError([*problems, *found]) from error
    finally:
        close_loop(loop)
    return replace(collect(project, monitor, tuple(problems), targets), elsewhere=tuple(sorted(elsewhere)))


def _with_trace(error: BaseException, calls: Any) -> BaseException:
    """*error* with its trace: asyncio drops it when a second task waits for the task that failed; calls keep it."""
    if error is getattr(calls, "unhandled_exception", None):
        error.__traceback__ = calls.exception_traceback
    return error
