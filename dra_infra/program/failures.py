"""Errors in the user's program, shown at the user's line."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType

from dra_infra.errors import Place, Problem, ProblemsError, ProgramError
from dra_infra.output.secrets import SecretMask

MAX_MESSAGE = 2000
_NOTHING_SECRET = SecretMask()


class ProgramTimeoutError(BaseException):
    """The program did not end in time. Not an Exception, so that a program's own `except Exception` lets it pass."""


def explain(
    error: BaseException, root: Path, *, limit: float, mask: SecretMask = _NOTHING_SECRET
) -> ProgramError:
    """Turn what a program raised into a problem at the user's line.

    Args:
        error: What was raised.
        root: Folder of the project; frames in files below it are the user's own.
        limit: Seconds that the program had, for the text of a time-out.
        mask: Takes out what must not show.
    """
    place = find_place(error.__traceback__, root)
    if isinstance(error, ProblemsError):
        return ProgramError([mask.problem(problem.at(problem.place or place)) for problem in error.problems])
    path = place.file if place else "program"
    if isinstance(error, ProgramTimeoutError):
        code, message = "program-timeout", f"the program did not end within {limit:g} s"
        hint = "it was at this line; --timeout gives it more time"
    elif isinstance(error, SystemExit):
        code, message = "program-exited", f"the program ended itself with {_cut(mask.text(repr(error.code)))}"
        hint = "a Pulumi program ends by reaching its last line"
    else:
        code, message, hint = "program-raised", _describe(error, mask), _hint(error)
    if isinstance(error, SyntaxError):
        place = Place(
            file=_relative(error.filename or path, root), line=error.lineno or 0, column=error.offset or 0
        )
    return ProgramError([Problem(path=path, code=code, message=message, hint=hint, place=place)])


def find_place(trace: TracebackType | None, root: Path) -> Place | None:
    """The innermost frame of *trace* in the user's own files."""
    found = None
    for frame, line in traceback.walk_tb(trace):
        file = Path(frame.f_code.co_filename)
        if is_of_program(file, root):
            found = Place(file=str(file.relative_to(root)), line=line)
    return found


def is_of_program(file: Path, root: Path) -> bool:
    """True for a file of the user's own in the project at *root*, not one of a library that is installed there."""
    return file.is_absolute() and file.is_relative_to(root) and "site-packages" not in file.parts


def _describe(error: BaseException, mask: SecretMask) -> str:
    text = "".join(traceback.format_exception_only(error)).strip()
    if isinstance(error, SyntaxError):
        text = f"SyntaxError: {error.msg}"
    return _cut(mask.text(text))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]}..."


def _hint(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "install the program's requirements into the environment that runs dra-infra"
    if "CLI does not support" in str(error):
        # The SDK's words for a monitor that cannot call back, as transforms and hooks need.
        return "transforms and hooks need a running engine, which synth does without: use `pulumi preview`"
    return ""


def _relative(file: str, root: Path) -> str:
    path = Path(file)
    return str(path.relative_to(root)) if path.is_absolute() and path.is_relative_to(root) else file
