"""The log: a line for each thing that happened, with what it was about as fields of its own.

error     something does not work, and will not without somebody
warning   an answer to the kubelet was an error, or something was set aside; it is tried again
info      what was prepared, released, published and registered
debug     that a claim's turn came; what libraries say

All of them are lines of one form, also where Python itself or a library has something to say.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, TextIO

from dra_infra.errors import Problem, ProblemsError
from dra_infra.output.secrets import SecretMask, secret_texts

LOG: Final = logging.getLogger("dra_infra.plugin")

_FIELDS: Final = "dra_infra_fields"
_COLOURS: Final = {"ERROR": "\x1b[31m", "WARNING": "\x1b[33m", "DEBUG": "\x1b[2m"}
_RESET: Final = "\x1b[0m"

_MOST: Final = 20
_WINDOW: Final = 60.0
"""Lines of one kind in so many seconds, where strangers can bring them about."""

_context: ContextVar[Mapping[str, Any]] = ContextVar("dra_infra_plugin_log", default={})  # noqa: B039  (never changed)


def set_up(
    *, log_format: str, level: str, environment: Mapping[str, str] = os.environ, stream: TextIO | None = None
) -> None:
    """Set up logging of this process in *log_format*.

    Args:
        log_format: text or json; empty for text on a terminal and json elsewhere.
        level: What is written: this, and what is worse.
        environment: Secrets in it are in no line.
        stream: Standard error, if not another one.
    """
    stream = stream or sys.stderr
    mask = SecretMask(secret_texts(environment))
    chosen = log_format or ("text" if stream.isatty() else "json")
    # The library in C writes lines of its own form, past all of this; what it raises says the same.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    handler = logging.StreamHandler(stream)
    colours = stream.isatty() and not environment.get("NO_COLOR")
    handler.setFormatter(_Json(mask) if chosen == "json" else _Text(mask, colours=colours))
    root = logging.getLogger()
    handler.addFilter(_RateLimit())
    root.handlers[:] = [handler]
    # Of libraries only what is wrong, unless everything is asked for.
    root.setLevel(logging.DEBUG if level == "debug" else logging.WARNING)
    LOG.setLevel(level.upper())
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = sys.unraisablehook = _log_uncaught_elsewhere


def _log_uncaught(
    kind: type[BaseException], error: BaseException | None, trace: TracebackType | None
) -> None:
    """Log an exception that nobody caught as one line; Python itself would print many."""
    if issubclass(kind, SystemExit):
        return
    logging.getLogger("python").error(
        "nobody expected this; please report it",
        exc_info=(kind, error if error is not None else kind(), trace),
        extra={_FIELDS: {"error": f"{kind.__name__}: {error}", "thread": threading.current_thread().name}},
    )


def _log_uncaught_elsewhere(uncaught: threading.ExceptHookArgs | sys.UnraisableHookArgs) -> None:
    """Log an exception that a thread or a destructor raised."""
    _log_uncaught(uncaught.exc_type, uncaught.exc_value, uncaught.exc_traceback)


def log(level: str, message: str, **fields: Any) -> None:
    """Write a line.

    Args:
        level: error, warning, info or debug.
        message: The same text for the same thing: what differs is in the fields.
        fields: What it is about.
    """
    LOG.log(logging.getLevelName(level.upper()), "%s", message, extra={_FIELDS: fields})


def log_problem(level: str, message: str, problem: Problem, **fields: Any) -> None:
    """Write a line of a problem."""
    hint = {"hint": problem.hint} if problem.hint else {}
    log(level, message, code=problem.code, path=problem.path, problem=problem.message, **hint, **fields)


def log_error(level: str, message: str, error: BaseException, **fields: Any) -> None:
    """Write a line for each problem of an error, or one of its kind where it has none."""
    if isinstance(error, ProblemsError):
        for problem in error.problems:
            log_problem(level, message, problem, **fields)
        return
    LOG.log(
        logging.getLevelName(level.upper()),
        "%s",
        message,
        exc_info=error,
        extra={_FIELDS: {**fields, "error": f"{type(error).__name__}: {error}"}},
    )


def set_context(fields: Mapping[str, Any]) -> None:
    """Put *fields* into each line that this thread writes from now on, in the place of the former ones."""
    _context.set(fields)


class _RateLimit(logging.Filter):
    """Lets through some lines a minute of each kind that strangers can cause: those of libraries, and of peers.

    The next line of the kind has the number of lines that were left out. A kind never depends on a stranger's words: those
    could make each line a kind of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._kinds: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        fields = getattr(record, _FIELDS, {})
        is_ours = record.name.startswith(LOG.name)
        # Who wants to read what libraries do wants all of it.
        if record.levelno <= logging.DEBUG or (is_ours and "peer" not in fields):
            return True
        kind = (record.name, record.levelno, record.getMessage() if is_ours else _statement(record))
        now = time.monotonic()
        with self._lock:
            began, number = self._kinds.get(kind, (now, 0))
            left_out = max(0, number - _MOST) if now - began >= _WINDOW else 0
            if now - began >= _WINDOW:
                began = now
                number = 0
            self._kinds[kind] = began, number + 1
        if left_out:
            setattr(record, _FIELDS, {**fields, "left_out": left_out})
        return number < _MOST


def _statement(record: logging.LogRecord) -> str:
    """Return what stands for the statement of a library that logged *record*, so that one statement silences no other."""
    # A text without arguments may be put together from anything. Compiled code, such as gRPC's, has no line of its own.
    return str(record.msg) if record.args else f"{record.pathname}:{record.lineno}"


class _Formatter(logging.Formatter):
    def __init__(self, mask: SecretMask) -> None:
        super().__init__()
        self._mask = mask

    def _parts(self, record: logging.LogRecord) -> dict[str, Any]:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        parts = {
            "time": time.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_context.get(),
            **getattr(record, _FIELDS, {}),
        }
        if not record.name.startswith(LOG.name):
            parts["library"] = record.name
        if record.exc_info:
            parts["trace"] = self.formatException(record.exc_info)
        return {
            name: self._mask.text(part) if isinstance(part, str) else part for name, part in parts.items()
        }


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(self._parts(record), default=str, ensure_ascii=False)


class _Text(_Formatter):
    def __init__(self, mask: SecretMask, *, colours: bool) -> None:
        super().__init__(mask)
        self._colours = colours

    def format(self, record: logging.LogRecord) -> str:
        parts = self._parts(record)
        time, level, message = (_visible(str(parts.pop(name))) for name in ("time", "level", "message"))
        trace = parts.pop("trace", "")
        fields = " ".join(f"{name}={_quoted(str(part))}" for name, part in parts.items())
        start = f"{level.upper():7}"
        if self._colours and record.levelname in _COLOURS:
            start = f"{_COLOURS[record.levelname]}{start}{_RESET}"
        line = f"{time} {start} {message}{' ' if fields else ''}{fields}"
        return f"{line}\n{trace}" if trace else line


def _quoted(text: str) -> str:
    plain = text and " " not in text and '"' not in text and text.isprintable()
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


def _visible(text: str) -> str:
    # Whoever reaches the socket writes names; none of them may begin a line of the log.
    return text if text.isprintable() else json.dumps(text)[1:-1]
