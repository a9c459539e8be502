"""Calls of git on a view of a repository without its settings, within bounds of time and size.

What a repository says of itself can make git start programs: a file system monitor, filters, hooks, helpers of
transports, a remote that is asked for missing objects. New versions bring more, so no list of them would be whole.
Therefore git never reads that configuration. It is given a folder of ours for each call, whose refs, index and
objects are those of the repository, and whose settings are the few of `_SETTINGS`, none of which names a program.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from dra_infra.errors import Problem, ProgramError
from dra_infra.program.pipe_reader import PipeReader

DEADLINE: Final = 120.0
"""Seconds that a call may take."""

LONGEST_OUTPUT: Final = 2**26
"""Bytes that a call may print where they are read whole: the paths of some 500,000 files."""

_LONGEST_REASON: Final = 2000
_LONGEST_COPY: Final = 2**24

_SETTINGS: Final = (
    "core.autocrlf",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
    "extensions.refstorage",
)
"""What is taken over from the user's settings: how files and objects are to be read."""

_OURS: Final = """\
[core]
\trepositoryFormatVersion = 1
\tbare = false
\tfsmonitor = false
\thooksPath = /dev/null
"""

_ATTRIBUTES: Final = "* -export-subst\n"
"""They come before those of the repository: what is unpacked is what was committed, and no signature is checked for it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the parts of a repository lie (gitrepository-layout(5)).

    Args:
        top: Its working tree.
        private: Folder with `HEAD` and the index of this working tree.
        shared: Folder with what all its working trees share: refs and objects.
        settings: Those of `_SETTINGS` that it has.
    """

    top: Path
    private: Path
    shared: Path
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """How a call ended.

    Args:
        code: Its exit code.
        output: What it printed.
        reason: The end of what it printed as errors.
    """

    code: int
    output: str
    reason: str


class Call:
    """A call of git that runs.

    Attributes:
        output: What it prints, as it prints it.
        late: Whether it was ended at the deadline.
    """

    def __init__(self, arguments: tuple[str, ...], environment: Mapping[str, str], folder: Path) -> None:
        try:
            self._process = subprocess.Popen(
                ["git", "--no-pager", *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # A group of its own, so that what it starts ends with it.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise ProgramError.of(
                path="git",
                code="no-git",
                message="git is not on PATH",
                hint="a review compares two revisions and needs git; --base-path compares with a folder",
            ) from None
        assert self._process.stdout is not None  # noqa: S101  (it was asked for)
        self.output: IO[bytes] = self._process.stdout
        self.late = False
        self._errors = bytearray()
        assert self._process.stderr is not None  # noqa: S101  (it was asked for)
        self._reader = PipeReader(self._process.stderr, self._read_errors)
        self._timer = threading.Timer(DEADLINE, self._end_late)
        self._timer.daemon = True
        self._timer.start()

    def wait(self) -> int:
        """The exit code, when it has ended."""
        code = self._process.wait()
        self._timer.cancel()
        # A process that git left behind may keep the pipe.
        self._reader.wait_for_end()
        return code

    def end(self) -> None:
        """End it, and all that it started."""
        self._kill()
        self.wait()
        self.output.close()

    @property
    def reason(self) -> str:
        """Why it failed: the end of what it printed as errors."""
        if self.late:
            return f"it did not end within {DEADLINE:g} s"
        return self._errors.decode(errors="replace").strip()

    def _end_late(self) -> None:
        self.late = self._kill()

    def _kill(self) -> bool:
        if self._process.poll() is not None:
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        return True

    def _read_errors(self, pipe: IO[bytes]) -> None:
        while chunk := os.read(pipe.fileno(), 2**16):
            self._errors += chunk
            del self._errors[:-_LONGEST_REASON]


@contextlib.contextmanager
def calling(layout: Layout, *arguments: str) -> Iterator[Call]:
    """A call on the view of a repository, which is ended at the end of the block.

    Raises:
        ProgramError: `no-git`.
    """
    with _view(layout) as environment:
        call = Call(arguments, environment, layout.top)
        try:
            yield call
        finally:
            call.end()


def ask(layout: Layout, *arguments: str) -> Said:
    """Run git on the view of a repository; paths are taken literally.

    Raises:
        ProgramError: `no-git`, `git-no-answer`.
    """
    with calling(layout, *arguments) as call:
        return _read(call, arguments[0])


def open_repository(top: Path) -> Layout | Said:
    """The repository of *top*, a folder with a `.git`; what git said where it does not take it for one.

    Git decides whether the user owns it: who names it in `safe.directory` says so.

    Raises:
        ProgramError: `no-git`, `git-no-answer`.
    """
    found = _ask_at(top, "rev-parse", "--absolute-git-dir")
    if found.code:
        return found
    private = Path(found.output.removesuffix("\n"))
    # Where `.git` is an empty folder, git looks on, and may take *top* itself for a bare repository.
    if (top / ".git").is_dir() and not private.samefile(top / ".git"):
        return Said(code=1, output="", reason="its .git holds no repository")
    shared = top / _ask_at(top, "rev-parse", "--git-common-dir").output.removesuffix("\n")
    wanted = "|".join(each.replace(".", r"\.") for each in _SETTINGS)
    listed = _ask_at(top, "config", "-z", "--get-regexp", f"^({wanted})$").output
    pairs = (each.partition("\n") for each in listed.split("\0") if each)
    settings = {name: value if equals else "true" for name, equals, value in pairs}
    layout = Layout(top=top, private=private.resolve(), shared=shared.resolve(), settings=settings)
    if layout.private != layout.shared and settings.get("extensions.refstorage", "files") != "files":
        # Its HEAD would be read from where that of the main working tree is.
        return Said(code=1, output="", reason="a linked worktree must have its refs in files")
    return layout


def remotes(layout: Layout) -> list[str]:
    """Names of its remotes.

    Raises:
        ProgramError: `no-git`, `git-no-answer`.
    """
    return _ask_at(layout.top, "remote").output.split()


def remote_addresses(layout: Layout) -> list[str]:
    """Addresses of its remotes.

    Raises:
        ProgramError: `no-git`, `git-no-answer`.
    """
    listed = _ask_at(layout.top, "config", "-z", "--get-regexp", r"^remote\..*\.url$").output
    return [each.partition("\n")[2] for each in listed.split("\0") if each]


def _ask_at(top: Path, *arguments: str) -> Said:
    """Ask git for settings of the repository whose `.git` lies in *top*: of none above it, and no bare one.

    For calls that read settings and start nothing that these name.
    """
    # By these, too, users say which folders they trust.
    settings = {name: value for name, value in os.environ.items() if name.startswith("GIT_CONFIG_")}
    environment = {**_environment(), **settings, "GIT_CEILING_DIRECTORIES": str(top.parent)}
    call = Call(("-c", "safe.bareRepository=explicit", *arguments), environment, top)
    try:
        return _read(call, arguments[0])
    finally:
        call.end()


def _read(call: Call, what: str) -> Said:
    output = call.output.read(LONGEST_OUTPUT + 1)
    if len(output) > LONGEST_OUTPUT:
        raise ProgramError([_no_answer(what, f"it prints more than {LONGEST_OUTPUT >> 20} MiB")])
    code = call.wait()
    if call.late:
        raise ProgramError([_no_answer(what, call.reason)])
    return Said(code=code, output=output.decode(errors="surrogateescape"), reason=call.reason)


def _environment() -> dict[str, str]:
    """This process's environment without what directs git, for a git that speaks English and asks nobody."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **ours,
        "LC_ALL": "C",
        # No address is one that objects may be fetched from.
        "GIT_ALLOW_PROTOCOL": "",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }


@contextlib.contextmanager
def _view(layout: Layout) -> Iterator[dict[str, str]]:
    """The environment in which git sees a repository without its settings."""
    with tempfile.TemporaryDirectory(prefix="dra-infra-git-") as name:
        view = Path(name)
        settings = "".join(_setting(*each) for each in layout.settings.items())
        (view / "config").write_text(_OURS + settings, errors="surrogateescape")
        for folder in ("info", "logs"):
            (view / folder).mkdir()
        (view / "info" / "attributes").write_text(_ATTRIBUTES)
        linked = {each: layout.shared / each for each in ("info/exclude", "logs/refs", "packed-refs", "refs")}
        linked |= {each: layout.shared / each for each in ("reftable", "shallow")}
        linked |= {
            each.name: each for each in (layout.private / "index", *layout.private.glob("sharedindex.*"))
        }
        for place, target in linked.items():
            if target.exists():
                (view / place).symlink_to(target)
        # Not linked: git takes a link in the place of a ref for one to another ref, and no link for a log.
        for own in (
            layout.private / "HEAD",
            *layout.private.glob("*_HEAD"),
            layout.private / "logs" / "HEAD",
        ):
            if own.is_file() and own.stat().st_size <= _LONGEST_COPY:
                shutil.copyfile(own, view / own.relative_to(layout.private))
        yield {
            **_environment(),
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(layout.top),
            "GIT_OBJECT_DIRECTORY": str(layout.shared / "objects"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }


def _setting(name: str, value: str) -> str:
    section, _, key = name.partition(".")
    quoted = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'[{section}]\n\t{key} = "{quoted}"\n'


def _no_answer(what: str, reason: str) -> Problem:
    return Problem(
        path="git",
        code="git-no-answer",
        message=f"`git {what}` gives no answer: {reason}",
        hint="compare with the former state in a folder: --base-path",
    )
