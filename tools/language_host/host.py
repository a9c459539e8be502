"""The language runtime service: what the engine asks of the host of a Python program."""

from __future__ import annotations

import json
import os
import platform
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2
from typing_extensions import override

from tools import plugin_server
from tools.language_host.children import Children

VERSION = "0.1.0"
RUNNER = Path(__file__).with_name("runner.py")

PROGRAM_FAILED = 32
"""Exit status of a runner that has already reported the error to the engine; the engine adds no second one."""


class InterpreterMissingError(Exception):
    """The virtual environment that the project names has no Python."""


def find_interpreter(info: language_pb2.ProgramInfo) -> str:
    """Return the Python that runs *info*'s program: of its `virtualenv` option, else this host's own.

    Raises:
        InterpreterMissingError: The option names a directory without `bin/python`.
    """
    virtualenv = json_format.MessageToDict(info.options).get("virtualenv")
    if not virtualenv:
        return os.environ.get("PULUMI_PYTHON_CMD") or sys.executable
    interpreter = Path(info.root_directory, virtualenv, "bin", "python")
    if not interpreter.exists():
        raise InterpreterMissingError(
            f"Pulumi.yaml: runtime.options.virtualenv: {virtualenv}: {interpreter} does not exist; "
            "create it with `python3 -m venv` and install the program's requirements, or drop the option"
        )
    return str(interpreter)


class PythonHost(language_pb2_grpc.LanguageRuntimeServicer):
    """Runs programs and plugins written in Python as children of this process."""

    def __init__(self, *, engine: str, children: Children) -> None:
        self._engine = engine
        self._children = children

    @override
    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        return language_pb2.LanguageHandshakeResponse()

    @override
    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    @override
    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetRequiredPackagesResponse:
        """Name no packages: the engine then loads providers by the version that each resource sends."""
        return language_pb2.GetRequiredPackagesResponse()

    @override
    def About(
        self, request: language_pb2.AboutRequest, context: grpc.ServicerContext
    ) -> language_pb2.AboutResponse:
        return language_pb2.AboutResponse(executable=sys.executable, version=platform.python_version())

    @override
    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: grpc.ServicerContext
    ) -> language_pb2.GetProgramDependenciesResponse:
        return language_pb2.GetProgramDependenciesResponse()

    @override
    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        """Install nothing: environments are made by the project's own commands, from hashed requirements."""
        return iter(())

    @override
    def RuntimeOptionsPrompts(
        self, request: language_pb2.RuntimeOptionsRequest, context: grpc.ServicerContext
    ) -> language_pb2.RuntimeOptionsResponse:
        return language_pb2.RuntimeOptionsResponse()

    @override
    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        self._children.kill()
        return empty_pb2.Empty()

    @override
    def Run(
        self, request: language_pb2.RunRequest, context: grpc.ServicerContext
    ) -> language_pb2.RunResponse:
        """Run a program to its end against the engine's resource monitor."""
        try:
            interpreter = find_interpreter(request.info)
        except InterpreterMissingError as missing:
            return language_pb2.RunResponse(error=str(missing))
        # -P keeps this package's modules from shadowing the program's own.
        arguments = [interpreter, "-u", "-P", str(RUNNER)]
        arguments += ["--monitor", request.monitor_address, "--engine", self._engine]
        arguments += ["--project", request.project, "--stack", request.stack]
        arguments += ["--organization", request.organization, "--parallel", str(request.parallel)]
        arguments += ["--pwd", request.pwd, "--root-directory", request.info.root_directory]
        arguments += ["--dry-run"] if request.dryRun else []
        arguments += [str(Path(request.info.program_directory, request.info.entry_point)), *request.args]
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        status = self._children.wait(self._children.start(arguments, environment=environment))
        if status == PROGRAM_FAILED:
            return language_pb2.RunResponse(bail=True)
        if status:
            return language_pb2.RunResponse(error=f"program exited with non-zero exit code: {status}")
        return language_pb2.RunResponse()

    @override
    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: grpc.ServicerContext
    ) -> Iterator[language_pb2.RunPluginResponse]:
        """Run a policy pack or a component provider, passing on its output as it comes."""
        try:
            interpreter = find_interpreter(request.info)
        except InterpreterMissingError as missing:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(missing))
        program = request.info.program_directory
        if request.kind == "analyzer":
            arguments = [interpreter, "-u", "-m", "pulumi.policy", *request.args, program]
            directory = Path(program)
        else:
            arguments = [interpreter, "-u", program, *request.args]
            directory = Path(request.pwd)
        environment = {**os.environ, **dict(pair.split("=", 1) for pair in request.env)}
        child = self._children.start(arguments, environment=environment, directory=directory, captured=True)
        context.add_callback(child.kill)
        chunks: queue.SimpleQueue[language_pb2.RunPluginResponse | None] = queue.SimpleQueue()

        def pump(stream: IO[bytes], wrap: Callable[[bytes], language_pb2.RunPluginResponse]) -> None:
            while chunk := os.read(stream.fileno(), 1 << 16):
                chunks.put(wrap(chunk))
            chunks.put(None)

        streams = (
            (child.stdout, lambda chunk: language_pb2.RunPluginResponse(stdout=chunk)),
            (child.stderr, lambda chunk: language_pb2.RunPluginResponse(stderr=chunk)),
        )
        for arguments_of_pump in streams:
            threading.Thread(target=pump, args=arguments_of_pump, daemon=True).start()
        for _ in streams:
            yield from iter(chunks.get, None)
        yield language_pb2.RunPluginResponse(exitcode=self._children.wait(child))


def main() -> None:
    """Serve the engine whose address is the last argument."""
    children = Children()
    host = PythonHost(engine=sys.argv[-1], children=children)
    plugin_server.serve(
        lambda server: language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server),
        on_exit=children.kill,
    )
