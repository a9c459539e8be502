"""The Pulumi engine's preview for a review: it runs while the two sides of the review are made."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.program.preview import RunningPreview
from dra_infra.program.project import secret_texts_of
from dra_infra.program_objects import EnginePreview
from dra_infra.sources.sides import Asked
from dra_infra.sources.subject import Source


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineAsked:
    """Options of the engine's run.

    Args:
        policy_packs: Folders of policy packs.
        refresh: Whether it first reads what the cluster has, so that drift shows.
    """

    policy_packs: tuple[Path, ...] = ()
    refresh: bool = False


@contextlib.contextmanager
def previewing(
    source: Source, asked: Asked, engine: EngineAsked | None
) -> Iterator[Callable[[], EnginePreview | None]]:
    """Start the preview, give a way to wait for it, and end it with the context, whatever happens.

    Raises:
        ProgramError: `engine-not-for-source`, when there is no program; `no-project`, `invalid-project`.
    """
    if engine is None:
        yield lambda: None
        return
    if source.kind != "program":
        raise ProgramError([_not_a_program(source)])
    project = source.project
    mask = report_mask([*secret_texts(os.environ), *secret_texts(asked.config), *secret_texts_of(project)])
    with _ending_by_signal() as listen:
        try:
            running = RunningPreview(
                project,
                hide=mask.text,
                stack=asked.stack,
                config=asked.config,
                timeout=asked.timeout,
                policy_packs=engine.policy_packs,
                refresh=engine.refresh,
            )
        except ProblemsError as error:
            raise ProgramError(map(mask.problem, error.problems)) from None
        try:
            listen()
            yield running.result
        finally:
            running.stop()


@contextlib.contextmanager
def _ending_by_signal() -> Iterator[Callable[[], None]]:
    """Let the signal by which CI ends a job unwind the stack: otherwise the engine would live on.

    Yields what is called as soon as there is something to end: a signal that comes while it starts counts then, for
    there would be nobody yet to end it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    came: list[int] = []
    listens = False

    def leave(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        if listens:
            raise SystemExit(128 + number)

    def listen() -> None:
        nonlocal listens
        listens = True
        if came:
            raise SystemExit(128 + came[0])

    previous = signal.signal(signal.SIGTERM, leave)
    try:
        yield listen
    finally:
        signal.signal(signal.SIGTERM, previous)


def _not_a_program(source: Source) -> Problem:
    return Problem(
        path="--engine",
        code="engine-not-for-source",
        message=f"{source.shown} is {'a chart' if source.kind == 'chart' else 'manifests'}: only a program has a stack",
        hint="leave --engine out, or name the folder of a Pulumi project",
    )
