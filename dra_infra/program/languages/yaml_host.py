"""Runs a program in YAML by the host of the language, which evaluates it and speaks gRPC."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import struct_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from dra_infra.program.languages.diagnostics import Ending
from dra_infra.program.languages.endpoint import OPTIONS
from dra_infra.program.languages.hosts import find_host
from dra_infra.program.languages.processes import PluginDiedError, PluginProcess
from dra_infra.program.languages.variables import environment_for
from dra_infra.program.project import Project

_STARTING: Final = 30.0
"""Seconds in which a host names its port."""


def run(project: Project, address: str, deadline: float) -> Ending:
    """Start the host, have it run the program, and end it.

    Args:
        project: The project.
        address: Where monitor, engine and schemas are reached.
        deadline: Until when the program may run, of `time.monotonic`.

    Raises:
        ProgramError: `language-host-missing`.
    """
    host = find_host(project.runtime)
    folder = project.program if project.program.is_dir() else project.program.parent
    request = _request_for(project, folder, address)
    process = PluginProcess([str(host), address], folder=folder, environment=environment_for(project))
    try:
        port = process.port(min(_STARTING, max(0.0, deadline - time.monotonic())))
    except PluginDiedError as error:
        return Ending(printed=str(error), error=f"{host.name} did not start")
    ending = Ending(way=f"{host.name} ran the program")
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
        try:
            stub = language_pb2_grpc.LanguageRuntimeStub(channel)
            answer = stub.Run(request, timeout=max(0.0, deadline - time.monotonic()))
            ending.error, ending.is_reported = answer.error, answer.bail
        except grpc.RpcError as error:
            ending.is_too_long = error.code() == grpc.StatusCode.DEADLINE_EXCEEDED
            ending.error = str(error.details() or error.code().name)
        finally:
            ending.printed = process.stop()
    return ending


def _request_for(project: Project, folder: Path, address: str) -> language_pb2.RunRequest:
    options = struct_pb2.Struct()
    options.update(_plain(project.runtime_options))
    entry = "." if project.program.is_dir() else project.program.name
    return language_pb2.RunRequest(
        project=project.name,
        stack=project.stack,
        organization="organization",
        pwd=str(folder),
        program=entry,
        config=project.config,
        configSecretKeys=project.secret_keys,
        dryRun=True,
        parallel=1,
        monitor_address=address,
        loader_target=address,
        info=language_pb2.ProgramInfo(
            root_directory=str(project.root),
            program_directory=str(folder),
            entry_point=entry,
            options=options,
        ),
    )


def _plain(value: Any) -> Any:
    """Return options as a Struct takes them: keys are texts, and so is what JSON does not have, such as a date."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)
