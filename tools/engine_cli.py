"""Run the Pulumi CLI on one stack and read what it did, for tests."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tools.pulumi_home import PulumiHome

DEFAULT_SECONDS: Final = 240.0
QUIET: Final = ("--non-interactive", "--color", "never")

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that the engine did, or would do in a preview.

    Args:
        operation: `create`, `update`, `same`, `replace`, `create-replacement`, `delete-replaced`, `delete`...
        urn: Of the resource.
        changes: What the provider said about each path that differs: `update`, `add-replace`...
        inputs: Of the resource after the step; empty for a delete.
        outputs: Likewise; in a preview, what a dry run answered.
    """

    operation: str
    urn: str
    changes: Mapping[str, str]
    inputs: Json = field(repr=False)
    outputs: Json = field(repr=False)

    @property
    def name(self) -> str:
        """Name of the Pulumi resource."""
        return self.urn.rpartition("::")[2]

    @property
    def type(self) -> str:
        """Type token of the resource."""
        return self.urn.split("::")[2].rpartition("$")[2]


@dataclass(frozen=True, kw_only=True)
class Result:
    """What one command left behind."""

    command: tuple[str, ...]
    exit_code: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)
    steps: tuple[Step, ...]
    errors: tuple[str, ...]

    @property
    def text(self) -> str:
        """Everything that was printed."""
        return self.stdout + self.stderr

    @property
    def digest(self) -> Json:
        """The document that `preview --json` prints."""
        document: Json = json.loads(self.stdout)
        return document

    def operations(self, name: str) -> tuple[str, ...]:
        """Return what was done to the resource *name*, in order; a stack and `same` steps count."""
        return tuple(step.operation for step in self.steps if step.name == name)

    def step(self, name: str, operation: str) -> Step:
        """Return the one step that did *operation* to the resource *name*.

        Raises:
            LookupError: There is none, or more than one.
        """
        found = [step for step in self.steps if (step.name, step.operation) == (name, operation)]
        if len(found) != 1:
            seen = [(step.name, step.operation) for step in self.steps]
            raise LookupError(f"{operation} of {name}: {len(found)} steps among {seen}\n{self.text}")
        return found[0]

    def check(self) -> Result:
        """Return this result if the command succeeded.

        Raises:
            AssertionError: It did not; the text is what was printed.
        """
        if self.exit_code:
            raise AssertionError(f"{' '.join(self.command)}: exit code {self.exit_code}\n{self.text}")
        return self


class Stack:
    """One stack of the project in *directory*."""

    def __init__(
        self,
        directory: Path,
        *,
        home: PulumiHome,
        name: str = "dev",
        environment: Mapping[str, str] | None = None,
        seconds: float = DEFAULT_SECONDS,
    ) -> None:
        """Use the stack *name*, made by `init`.

        Args:
            directory: Has the `Pulumi.yaml`.
            home: Where the engine finds its parts.
            name: Of the stack.
            environment: Added to the home's environment; `KUBECONFIG` for example.
            seconds: Longest time for a command.
        """
        self.directory = directory
        self.environment = {**home.environment, **(environment or {})}
        self.name = name
        self._home = home
        self._seconds = seconds

    def init(self) -> Result:
        """Create the stack."""
        return self.run("stack", "init", self.name).check()

    def preview(self, *flags: str, json: bool = False) -> Result:
        """Say what `up` would do."""
        return self._operate("preview", *flags, *(("--json",) if json else ()))

    def up(self, *flags: str) -> Result:
        """Make it so, without a preview."""
        return self._operate("up", "--yes", "--skip-preview", *flags)

    def refresh(self, *flags: str) -> Result:
        """Read what the cluster has into the state."""
        return self._operate("refresh", "--yes", "--skip-preview", *flags)

    def destroy(self, *flags: str) -> Result:
        """Delete everything in the state."""
        return self._operate("destroy", "--yes", "--skip-preview", *flags)

    def cancel(self) -> Result:
        """Drop the lock of an update that was killed."""
        return self.run("cancel", "--yes", "--stack", self.name)

    def export(self) -> Json:
        """Return the deployment in the state: `resources`, `pending_operations`..."""
        deployment: Json = json.loads(self.run("stack", "export", "--stack", self.name).check().stdout)
        found: Json = deployment["deployment"]
        return found

    def configure(self, key: str, value: str, *flags: str) -> Result:
        """Set a value of the stack's configuration; `--path` and `--secret` are flags."""
        return self.run("config", "set", *flags, key, value, "--stack", self.name).check()

    def run(self, *arguments: str) -> Result:
        """Run any command of the CLI in the project, which selects no stack: name it where the command needs one."""
        return self._finish(arguments, events=None)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command without waiting for it, in a session of its own; output is thrown away."""
        return subprocess.Popen(
            [str(self._home.pulumi), *arguments, *QUIET, "--stack", self.name],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _operate(self, *arguments: str) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            events = Path(folder, "events.json")
            logged = (*arguments, "--stack", self.name, "--event-log", str(events))
            return self._finish(logged, events=events)

    def _finish(self, arguments: tuple[str, ...], *, events: Path | None) -> Result:
        command = (str(self._home.pulumi), *arguments, *QUIET)
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self._seconds,
            check=False,
        )
        logged = _read_events(events) if events is not None and events.exists() else []
        return Result(
            command=("pulumi", *arguments),
            exit_code=done.returncode,
            stdout=done.stdout,
            stderr=done.stderr,
            steps=tuple(_read_steps(logged)),
            errors=tuple(
                event["diagnosticEvent"]["message"].strip()
                for event in logged
                if event.get("diagnosticEvent", {}).get("severity") == "error"
            ),
        )


def write_project(
    directory: Path, program: str, *, home: PulumiHome, name: str = "project", runtime: Json | None = None
) -> None:
    """Write a Python project: `Pulumi.yaml` with the home's provider, and `__main__.py` with *program*."""
    directory.mkdir(parents=True, exist_ok=True)
    project: Json = {"name": name, "runtime": runtime or "python"}
    if home.plugins:
        project["plugins"] = home.plugins
    (directory / "Pulumi.yaml").write_text(yaml.safe_dump(project))
    write_program(directory, program)


def write_program(directory: Path, program: str) -> None:
    """Make *program* what the project in *directory* runs next.

    Python takes bytecode for current when the source's size and the second of its change agree. Two programs of a
    test that differ in a digit can do that, so the bytecode of the one before goes.
    """
    (directory / "__main__.py").write_text(program)
    shutil.rmtree(directory / "__pycache__", ignore_errors=True)


def _read_events(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def _read_steps(events: list[Json]) -> Iterator[Step]:
    """Yield a step for each resource event, with the outputs that came later."""
    outputs = {
        (found["urn"], found["op"]): (found.get("new") or {}).get("outputs") or {}
        for event in events
        if (found := event.get("resOutputsEvent", {}).get("metadata"))
    }
    for event in events:
        found = event.get("resourcePreEvent", {}).get("metadata")
        if not found:
            continue
        new = found.get("new") or {}
        yield Step(
            operation=found["op"],
            urn=found["urn"],
            changes={path: change["diffKind"] for path, change in (found.get("detailedDiff") or {}).items()},
            inputs=new.get("inputs") or {},
            outputs=outputs.get((found["urn"], found["op"]), {}),
        )
