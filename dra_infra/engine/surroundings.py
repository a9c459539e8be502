"""What surrounds the body of a program while it runs in process: its folder and modules, a time limit, quiet."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import os
import runpy
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from dra_infra.engine.failures import ProgramTimeoutError


def run_file(program: Path) -> None:
    """Run a program as Pulumi's Python host does: from its folder, which comes first on the module path."""
    path = str(program if program.is_dir() else program.parent)
    before = set(sys.modules)
    directory = Path.cwd()
    sys.path.insert(0, path)
    arguments, sys.argv = sys.argv, [str(program)]
    try:
        os.chdir(path)
        runpy.run_path(str(program), run_name="__main__")
    finally:
        os.chdir(directory)
        sys.argv = arguments
        with contextlib.suppress(ValueError):
            sys.path.remove(path)
        # The program's own modules must be fresh for the next program of the same process.
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(path) and "site-packages" not in file:
                del sys.modules[name]


@contextlib.contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Interrupt the body after *seconds*, at the line where it then is; only the main thread can be interrupted."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise ProgramTimeoutError

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@contextlib.contextmanager
def output_on_stderr() -> Iterator[None]:
    """What a program prints must not mix with what synth prints."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


@contextlib.contextmanager
def sdk_quiet() -> Iterator[None]:
    """The SDK prints tracebacks of abandoned tasks; the problem that caused them is shown instead."""
    logger = logging.getLogger("asyncio")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def new_loop() -> asyncio.AbstractEventLoop:
    """A loop on which the SDK's calls of the engine run at once: there is no socket for which a thread had to wait."""
    loop = asyncio.new_event_loop()
    in_thread = loop.run_in_executor

    def run(executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        if executor is not None or not _is_call_of_sdk(function):
            return in_thread(executor, function, *arguments)
        called = loop.create_future()
        called.set_result(function(*arguments))
        return called

    loop.run_in_executor = run  # type: ignore[method-assign, assignment]  # the event loop's class is the platform's
    return loop


def _is_call_of_sdk(function: Callable[..., Any]) -> bool:
    return str(getattr(function, "__module__", "")).startswith("pulumi.runtime.")


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left in *loop*, without a word, and close it."""
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        with contextlib.redirect_stderr(io.StringIO()):
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()
