"""The real engine's preview of a stack, from its stream of events.

The CLI's `--json` prints events as they happen when `PULUMI_ENABLE_STREAMING_JSON_PREVIEW` is set. They carry what
the digest at the end lacks: what policies say. Nothing has to lie on disk, and a reader that is slow only slows the
engine.

The CLI runs in a session of its own, so that everything it started can be found and ended. The engine puts its
plugins into process groups of their own, which a signal to its group would miss; sessions they keep.

Where there is no preview, what the engine said becomes a problem with a code. The engine says it in words only, and
ends with 1 for nearly everything; 3 means that nobody is logged in, 6 that there is no such stack
(sdk/go/common/util/cmdutil/exitcodes.go of pulumi/pulumi). The words were read off its own runs. Nothing here is of
the making of the author of a change; what is comes as messages of the preview.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Final

import yaml

from dra_infra.errors import Problem, ProblemsError, ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.secrets import secret_texts
from dra_infra.program.pipe_reader import PipeReader
from dra_infra.program.preview_events import Events, Hide
from dra_infra.program.project import Project, secret_texts_of
from dra_infra.program.project_files import read_yaml
from dra_infra.program.synth import DEFAULT_TIMEOUT
from dra_infra.program_objects import EnginePreview

MAX_LINE: Final = 32 * 2**20
"""Bytes of one event. An object has at most 1.5 MB in etcd; an event holds it four times, in JSON."""

_GRACE: Final = 5.0
"""Seconds that a cancelled engine has to end its plugins itself."""

_SEARCHES: Final = 3
"""A process may start another while it is looked for."""


def start(
    arguments: Sequence[str], *, directory: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the CLI, without a shell and without a terminal.

    Raises:
        OSError: It is not there, or cannot be run.
    """
    return subprocess.Popen(
        list(arguments),
        cwd=directory,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """Cancel the engine if it still runs, and end whatever it left behind."""
    if process.poll() is None:
        # As Ctrl-C does: the engine cancels the preview and ends its plugins.
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    for _ in range(_SEARCHES):
        left = list(_find_session(process.pid))
        for number in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not left:
            break
    if process.poll() is None:
        process.kill()
    process.wait()


def read_lines(stream: IO[bytes], take: Callable[[bytes], None], skip: Callable[[], None]) -> None:
    """Give each line of *stream* to *take*; one that is too long is read to its end and told to *skip*."""
    while line := stream.readline(MAX_LINE):
        if line.endswith(b"\n") or len(line) < MAX_LINE:
            take(line)
            continue
        skip()
        while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
            pass


def _find_session(leader: int) -> Iterator[int]:
    """Processes of the session of *leader* that still run."""
    for number in _all_processes():
        if number == os.getpid():
            continue
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(number) == leader and not _is_dead(number):
                yield number


def _all_processes() -> Iterator[int]:
    folder = Path("/proc")
    if folder.is_dir():
        yield from (int(each.name) for each in folder.iterdir() if each.name.isdigit())
        return
    # Other systems than Linux have no such folder; `ps` is part of POSIX.
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, text=True, check=False)
    yield from (int(each) for each in listed.stdout.split() if each.isdigit())


def _is_dead(number: int) -> bool:
    """True for a process that has ended and only waits for its parent to read its exit code."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return False


PATH: Final = "--engine"

_Rule = tuple[str, re.Pattern[str], str]

_CODES: Final = {3: "engine-backend", 6: "engine-stack-missing"}

_RULES: Final[tuple[_Rule, ...]] = (
    (
        "engine-passphrase",
        re.compile(r"passphrase must be set|incorrect passphrase|PULUMI_CONFIG_PASSPHRASE", re.IGNORECASE),
        "set PULUMI_CONFIG_PASSPHRASE, or PULUMI_CONFIG_PASSPHRASE_FILE, to the stack's passphrase",
    ),
    (
        "engine-stack-missing",
        re.compile(r"no stack named|no stack selected|stack '[^']*' not found"),
        "name a stack that exists with --stack; `pulumi stack ls` lists them, `pulumi stack init` makes one",
    ),
    (
        "engine-stack-locked",
        re.compile(r"stack is currently locked|Another update is currently in progress", re.IGNORECASE),
        "wait for the other run to end; `pulumi cancel` drops the lock of one that was killed",
    ),
    (
        "engine-plugin-missing",
        re.compile(
            r"no (resource|language|analyzer) plugin|failed to load (language )?plugin|could not find plugin"
            r"|unable to find (program|plugin)|plugin not found"
        ),
        "install it where the review runs: `pulumi install` in the folder of the project",
    ),
    (
        "engine-backend",
        re.compile(
            r"PULUMI_ACCESS_TOKEN must be set|invalid access token|unable to open state|unable to check if bucket"
            r"|performing HTTP request|not logged in|problem logging in|could not list bucket|\[401\]|\[403\]",
            re.IGNORECASE,
        ),
        "log in first: `pulumi login`, or set PULUMI_BACKEND_URL (and PULUMI_ACCESS_TOKEN for the service)",
    ),
    (
        "engine-cluster-away",
        re.compile(
            r"cluster is unreachable|unable to load schema information from the API server"
            r"|connection refused.*(/api|/openapi)|(/api/|/apis/|/openapi/).*(connection refused|i/o timeout|no such host"
            r"|context deadline exceeded|EOF|connection reset|certificate)",
            re.IGNORECASE | re.DOTALL,
        ),
        "let the review reach the cluster (KUBECONFIG), or run it without --engine",
    ),
)


def find_failure(texts: Iterable[str], *, exit_code: int | None = None) -> Problem | None:
    """The failure that *texts* or the exit code speak of; None when they speak of none that is known.

    Args:
        texts: What the engine said, masked.
        exit_code: Of the CLI, when its events did not begin.
    """
    text = "\n".join(texts)
    code = _CODES.get(exit_code or 0)
    for rule in _RULES:
        if rule[0] == code or (code is None and rule[1].search(text)):
            return _problem(rule, text)
    return None


def _problem(rule: _Rule, text: str) -> Problem:
    code, words, hint = rule
    said = [line.strip() for line in text.splitlines() if line.strip()]
    line = next((each for each in said if words.search(each)), said[-1] if said else "it gave no reason")
    return Problem(path=PATH, code=code, message=shorten(line), hint=hint)


def shorten(text: str, most: int = 400) -> str:
    """One line of *text*, without the engine's own prefix."""
    line = " ".join(text.split()).removeprefix("error: ")
    return line if len(line) <= most else f"{line[:most]}…"


def not_found() -> Problem:
    """The CLI is not there."""
    return Problem(
        path=PATH,
        code="engine-not-found",
        message="there is no `pulumi` on PATH",
        hint="install the Pulumi CLI, or run the review without --engine",
    )


def timed_out(seconds: float) -> Problem:
    """The preview did not end in time."""
    return Problem(
        path=PATH,
        code="engine-timeout",
        message=f"it did not end within {seconds:g} s and was cancelled",
        hint="--timeout gives it more time; a program or a cluster that hangs shows with `pulumi preview --debug`",
    )


def unknown_failure(texts: Iterable[str], exit_code: int) -> Problem:
    """The CLI ended without a preview, for a reason that no rule knows."""
    said = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    reason = shorten(said[-1]) if said else "it gave no reason"
    return Problem(
        path=PATH,
        code="engine-failed",
        message=f"pulumi ended with {exit_code}: {reason}",
        hint="run `pulumi preview` in the folder of the project; it says more",
    )


STREAMING: Final = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"
_SETTINGS: Final = {STREAMING: "true", "PULUMI_SKIP_UPDATE_CHECK": "true", "NO_COLOR": "1"}
_QUIET: Final = ("--json", "--non-interactive", "--color", "never")
_SHOWN_ERRORS: Final = 64 * 1024


class RunningPreview:
    """A preview that runs; `result` waits for it, `stop` ends it with everything that it started.

    Args:
        project: The head's working tree. Nothing is written to it.
        stack: As the user named it; None takes the project's.
        config: Settings that override those of the stack file.
        timeout: Seconds for the whole preview.
        hide: Takes secrets out of texts; those of the stack are never shown by the engine itself.
        policy_packs: Folders of policy packs to run.
        refresh: Whether the engine first reads what the cluster has.
    """

    def __init__(
        self,
        project: Project,
        *,
        hide: Hide,
        stack: str | None = None,
        config: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        policy_packs: tuple[Path, ...] = (),
        refresh: bool = False,
    ) -> None:
        self._events = Events(hide=hide)
        self._errors: list[bytes] = []
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._folder = tempfile.TemporaryDirectory(prefix="dra-infra-preview-")
        self._process: subprocess.Popen[bytes] | None = None
        self._readers: tuple[PipeReader, ...] = ()
        # Only an absolute path is the same program in the project's folder.
        found = shutil.which("pulumi")
        if found is None:
            return
        arguments = [str(Path(found).absolute()), "preview", *_QUIET, "--stack", stack or project.stack]
        arguments += [f"--policy-pack={pack.absolute()}" for pack in policy_packs]
        arguments += ["--refresh"] if refresh else []
        try:
            if config:
                # `--config` would write the settings into the user's stack file.
                arguments += ["--config-file", str(self._write_config(project, config))]
            with contextlib.suppress(OSError):
                self._process = start(
                    arguments, directory=project.root, environment={**os.environ, **_SETTINGS}
                )
                self._readers = self._read(self._process)
        except BaseException:
            self.stop()
            raise

    def result(self) -> EnginePreview:
        """The engine's preview; with `failure` when there is none."""
        try:
            return self._result()
        finally:
            self.stop()

    def stop(self) -> None:
        """End the engine, its plugins and the program, whatever they are doing; nothing when that is done."""
        if self._process is not None:
            end(self._process)
            self._read_to_end()
        self._folder.cleanup()

    def _result(self) -> EnginePreview:
        process, events = self._process, self._events
        if process is None:
            return _failed(not_found())
        try:
            exit_code = process.wait(max(0.1, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return _failed(timed_out(self._timeout))
        if not self._read_to_end():
            # A process that the engine left behind has its pipes.
            end(process)
            self._read_to_end()
        errors = [each.text for each in events.messages if each.severity == "error"]
        if not events.result:
            printed = events.clean(b"".join(self._errors).decode(errors="replace"), _SHOWN_ERRORS)
            texts = [*errors, *events.text, printed]
            return _failed(find_failure(texts, exit_code=exit_code) or unknown_failure(texts, exit_code))
        if exit_code and (failure := find_failure(errors)):
            return _failed(failure)
        is_whole = events.result == "succeeded" and not events.left_out
        if exit_code and not errors and not any(each.level == "mandatory" for each in events.policies):
            return _failed(unknown_failure(events.text, exit_code))
        # A run that only policies fail has gone through all resources.
        only_policies = events.result == "failed" and not errors and not events.left_out
        return EnginePreview(
            resources=events.resources,
            policies=events.policies,
            messages=events.messages,
            summary=events.summary,
            whole=is_whole or only_policies,
            left_out=events.left_out,
        )

    def _read(self, process: subprocess.Popen[bytes]) -> tuple[PipeReader, ...]:
        assert process.stdout is not None  # noqa: S101  (both are pipes)
        assert process.stderr is not None  # noqa: S101

        def keep_last(pipe: IO[bytes]) -> None:
            while chunk := os.read(pipe.fileno(), _SHOWN_ERRORS):
                self._errors = [b"".join([*self._errors, chunk])[-_SHOWN_ERRORS:]]

        def take_events(pipe: IO[bytes]) -> None:
            read_lines(pipe, self._events.read, self._events.skip)

        return PipeReader(process.stdout, take_events), PipeReader(process.stderr, keep_last)

    def _read_to_end(self) -> bool:
        """Wait for the end of both pipes, which comes with that of all processes. Return whether it came."""
        ended = [reader.wait_for_end() for reader in self._readers]
        return all(ended)

    def _write_config(self, project: Project, config: Mapping[str, str]) -> Path:
        file = project.stack_file
        settings = read_yaml(file, is_pulumis=True) if file.is_file() else {}
        values = settings.get("config")
        merged = {**(values if isinstance(values, dict) else {}), **config}
        settings["config"] = {
            str(key) if ":" in str(key) else f"{project.name}:{key}": value for key, value in merged.items()
        }
        copy = Path(self._folder.name) / file.name
        copy.write_text(yaml.safe_dump(settings), encoding="utf-8")
        copy.chmod(0o600)
        return copy


def _failed(failure: Problem) -> EnginePreview:
    return EnginePreview(whole=False, failure=failure)


@contextlib.contextmanager
def previewing(
    project: Project,
    *,
    stack: str | None,
    config: Mapping[str, str],
    timeout: float,
    policy_packs: tuple[Path, ...] = (),
    refresh: bool = False,
) -> Iterator[Callable[[], EnginePreview]]:
    """Start the preview, give a way to wait for it, and end it with the context, whatever happens.

    The arguments are those of `RunningPreview`; what is a secret is hidden.

    Raises:
        ProgramError: `invalid-project`.
    """
    mask = report_mask([*secret_texts(os.environ), *secret_texts(config), *secret_texts_of(project)])
    with _ending_by_signal() as listen:
        try:
            running = RunningPreview(
                project,
                hide=mask.text,
                stack=stack,
                config=config,
                timeout=timeout,
                policy_packs=policy_packs,
                refresh=refresh,
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
