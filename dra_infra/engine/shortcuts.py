"""Three functions of the SDK in a cheaper form, which gives the same result where the engine is in the same process.

The SDK expects an engine behind a socket, beside which its own work does not count. Without the socket, a third of a
run went into these:

- `_get_stack_trace` formats every frame, asks the disk for every source file and writes every path as a URI; the
  monitor reads one of them;
- `create_urn` makes eight Outputs from three texts, for a URN that only counts where there is no engine;
- `log.debug` makes a message that the engine drops.

The first two names are private to the SDK's runtime. One that is not there, or takes other parameters than those known
here, is left as it is: slower, to the same end.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from types import FrameType
from typing import Any

import pulumi
from pulumi import log
from pulumi.runtime import get_root_directory, resource
from pulumi.runtime.proto import source_pb2

from dra_infra.engine.failures import is_of_program

_CONSTRUCTORS = 3
"""Calls of `__init__` between the SDK's registration and whoever made the resource, as the SDK counts them."""

_in_run: ContextVar[bool] = ContextVar("_in_run", default=False)


@contextlib.contextmanager
def sdk_shortcuts() -> Iterator[None]:
    """Take the shortcuts in the body and its tasks; everything else in the process goes the SDK's own way."""
    _install()
    token = _in_run.set(True)
    try:
        yield
    finally:
        _in_run.reset(token)


@lru_cache(maxsize=1)
def _install() -> None:
    _replace(resource, "_get_stack_trace", (), _trace_of_program)
    _replace(resource, "create_urn", ("name", "type_", "parent", "project", "stack"), _create_urn)
    _replace(log, "debug", ("msg", "resource", "stream_id", "ephemeral"), _debug)


def _replace(
    module: Any,
    name: str,
    parameters: Sequence[str],
    make: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> None:
    original = getattr(module, name, None)
    if callable(original) and tuple(inspect.signature(original).parameters) == tuple(parameters):
        setattr(module, name, wraps(original)(make(original)))


def _trace_of_program(original: Callable[[], Any]) -> Callable[[], Any]:
    def trace() -> Any:
        if not _in_run.get():
            return original()
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  (traceback reads source files)
        constructors = 0
        while frame is not None:
            constructors += frame.f_code.co_name == "__init__"
            if constructors == _CONSTRUCTORS:
                break
            frame = frame.f_back
        root = get_root_directory()
        while frame is not None and frame.f_back is not None:
            frame = frame.f_back
            uri = _uri_of(frame.f_code.co_filename, root)
            if uri:
                position = source_pb2.SourcePosition(uri=uri, line=frame.f_lineno)
                return source_pb2.StackTrace(frames=[source_pb2.StackFrame(pc=position)])
        return source_pb2.StackTrace()

    return trace


def _create_urn(original: Callable[..., Any]) -> Callable[..., Any]:
    def create_urn(
        name: Any, type_: Any, parent: Any = None, project: Any = None, stack: Any = None
    ) -> pulumi.Output[str]:
        if _in_run.get() and isinstance(parent, str) and isinstance(type_, str) and isinstance(name, str):
            return pulumi.Output.from_input(f"{parent[: parent.rfind('::')]}${type_}::{name}")
        made: pulumi.Output[str] = original(name, type_, parent, project, stack)
        return made

    return create_urn


def _debug(original: Callable[..., None]) -> Callable[..., None]:
    def debug(msg: Any, resource: Any = None, stream_id: Any = None, ephemeral: Any = None) -> None:
        if not (_in_run.get() and isinstance(msg, str) and resource is None):
            original(msg, resource, stream_id, ephemeral)

    return debug


@lru_cache(maxsize=4096)
def _uri_of(file: str, root: str) -> str:
    """The URI of a file of the program in *root*; empty for every other file."""
    path = Path(file)
    return path.as_uri() if is_of_program(path, Path(root)) else ""
