"""The real engine's preview of a stack, from its stream of events.

The CLI's `--json` prints events as they happen when `PULUMI_ENABLE_STREAMING_JSON_PREVIEW` is set. They carry what the
digest at the end lacks: what policies say. Nothing has to lie on disk, and a reader that is slow only slows the engine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from dra_infra.engine.preview_events import Events, Hide
from dra_infra.engine.preview_failures import find_failure, not_found, timed_out, unknown_failure
from dra_infra.engine.preview_process import end, read_lines, start
from dra_infra.engine.project import Project, read_yaml
from dra_infra.engine.synth import DEFAULT_TIMEOUT
from dra_infra.errors import Problem
from dra_infra.model.engine_preview import EnginePreview

STREAMING: Final = "PULUMI_ENABLE_STREAMING_JSON_PREVIEW"
_SETTINGS: Final = {STREAMING: "true", "PULUMI_SKIP_UPDATE_CHECK": "true", "NO_COLOR": "1"}
_QUIET: Final = ("--json", "--non-interactive", "--color", "never")
_SHOWN_ERRORS: Final = 64 * 1024

_LAST_WORDS: Final = 10.0
"""Seconds to read what is left in the pipes of an engine that ended; a process that it left behind may hold them."""


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
        self._readers: tuple[threading.Thread, ...] = ()
        # Only an absolute path is the same program in the project's folder.
        found = shutil.which("pulumi")
        if found is None:
            return
        arguments = [str(Path(found).absolute()), "preview", *_QUIET, "--stack", stack or project.stack]
        arguments += [f"--policy-pack={pack.absolute()}" for pack in policy_packs]
        arguments += ["--refresh"] if refresh else []
        if config:
            # `--config` would write the settings into the user's stack file.
            arguments += ["--config-file", str(self._write_config(project, config))]
        with contextlib.suppress(OSError):
            self._process = start(arguments, directory=project.root, environment={**os.environ, **_SETTINGS})
            self._readers = tuple(self._read(self._process))

    def result(self) -> EnginePreview:
        """What the engine said; with `failure` when there is no preview."""
        try:
            return self._result()
        finally:
            self.stop()

    def stop(self) -> None:
        """End the engine, its plugins and the program, whatever they are doing; nothing when that is done."""
        if self._process is not None:
            end(self._process)
            for reader in self._readers:
                reader.join(_LAST_WORDS)
        self._folder.cleanup()

    def _result(self) -> EnginePreview:
        process, events = self._process, self._events
        if process is None:
            return _failed(not_found())
        try:
            exit_code = process.wait(max(0.1, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return _failed(timed_out(self._timeout))
        for reader in self._readers:
            reader.join(_LAST_WORDS)
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

    def _read(self, process: subprocess.Popen[bytes]) -> list[threading.Thread]:
        assert process.stdout is not None  # noqa: S101  (both are pipes)
        assert process.stderr is not None  # noqa: S101
        stdout, stderr = process.stdout, process.stderr

        def keep_last() -> None:
            with stderr:
                while chunk := os.read(stderr.fileno(), _SHOWN_ERRORS):
                    self._errors = [b"".join([*self._errors, chunk])[-_SHOWN_ERRORS:]]

        def take_events() -> None:
            with stdout:
                read_lines(stdout, self._events.read, self._events.skip)

        threads = [threading.Thread(target=each, daemon=True) for each in (take_events, keep_last)]
        for thread in threads:
            thread.start()
        return threads

    def _write_config(self, project: Project, config: Mapping[str, str]) -> Path:
        file = project.root / f"Pulumi.{project.stack}.yaml"
        settings = read_yaml(file) if file.is_file() else {}
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
