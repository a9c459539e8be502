"""Output: data on standard output, messages and progress on standard error, and files that options name.

Nothing that a stranger wrote steers the terminal, for two reasons. Every function here makes its text safe at the
last step. And both streams are `SafeStream`s for the whole of a run, through which a forgotten `print`, an error of
click, a warning and a traceback go too. Only this module writes past them: what it paints itself.

A terminal gets colours, and lines at its width; `TERM=dumb` and `NO_COLOR` switch colours off. A file or pipe gets neither.
Progress is one line of a terminal that goes away at the end. Without a terminal it is a plain line when work takes long.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from dra_infra.cli.written_files import hint_for, put_in_place
from dra_infra.errors import Problem, ProgramError
from dra_infra.output.escaping import (
    block,
    json_text,
    log_block,
    log_line,
    one_line,
    paragraph,
    without_commands,
)
from dra_infra.output.repeated_problems import merge_repeated
from dra_infra.output.report_data import to_data
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.output.wrapping import wrap_line

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from dra_infra.program_objects import NotSeen

PRINTED: Final = f"{__name__}.printed"
"""Key of what a call of a command knows: whether a report, or data, is on standard output."""

EXIT_NO_ANSWER: Final = 2
"""The exit code of every command that has no answer, with the problems that say why."""

NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Errors of a disk or stream that takes or gives nothing more, or is closed."""

FIRST_LINE: Final = 2.0
"""Seconds of work before the first line of progress without a terminal."""

NEXT_LINE: Final = 20.0
"""Seconds between two of these lines."""

_SWITCH: Final = "DRA_INFRA_PROGRESS"
"""Variable of the environment that switches progress `off`."""

_RED, _GREEN, _YELLOW, _DIM, _RESET = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"
_MARKS: Final = {"✗": _RED, "✓": _GREEN, "!": _YELLOW, "?": _YELLOW}
"""Colours of the marks that lines begin with."""

_OF_FILES: Final = re.compile("(\r\n|^[-+ ]?\ufeff)", re.MULTILINE)
"""Line ends and byte order marks of a file, in a diff too: nothing to spell out."""

_OUR_COLOURS: Final = re.compile(r"(\x1b\[[0-9;]{0,12}m)")
_CLEAR_LINE: Final = "\r\x1b[K"
_CLEAR_SCREEN: Final = "\x1b[H\x1b[2J"


class SafeStream(io.TextIOBase):
    """A stream on which everything hidden is spelled out, and no line is a command of a runner.

    It knows the end of what was written, for a text may come in parts.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._line = ""
        self.refusal: OSError | None = None
        """Why the stream below takes nothing more; None while it does."""

    def write(self, text: str, /) -> int:
        """Write *text*, made safe."""
        whole = self._line + text
        self._pass(log_block(whole)[len(log_block(self._line)) :])
        line = whole[whole.rfind("\n") + 1 :].lstrip(" \t")
        # Whether its line has begun, and the last letters, are all that what follows can hang on.
        self._line = line if line in ("", ":") else f"x{line[-2:]}"
        return len(text)

    def write_ours(self, text: str) -> None:
        """Write *text* as it is: what others wrote in it was made safe before."""
        self._pass(text)
        self._line = ""

    def _pass(self, text: str) -> None:
        with self._watched():
            _write(self._stream, text)

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.refusal = error
            raise

    def flush(self) -> None:
        """Flush the stream below."""
        with self._watched():
            self._stream.flush()

    def close(self) -> None:
        """Leave the stream below open: it is the process's."""

    def isatty(self) -> bool:
        """True where the stream below is a terminal."""
        return self._stream.isatty()

    @property
    def buffer(self) -> io.RawIOBase:
        """A stream of bytes that are made safe likewise, so that there is no way around it."""
        return _Bytes(self)

    def fileno(self) -> int:
        """The file descriptor of the stream below."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Always true: it is for writing."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a property there too, which the stubs do not say
        """Encoding of the stream below."""
        return self._stream.encoding


class _Bytes(io.RawIOBase):
    """Writes bytes as the text that they are."""

    def __init__(self, stream: SafeStream) -> None:
        self._stream = stream

    def write(self, data: Buffer, /) -> int:
        """Write *data*; what is no UTF-8 is spelled out."""
        content = bytes(data)
        self._stream.write(content.decode("utf-8", "surrogateescape"))
        return len(content)

    def writable(self) -> bool:
        """Always true: it is for writing."""
        return True


def guard_streams() -> None:
    """Put a `SafeStream` in the place of standard output and of standard error; a closed standard input is an empty one."""
    if not sys.stdin:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    for name, way in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        # In the place of one that is closed, messages are lost, and data cannot be written, which is told.
        stream = getattr(sys, name) or os.fdopen(os.open(os.devnull, way), "w")
        if not isinstance(stream, SafeStream):
            setattr(sys, name, SafeStream(stream))


def print_problems(problems: Sequence[Problem], *, with_count: bool = True) -> None:
    """Print every problem with its hint on standard error, those of one mistake once, and how many there are."""
    colours = has_colours(sys.stderr)
    problems = _merge(problems)
    for problem in problems:
        message, hint = _describe(problem)
        for line in _wrap(message, sys.stderr):
            _send(sys.stderr, f"{_paint(line, colours)}\n")
        for line in _wrap(hint, sys.stderr) if hint else ():
            _send(sys.stderr, f"{_DIM}{line}{_RESET}\n" if colours else f"{line}\n")
    errors = sum(problem.severity == "error" for problem in problems)
    if errors and with_count:
        say("1 problem" if errors == 1 else f"{errors} problems")


def describe_problems(problems: Iterable[Problem]) -> Iterator[str]:
    """Yield lines with every problem and its hint, those of one mistake once, for a file."""
    for problem in _merge(problems):
        yield from filter(None, _describe(problem))


def _merge(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    mask = report_mask(secret_texts(os.environ))
    return merge_repeated(map(mask.problem, problems))


def _describe(problem: Problem) -> tuple[str, str]:
    """Return a problem and its hint, which may have several lines; the hint is empty where there is none."""
    mark = "✗" if problem.severity == "error" else "!"
    # Where it is and what it is called are names: the message alone may have lines.
    message = f"{mark} {one_line(problem.where)}{paragraph(problem.message)} [{one_line(problem.code)}]"
    hint = f"  hint: {paragraph(problem.hint)}" if problem.hint else ""
    return without_commands(message), without_commands(hint)


def problems_as_data(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Every problem as JSON data, without secrets of the environment."""
    mask = report_mask(secret_texts(os.environ))
    return [to_data(mask.problem(each)) for each in problems]


def print_not_seen(not_seen: Iterable[NotSeen]) -> None:
    """Print what the answer leaves out on standard error."""
    mask = report_mask(secret_texts(os.environ))
    for each in not_seen:
        say(f"not seen: {mask.text(str(each))}")


def say(line: str) -> None:
    """Write one line on standard error."""
    _send(sys.stderr, "".join(f"{each}\n" for each in _wrap(log_line(line), sys.stderr)))


def write_lines(lines: Iterable[str]) -> None:
    """Write lines on standard output, at the width of a terminal; a mark at the beginning has its colour."""
    colours = has_colours(sys.stdout)
    pieces = (piece for line in lines for piece in _wrap(log_line(line), sys.stdout))
    _send(sys.stdout, "".join(f"{_paint(piece, colours)}\n" for piece in pieces))
    sys.stdout.flush()


def write_json(data: Any, *, indent: int | None = 2, sort_keys: bool = True, letters: bool = False) -> None:
    """Write data on standard output as JSON."""
    write_output(json_text(data, indent=indent, sort_keys=sort_keys, letters=letters))


def write_output(text: str) -> None:
    """Write a text of several lines on standard output, ending with a line break."""
    if context := click.get_current_context(silent=True):
        context.meta[PRINTED] = True
    _send(sys.stdout, log_block(text if text.endswith("\n") else f"{text}\n"))
    sys.stdout.flush()


def write_source(text: str) -> None:
    """Write a file, or a diff of files, on standard output, with the line ends and byte order marks that it has."""
    parts = _OF_FILES.split(text if text.endswith("\n") else f"{text}\n")
    parts[::2] = map(log_block, parts[::2])
    _send(sys.stdout, "".join(parts))
    sys.stdout.flush()


def write_commands(commands: Iterable[str], *, ends: Iterable[str]) -> None:
    """Write commands that `workflow_command` made, each in its line, and last lines that are none."""
    lines = [*map(one_line, commands), *map(log_line, ends)]
    _send(sys.stdout, "".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def write_painted(text: str) -> None:
    """Write a report on standard output: its colours are ours, its texts were made safe before they were painted."""
    parts = _OUR_COLOURS.split(text)
    # Even then nothing but colours passes.
    parts[::2] = map(block, parts[::2])
    _send(sys.stdout, without_commands("".join(parts)))
    sys.stdout.flush()


def write_over(text: str) -> None:
    """Put a line in the place of the one before on standard error; an empty text takes it away."""
    _send(sys.stderr, f"{_CLEAR_LINE}{log_line(text)}")
    sys.stderr.flush()


def write_screen(lines: Iterable[str]) -> None:
    """Put lines in the place of all that the terminal shows."""
    _send(sys.stdout, _CLEAR_SCREEN + "".join(f"{log_line(line)}\n" for line in lines))
    sys.stdout.flush()


def _send(stream: TextIO, text: str) -> None:
    if isinstance(stream, SafeStream):
        stream.write_ours(text)
    else:
        _write(stream, text)


def _write(stream: TextIO, text: str) -> None:
    """Write *text* with what the stream's encoding does not hold spelled out."""
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def has_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows colours, and the user wants them."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _wrap(text: str, stream: TextIO) -> Iterator[str]:
    """Yield the lines of a text, at the width of the terminal where the stream is one."""
    columns = shutil.get_terminal_size().columns if stream.isatty() else 0
    for line in text.split("\n"):
        # A piece may begin where a line did not.
        yield from map(without_commands, wrap_line(line, columns))


def _paint(line: str, colours: bool) -> str:  # noqa: FBT001  (one of two arguments)
    mark, space, rest = line.partition(" ")
    return f"{_MARKS[mark]}{mark}{_RESET}{space}{rest}" if colours and mark in _MARKS else line


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done on standard error.

    On a terminal it replaces the line. Elsewhere a plain line appears only when the work takes long, and again from time to time.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        with plain_progress() as tell_in_lines:
            yield tell_in_lines
        return
    if os.environ.get(_SWITCH) == "off":
        yield lambda _text: None
        return

    def tell(text: str) -> None:
        write_over(f"{text}...")

    try:
        yield tell
    finally:
        write_over("")


@contextlib.contextmanager
def plain_progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that names what is being done, for plain lines on standard error when it takes long."""
    if os.environ.get(_SWITCH) == "off":
        yield lambda _text: None
        return
    doing = ["working"]
    is_done = threading.Event()
    started = time.monotonic()

    def report() -> None:
        pause = FIRST_LINE
        while not is_done.wait(pause):
            say(f"{doing[0]}... ({time.monotonic() - started:.0f} s)")
            pause = NEXT_LINE

    def tell(text: str) -> None:
        doing[0] = text

    # One thread, because a stage may take all of the time, and nothing of it calls back.
    reporter = threading.Thread(target=report, daemon=True)
    reporter.start()
    try:
        yield tell
    finally:
        is_done.set()
        reporter.join()


def write_file(option: str, file: Path, content: bytes, guarded: Sequence[Path] = ()) -> None:
    """Write the file that an option names, whole or not at all, and report it.

    Args:
        option: The option, without its dashes.
        file: What it names.
        content: All of the file.
        guarded: Inputs of the command, in which links are not followed.

    Raises:
        ProgramError: `report-not-written`.
    """
    try:
        put_in_place(file, content, guarded=guarded)
    except OSError as error:
        raise ProgramError.of(
            path=f"--{option}",
            code="report-not-written",
            message=f"{file} cannot be written: {error.strerror or error}",
            hint=hint_for(error, "name a file in a folder that exists and may be written to"),
        ) from error
    say(f"wrote {file}")
