"""Makes the components of dra-infra for a program in another language, in the process that the engine starts for it too.

The process is `python -m dra_infra.provider`. It registers the component and its children at the monitor of the program, and
answers with the URN and the outputs.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import grpc
from pulumi.runtime.proto import errors_pb2, provider_pb2, provider_pb2_grpc, status_pb2

from dra_infra.errors import Problem
from dra_infra.program import python_start
from dra_infra.program.languages.endpoint import OPTIONS
from dra_infra.program.languages.processes import PluginDiedError, PluginProcess
from dra_infra.program.project import Project

PREFIX: Final = "dra-infra:index:"
"""How the types of our components begin."""

_START: Final = """\
import runpy, sys
prefixes, path = sys.argv[2:4], sys.argv[4:]
sys.prefix, sys.exec_prefix = prefixes
sys.path[:] = path
del sys.argv[2:]
runpy.run_module("dra_infra.provider", run_name="__main__", alter_sys=True)
"""
"""Run with the address of the engine, the prefixes and the module path, so that it imports what this process imports."""

_STARTING: Final = 60.0
_LONGEST: Final = 500
_REASON: Final = re.compile(
    r"^(?P<message>.*?) \[(?P<code>[a-z0-9-]+)\](?:\n  hint: (?P<hint>.*))?$", re.DOTALL
)
"""As `construction.py` of the provider writes a problem for the engine."""

_COPIED: Final = ("protect", "retainOnDelete", "replacement_trigger")
"""Options that count only where they are set."""


class RefusedComponentError(Exception):
    """A component was not made.

    Args:
        problems: Why.
    """

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems[0].message)
        self.problems = problems


def schema() -> bytes:
    """Return the schema of the package, as JSON."""
    return resources.files("dra_infra").joinpath("provider", "schema.json").read_bytes()


class ComponentPackage:
    """The process of the components, which is started for the first of them.

    Args:
        project: The project of the program.
        address: Where the process reaches engine and monitor.
        deadline: Until when it may work, of `time.monotonic`.
    """

    def __init__(self, *, project: Project, address: str, deadline: float) -> None:
        self._project = project
        self._address = address
        self._deadline = deadline
        self._lock = threading.Lock()
        self._process: PluginProcess | None = None
        self._channel: grpc.Channel | None = None

    def construct(self, request: Any) -> provider_pb2.ConstructResponse:
        """Make the component that a registration asks for.

        Raises:
            RefusedComponentError: It has problems.
        """
        label = f'{request.type.removeprefix(PREFIX)}("{request.name}")'
        # One after the other: the SDK has one set of settings in a process.
        with self._lock:
            try:
                stub = provider_pb2_grpc.ResourceProviderStub(self._open())
                seconds = max(0.0, self._deadline - time.monotonic())
                answer: provider_pb2.ConstructResponse = stub.Construct(
                    self._request_for(request), timeout=seconds
                )
            except grpc.RpcError as error:
                raise RefusedComponentError(list(_read_problems(error, label))) from error
            except PluginDiedError as error:
                raise RefusedComponentError([_died(label, str(error))]) from error
        return answer

    def stop(self) -> None:
        """End the process."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.stop()

    def _open(self) -> grpc.Channel:
        if self._channel is None:
            self._process = PluginProcess(
                [
                    *(sys.executable, *python_start.FLAGS, "-c", _START, self._address),
                    *(sys.prefix, sys.exec_prefix, *(each for each in sys.path if each)),
                ],
                folder=Path.cwd(),
                environment=_without_python(os.environ),
            )
            port = self._process.port(min(_STARTING, max(0.0, self._deadline - time.monotonic())))
            self._channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
        return self._channel

    def _request_for(self, request: Any) -> provider_pb2.ConstructRequest:
        """Return what the engine asks the provider of a component (pkg/resource/deploy/source_eval.go, RegisterResource)."""
        project = self._project
        options = {name: getattr(request, name) for name in _COPIED if request.HasField(name)}
        if request.deleteBeforeReplaceDefined or request.deleteBeforeReplace:
            options["deleteBeforeReplace"] = request.deleteBeforeReplace
        made = provider_pb2.ConstructRequest(
            project=project.name,
            stack=project.stack,
            organization="organization",
            config=project.config,
            configSecretKeys=project.secret_keys,
            dryRun=True,
            parallel=1,
            monitorEndpoint=self._address,
            type=request.type,
            name=request.name,
            parent=request.parent,
            inputs=request.object,
            providers=request.providers,
            dependencies=request.dependencies,
            additionalSecretOutputs=request.additionalSecretOutputs,
            deletedWith=request.deletedWith,
            ignoreChanges=request.ignoreChanges,
            replaceOnChanges=request.replaceOnChanges,
            replace_with=request.replace_with,
            aliases=request.aliases,
            accepts_output_values=True,
            **options,
        )
        for key, used in request.propertyDependencies.items():
            made.inputDependencies[key].urns.extend(used.urns)
        times = request.customTimeouts
        for name in ("create", "update", "delete"):
            if limit := getattr(times, name):
                setattr(made.customTimeouts, name, limit)
        return made


def _without_python(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without what changes how Python starts: it has its module path from us."""
    return {name: value for name, value in environment.items() if not name.startswith("PYTHON")}


def _read_problems(error: grpc.RpcError, label: str) -> list[Problem]:
    """Return the problems that the provider reports, each at its property."""
    details = errors_pb2.InputPropertiesError()
    metadata: Any = error.trailing_metadata()
    for key, value in metadata or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                detail.Unpack(details)
    problems = []
    for each in details.errors:
        path = f"{label}.{each.property_path}" if each.property_path else label
        match = _REASON.match(each.reason)
        if match:
            message, code, hint = match["message"], match["code"], match["hint"] or ""
            problems.append(Problem(path=path, code=code, message=message, hint=hint))
        else:
            problems.append(Problem(path=path, code="component-not-made", message=each.reason))
    text = str(error.details() or error.code().name)
    return problems or [_died(label, text)]


def _died(label: str, text: str) -> Problem:
    lines = [line for line in text.splitlines() if line.strip()]
    is_trace = len(lines) > 1 and lines[0].startswith("Traceback ")
    message = (lines[-1] if is_trace else lines[0]) if lines else "its process ended"
    return Problem(path=label, code="component-not-made", message=message[:_LONGEST])
