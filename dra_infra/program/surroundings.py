"""Surroundings of a program's body that runs in process: a time limit, quiet, SDK shortcuts.

What a program raises is shown at the user's line. Protobuf values of the resource monitor become plain data, with markers for
what is not to be had.

The SDK's getters of secret settings give an unknown secret where a setting is encrypted: no number can be read from it.

Three functions of the SDK have a cheaper form here, which gives the same result where the engine is in the same
process. The SDK expects an engine behind a socket, beside which its own work does not count. Without the socket, a
third of a run went into these:

- `_get_stack_trace` formats every frame, asks the disk for every source file and writes every path as a URI; the
  monitor reads one of them;
- `create_urn` makes eight Outputs from three texts, for a URN that only counts where there is no engine;
- `log.debug` makes a message that the engine drops.

A fourth gives unknown fields, and not nothing, to results of provider functions, which are not called here
(`dra_infra.program.unknown_results`).

The first two names are private to the SDK's runtime. One that is not there, or takes other parameters than those
known here, is left as it is: slower, to the same end.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import logging
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from functools import lru_cache, wraps
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi import log
from pulumi.runtime import config, get_root_directory, resource
from pulumi.runtime.proto import source_pb2

from dra_infra.components.report import user_file
from dra_infra.errors import Place, Problem, ProblemsError, ProgramError
from dra_infra.kubernetes.api import UNKNOWN, Placeholder
from dra_infra.markers import SECRET, Secret
from dra_infra.output.secrets import SecretMask
from dra_infra.program.project import Project
from dra_infra.program.stack_settings import UNDECRYPTABLE
from dra_infra.program.unknown_results import filled
from dra_infra.program_objects import UNKNOWN_RESULT

MAX_MESSAGE = 2000
_NOTHING_SECRET = SecretMask()


class ProgramTimeoutError(BaseException):
    """The program did not end in time. Not an Exception, so that a program's own `except Exception` lets it pass."""


def explain(
    error: BaseException, project: Project, *, limit: float, mask: SecretMask = _NOTHING_SECRET
) -> ProgramError:
    """Turn what a program raised into a problem at the user's line.

    Args:
        error: What was raised.
        project: The project of the program.
        limit: Seconds that the program had, for the text of a time-out.
        mask: Takes out what must not show.
    """
    place = find_place(error.__traceback__, project.root)
    if isinstance(error, ProblemsError):
        return ProgramError([mask.problem(problem.at(problem.place or place)) for problem in error.problems])
    path = place.file if place else "program"
    if isinstance(error, ProgramTimeoutError):
        code = "program-timeout"
        message = f"the program did not end within {limit:g} s"
        hint = "it was at this line; --timeout gives it more time"
    elif isinstance(error, SystemExit):
        code = "program-exited"
        message = f"the program ended itself with {_cut(mask.text(repr(error.code)))}"
        hint = "a Pulumi program ends by reaching its last line"
    else:
        code = "program-raised"
        message = _describe(error, mask)
        hint = _hint(error, project)
    if isinstance(error, SyntaxError):
        place = Place(
            file=_relative(error.filename or path, project.root),
            line=error.lineno or 0,
            column=error.offset or 0,
        )
    return ProgramError([Problem(path=path, code=code, message=message, hint=hint, place=place)])


def find_place(trace: TracebackType | None, root: Path) -> Place | None:
    """The innermost frame of *trace* in the user's own files."""
    found = None
    for frame, line in traceback.walk_tb(trace):
        if file := user_file(frame.f_code.co_filename, os.fspath(root)):
            found = Place(file=file, line=line)
    return found


def _describe(error: BaseException, mask: SecretMask) -> str:
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SyntaxError):
        text = f"SyntaxError: {error.msg}"
    return _cut(mask.text(text.replace(UNDECRYPTABLE, "[unknown]")))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."


def _hint(error: BaseException, project: Project) -> str:
    if isinstance(error, pulumi.ConfigTypeError) and error.value == UNDECRYPTABLE:
        return f"its value is not known here: --config {error.key}=VALUE gives it one for this run"
    if isinstance(error, ModuleNotFoundError):
        return project.hint_on_modules
    if "CLI does not support" in str(error):
        # The SDK's words for a monitor without one of the engine's features.
        return "state migrations need a running engine, which synth does without: use `pulumi preview`"
    return ""


def _relative(file: str, root: Path) -> str:
    path = Path(file)
    return str(path.relative_to(root)) if path.is_absolute() and path.is_relative_to(root) else file


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
    """Send the program's prints to standard error, where they do not mix with what synth prints."""
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
        answer = function(*arguments)
        if inspect.iscoroutine(answer):
            # Of a registration with transforms.
            return loop.create_task(answer)
        called = loop.create_future()
        called.set_result(answer)
        return called

    loop.run_in_executor = run  # type: ignore[method-assign, assignment]  # the event loop's class is the platform's
    return loop


def _is_call_of_sdk(function: Callable[..., Any]) -> bool:
    return str(getattr(function, "__module__", "")).startswith("pulumi.runtime.")


def close_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left in *loop*, without a word, and close it."""
    with warnings.catch_warnings():
        # Tasks that are cancelled may hold coroutines that nobody awaits any more.
        warnings.simplefilter("ignore", RuntimeWarning)
        _cancel_tasks(loop)
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()


def _cancel_tasks(loop: asyncio.AbstractEventLoop) -> None:
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    if pending:
        with contextlib.redirect_stderr(io.StringIO()):
            loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))


# Wire facts of the Pulumi SDK (sdk/python/lib/pulumi/runtime/rpc.py): special structs carry a signature key.
SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  (a wire constant)
OUTPUT_SIGNATURE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"
UNKNOWN_VALUE = UNDECRYPTABLE
"""The engine's text for a value that is not known in a preview."""


def to_plain(value: struct_pb2.Value, *, nulls: bool = False) -> Any:
    """Plain JSON data; whole numbers become int, secret and unknown values markers.

    Args:
        value: Of the wire.
        nulls: Keep fields that are null: in the values of a chart they take defaults away.
    """
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _struct_to_plain(value.struct_value, nulls=nulls)
    if kind == "list_value":
        return [to_plain(item, nulls=nulls) for item in value.list_value.values]
    if kind == "string_value":
        return _text_to_plain(value.string_value)
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "bool_value":
        return value.bool_value
    return None


def fields_to_plain(struct: struct_pb2.Struct, *, nulls: bool = False) -> dict[str, Any]:
    """The fields of a resource, without those that are not set; *nulls* keeps those inside that are null."""
    plain = {key: to_plain(value, nulls=nulls) for key, value in struct.fields.items()}
    return {key: value for key, value in plain.items() if value is not None}


def _text_to_plain(text: str) -> str:
    if text in (UNKNOWN_VALUE, UNKNOWN_RESULT):
        return UNKNOWN
    if UNKNOWN_RESULT in text:
        return Placeholder(text.replace(UNKNOWN_RESULT, UNKNOWN))
    if UNKNOWN_VALUE not in text:
        return text
    # A program may have put an undecryptable setting into a longer text; the setting is a secret.
    return Secret(text.replace(UNKNOWN_VALUE, SECRET))


def _is_unknown_key(key: str) -> bool:
    """True for a key whose text is not known, unless it has the name of one object: `[unknown] (h100)` names no other."""
    if UNKNOWN_VALUE in key:
        return True
    return UNKNOWN_RESULT in key and UNKNOWN_RESULT in key.replace(f"{UNKNOWN_RESULT} (", "")


def _struct_to_plain(struct: struct_pb2.Struct, *, nulls: bool) -> Any:
    if SIGNATURE_KEY not in struct.fields:
        if any(map(_is_unknown_key, struct.fields)):
            # A key is a setting that cannot be decrypted, or has one in it: what the mapping is, nobody knows here.
            return SECRET
        plain_items = {
            key.replace(UNKNOWN_RESULT, UNKNOWN): to_plain(value, nulls=nulls)
            for key, value in struct.fields.items()
        }
        return {key: plain for key, plain in plain_items.items() if nulls or plain is not None}
    signature = struct.fields[SIGNATURE_KEY].string_value
    if signature == SECRET_SIGNATURE:
        return SECRET
    if signature == OUTPUT_SIGNATURE:
        if struct.fields["secret"].bool_value:
            return SECRET
        return to_plain(struct.fields["value"], nulls=nulls) if "value" in struct.fields else UNKNOWN
    if signature == _RESOURCE_SIGNATURE:
        return struct.fields["urn"].string_value
    # Assets and archives: their content is not part of a Kubernetes object.
    return UNKNOWN


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
    for kind in ("bool", "float", "int", "object"):
        _replace(pulumi.Config, f"get_secret_{kind}", ("self", "key", "default"), _secret_getter)
        _replace(pulumi.Config, f"require_secret_{kind}", ("self", "key"), _secret_getter)
    # The package has a function of the module's name.
    calls = sys.modules["pulumi.runtime.invoke"]
    parameters = ("tok", "props", "opts", "typ", "package_ref", "check_dependencies")
    _replace(calls, "_invoke", parameters, lambda original: filled(original, _in_run.get))
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
        root = get_root_directory() or "."
        while frame is not None and frame.f_back is not None:
            frame = frame.f_back
            file = frame.f_code.co_filename
            if user_file(file, root):
                position = source_pb2.SourcePosition(uri=_uri_of(file), line=frame.f_lineno)
                return source_pb2.StackTrace(frames=[source_pb2.StackFrame(pc=position)])
        return source_pb2.StackTrace()

    return trace


@lru_cache(maxsize=4096)
def _uri_of(file: str) -> str:
    return Path(file).as_uri()


def _secret_getter(original: Callable[..., Any]) -> Callable[..., Any]:
    def get(self: pulumi.Config, key: str, *default: Any, **named: Any) -> Any:
        if _in_run.get() and config.get_config(self.full_key(key)) == UNDECRYPTABLE:
            return pulumi.Output.secret(_unknown())
        return original(self, key, *default, **named)

    return get


def _unknown() -> pulumi.Output[Any]:
    return pulumi.Output(set(), _done(None), _done(False))  # noqa: FBT003  (a future has no name for it)


def _done(value: Any) -> asyncio.Future[Any]:
    future = asyncio.get_event_loop().create_future()
    future.set_result(value)
    return future


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
