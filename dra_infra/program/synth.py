"""Runs a Pulumi program in process, against a monitor and engine of ours, and gives what it asks for.

They answer as the engine does in a preview in which every provider is away (`dra_infra.program.monitor`).
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dra_infra.catalog.drivers import read_pins
from dra_infra.components.report import (
    RefusedComponentsError,
    classes_elsewhere_of_run,
    judged_at_end,
    problems_of_run,
    targets_of_run,
)
from dra_infra.errors import InvalidSpecError, Problem, ProgramError, in_reading_order
from dra_infra.kubernetes.api import group_of, is_placeholder
from dra_infra.output.secret_detector import report_mask
from dra_infra.process import collector_paused
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.charts import read_release
from dra_infra.program.host import hosted, run_file
from dra_infra.program.monitor import Engine, Monitor, is_object, is_of_kubernetes
from dra_infra.program.project import (
    Project,
    driver_of,
    gates_of,
    load_project,
    minor_of,
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
from dra_infra.program_objects import Program, ProgramObject
from dra_infra.resource_options import NO_OPTIONS
from dra_infra.target import NEWEST_DRIVER, ClusterTarget

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
    return replace(_collect(project, monitor, tuple(problems), targets), elsewhere=tuple(sorted(elsewhere)))


def _with_trace(error: BaseException, calls: Any) -> BaseException:
    """*error* with its trace: asyncio drops it when a second task waits for the task that failed; calls keep it."""
    if error is getattr(calls, "unhandled_exception", None):
        error.__traceback__ = calls.exception_traceback
    return error


def _collect(
    project: Project, monitor: Any, problems: tuple[Problem, ...], targets: Mapping[str, ClusterTarget]
) -> Program:
    objects = []
    releases = []
    for chart in monitor.empty_charts:
        monitor.note_made_by_provider(chart)
    of_kubernetes = [
        each for each in monitor.registrations.values() if each.custom and is_of_kubernetes(each.type)
    ]
    manifests = monitor.names.shown_in(
        {
            each.urn: complete_manifest(each.type, each.inputs)
            for each in of_kubernetes
            if is_object(each.type)
        }
    )
    for registration in of_kubernetes:
        if registration.urn not in manifests:
            monitor.note_made_by_provider(registration)
            if found := read_release(registration, targets.get(str(registration.component))):
                releases.append(
                    replace(
                        found,
                        namespace=monitor.names.shown(found.namespace),
                        values=monitor.names.shown(found.values),
                    )
                )
            continue
        options = registration.options
        delete_first = options.delete_before_replace and "spec" in options.replace_on_changes
        objects.append(
            ProgramObject(
                urn=registration.urn,
                manifest=manifests[registration.urn],
                component=registration.component,
                replacement="delete-first" if delete_first else "provider",
                place=registration.place,
                target=targets.get(str(registration.component)),
                provider=registration.provider,
            )
        )
    return Program(
        project=project.name,
        stack=project.stack,
        objects=tuple(sorted(objects, key=lambda each: each.sort_key)),
        not_seen=tuple(sorted({*monitor.not_seen, *project.not_seen})),
        problems=in_reading_order([*problems, *monitor.problems, *_find_made_twice(objects)]),
        kubernetes=minor_of(project.config),
        gates=gates_of(project.config),
        driver=_known(driver_of(project.config)),
        releases=tuple(sorted(releases, key=lambda each: each.urn)),
        stand_in_classes=monitor.stand_ins.classes,
        resources=tuple(sorted(monitor.registrations)),
        options={
            each.urn: each.options for each in monitor.registrations.values() if each.options != NO_OPTIONS
        },
    )


def _find_made_twice(objects: Sequence[ProgramObject]) -> Iterator[Problem]:
    """Yield a problem for each object of a cluster that an earlier resource makes too: its create is refused."""
    first: dict[tuple[str, ...], ProgramObject] = {}
    for each in objects:
        ref = each.ref
        is_known = each.has_known_name and not is_placeholder(ref.namespace)
        # A resource for a patch, such as ConfigMapPatch, changes an object that another one makes.
        if not is_known or each.urn.split("::", 3)[2].endswith(f":{ref.kind}Patch"):
            continue
        key = (each.provider, group_of(each.manifest), ref.kind, ref.namespace or "default", ref.name)
        other = first.setdefault(key, each)
        if other is not each:
            yield Problem(
                path=str(each.component or ref),
                code="duplicate-object",
                message=f"makes {ref}, which {_describe_maker(other)} makes too: `pulumi up` refuses the second, it already exists",
                hint="give one of them another name or namespace, or share one resource",
                place=each.place,
            )


def _describe_maker(item: ProgramObject) -> str:
    """Return the resource with its parents, by which two with one name can be told apart."""
    _, _, types, name = item.urn.split("::", 3)
    where = f" at {item.place}" if item.place else ""
    return f"{types.replace('$', ' > ')} {name}{where}"


def complete_manifest(type_: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest with apiVersion and kind, which a program may leave to the resource type."""
    _, api_version, kind = type_.split(":", 2)
    return {"apiVersion": api_version.removeprefix("core/"), "kind": kind, **inputs}


def _known(release: str) -> str:
    try:
        read_pins(release)
    except InvalidSpecError:
        return NEWEST_DRIVER
    return release
