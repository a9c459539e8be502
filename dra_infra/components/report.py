"""All problems of all components in one run.

A component with problems makes no children. The first one also hands the SDK an Output that fails once the program's
body has run to its end; by then every component has reported, and the run fails once, with everything in one text,
under the real engine as well as in `synth`. (`pulumi.log.error` alone does not fail a Python program.)

Under `pulumi.runtime.set_mocks` all tests of a process are one run: each test that reports problems fails with its own.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

import pulumi
from pulumi.runtime import get_root_directory, get_root_resource
from pulumi.runtime.mocks import MockMonitor
from pulumi.runtime.settings import get_monitor

from dra_infra.errors import Place, Problem
from dra_infra.target import ClusterTarget

_OWN_PACKAGE = Path(__file__).resolve().parent.parent
_PYTHON = tuple({sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib")})

judged_at_end: contextvars.ContextVar[bool] = contextvars.ContextVar("judged_at_end", default=False)
"""Whether whoever runs the program judges all its objects together when it is through, so that components need not."""


@dataclass
class _Run:
    problems: list[Problem] = field(default_factory=list)
    raised: int = 0
    """How many of the problems an Output has raised."""
    will_fail: bool = False
    """Whether an Output is on its way that raises the others."""
    tests: int = 0
    """How many tests of the run are over: what failed in one of them fails no other."""
    targets: dict[str, ClusterTarget] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)
    refusal: Callable[[Sequence[Problem]], Exception] | None = None
    """Makes the error of a component that is constructed by itself; None in a program, whose components fail together."""
    place: Callable[[Problem], Problem] = lambda problem: problem
    """Returns a problem with its path as the program has it, where that is in another language."""
    mappings: dict[str, dict[str, list[tuple[str, Mapping[str, Any]]]]] = field(default_factory=dict)


# Each run has a root stack resource of its own, and several runs may share a process in tests.
_runs: weakref.WeakKeyDictionary[object, _Run] = weakref.WeakKeyDictionary()
_run_without_root = _Run()

_own_run: contextvars.ContextVar[_Run | None] = contextvars.ContextVar("own_run", default=None)
"""The run of one component, where a provider constructs it: a process of these has no root stack, and many components at once."""


def begin_own_run(
    refusal: Callable[[Sequence[Problem]], Exception], place: Callable[[Problem], Problem]
) -> None:
    """Give the component that this task constructs a run of its own: its problems are those of no other component.

    What is known only later, a secret for one, still fails through an Output. Whoever begins the run raises the other problems.

    Args:
        refusal: Makes the error that an Output raises.
        place: Returns a warning with its path as the program has it.
    """
    _own_run.set(_Run(refusal=refusal, place=place))


def _run() -> _Run:
    own = _own_run.get()
    if own is not None:
        return own
    root = get_root_resource()
    return _run_without_root if root is None else _runs.setdefault(root, _Run())


_collected: contextvars.ContextVar[list[Problem] | None] = contextvars.ContextVar("collected", default=None)


@contextmanager
def collect_problems() -> Iterator[list[Problem]]:
    """Yield the list of problems that components report inside of the block, none of which makes the run fail."""
    problems: list[Problem] = []
    before = _collected.set(problems)
    try:
        yield problems
    finally:
        _collected.reset(before)


def problems_of_run() -> list[Problem]:
    """Problems that components of the current run reported, in the order of the program; the list grows with the run."""
    return _run().problems


def targets_of_run() -> dict[str, ClusterTarget]:
    """The targets of the current run's components by label, of those that have another than the stack's."""
    return _run().targets


def classes_elsewhere_of_run() -> set[str]:
    """DeviceClasses that components of the current run take by `class_ref`: another program makes them."""
    return _run().elsewhere


def mappings_of_run() -> dict[str, dict[str, list[tuple[str, Mapping[str, Any]]]]]:
    """Returns what queues of the current run need in Kueue's configuration, with their labels, by the name of their provider and `keys_of`."""
    return _run().mappings


def report(problems: Iterable[Problem]) -> None:
    """Add *problems* to those of the run; the first ones make the run fail at its end."""
    found = list(problems)
    if not found:
        return
    place = find_user_place()
    placed = [problem if problem.place else problem.at(place) for problem in found]
    collected = _collected.get()
    if collected is not None:
        collected += placed
        return
    run = _run()
    run.problems += placed
    if not run.will_fail and run.refusal is None:
        run.will_fail = True
        failing_output()


def warn(resource: pulumi.Resource, label: str, problems: Iterable[Problem]) -> None:
    """Show what stops nothing: with the problems of the run where somebody reads these, else in the engine's log.

    Args:
        resource: The component.
        label: How problems name it.
        problems: Their paths are arguments of the component.
    """
    named = [replace(problem.below(label), severity="warning") for problem in problems]
    if not named:
        return
    if judged_at_end.get():
        place = find_user_place()
        problems_of_run().extend(problem.at(place) for problem in named)
        return
    for problem in named:
        log_warning(resource, problem)


def log_warning(resource: pulumi.Resource, problem: Problem) -> None:
    """Show a problem that stops nothing in the engine's log."""
    pulumi.log.warn(str(_run().place(problem)), resource)


class RefusedComponentsError(pulumi.RunError):
    """Ends a run whose components were refused: the engine shows its text, without a trace."""


def failing_output() -> pulumi.Output[Any]:
    """An Output that raises the run's problems once the body of the program is through.

    A workload that takes it is never registered, so nothing is created that refers to a broken component. While a test
    collects problems it raises nothing.
    """
    if _collected.get() is not None:
        return pulumi.Output.from_input(None)
    run = _run()
    test = run.tests

    async def fail() -> None:
        # The body of the program runs without giving way; one yield is behind its last line.
        await asyncio.sleep(0)
        if test != run.tests:
            return
        problems = run.problems[run.raised :] or run.problems
        run.raised = len(run.problems)
        run.will_fail = False
        raise run.refusal(problems) if run.refusal else RefusedComponentsError(render(problems))

    return pulumi.Output.from_input(fail())


def take_unraised() -> list[Problem]:
    """Take the errors that no Output has raised by the end of a test under `pulumi.runtime.set_mocks`; they count as raised then."""
    run = _run()
    if not isinstance(get_monitor(), MockMonitor):
        return []
    unraised = [each for each in run.problems[run.raised :] if each.severity == "error"]
    run.raised = len(run.problems)
    run.will_fail = False
    run.tests += 1
    return unraised


def render(problems: Sequence[Problem]) -> str:
    """The text of a failed run: how many problems, then each with its hint."""
    unique = list(dict.fromkeys(problems))
    count = "1 problem" if len(unique) == 1 else f"{len(unique)} problems"
    return "\n".join([f"{count}:", *map(str, unique)])


def find_user_place() -> Place | None:
    """Return the line of the user's program that is being executed: the innermost frame in a file of the user's own."""
    if _own_run.get() is not None:
        # The program is in another process, and another language.
        return None
    # Under `set_mocks` the SDK names no folder of the project.
    root = _resolve_folder(get_root_directory() or "") or str(Path.cwd())
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  (inspect.stack reads source files: 40 times slower)
    while frame is not None:
        if file := user_file(frame.f_code.co_filename, root):
            return Place(file=file, line=frame.f_lineno)
        frame = frame.f_back
    return None


@lru_cache(maxsize=64)
def _resolve_folder(folder: str) -> str:
    """Return an absolute *folder* without links; empty where it names none."""
    return str(Path(folder).resolve()) if Path(folder).is_absolute() and Path(folder).is_dir() else ""


@lru_cache(maxsize=4096)
def user_file(file: str, root: str) -> str:
    """Return a file of the user's own as seen from the project in *root*; empty for one of a library, or of ours.

    A package of the same checkout, outside of the project, is the user's own: `../packages/acme.py`.
    """
    path = Path(file)
    is_library = "site-packages" in path.parts or "dist-packages" in path.parts
    if not path.is_absolute() or is_library or path.is_relative_to(_OWN_PACKAGE):
        return ""
    if path.is_relative_to(root):
        return str(path.relative_to(root))
    return "" if any(map(path.is_relative_to, _PYTHON)) else os.path.relpath(path, root)
