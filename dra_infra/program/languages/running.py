"""Runs a program in another language: its host, our monitor and the package of components, until all have ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import struct_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

from dra_infra.errors import ProgramError
from dra_infra.output.secret_detector import report_mask
from dra_infra.output.wording import join_words
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.collection import collect
from dra_infra.program.languages import component_package
from dra_infra.program.languages.component_package import ComponentPackage
from dra_infra.program.languages.diagnostics import Ending, read_problems
from dra_infra.program.languages.endpoint import OPTIONS, Endpoint
from dra_infra.program.languages.hosts import find_host, name_language
from dra_infra.program.languages.processes import PluginDiedError, PluginProcess
from dra_infra.program.languages.registrations import LanguageMonitor
from dra_infra.program.languages.yaml_program import YamlProgram, read_program
from dra_infra.program.monitor import Engine
from dra_infra.program.project import Project, secret_texts_of
from dra_infra.program.stand_ins import read_stand_ins
from dra_infra.program.transforms import Transforms
from dra_infra.program_objects import NotSeen, Program

_STARTING: Final = 30.0
"""Seconds in which a host names its port."""


def run_in_language(project: Project, *, timeout: float) -> Program:
    """Run the program of a project in the host of its language, without an engine.

    Args:
        project: The project.
        timeout: Seconds that it may run.

    Raises:
        ProgramError: `language-not-run`, `language-host-missing`, or why the program gives no objects.
    """
    host = find_host(project.runtime)
    deadline = time.monotonic() + timeout
    written = read_program(project.program, project.root) if project.runtime == "yaml" else YamlProgram()
    monitor = LanguageMonitor(
        project=project.name,
        stack=project.stack,
        root=project.root,
        names=MadeUpNames(project.config),
        transforms=Transforms(),
        config=project.config,
        stand_ins=read_stand_ins(project.root),
        folder=project.program if project.program.is_dir() else project.program.parent,
        places=written.places,
        functions=written.functions,
    )
    engine = Engine()

    def schema_of(package: str) -> bytes:
        return component_package.schema() if package == "dra-infra" else written.schema(package)

    # The package has an endpoint of its own: registrations of the program that wait for it would take all threads of one.
    ours, of_package = (
        Endpoint(monitor=monitor, registrar=monitor, engine=engine, schema_of=schema_of) for _ in range(2)
    )
    package = ComponentPackage(project=project, address=of_package.address, deadline=deadline)
    monitor.package = package
    try:
        ours.start()
        of_package.start()
        ending = _run_host(host, project, ours.address, deadline)
    finally:
        package.stop()
        ours.stop()
        of_package.stop()
    ending.logged.extend(engine.logged)
    if ending.has_failed:
        mask = report_mask(secret_texts_of(project))
        found = [mask.problem(each) for each in read_problems(ending, project, limit=timeout)]
        raise ProgramError(monitor.problems if monitor.has_refused else [*monitor.problems, *found])
    monitor.not_seen.update(_find_not_seen(project, host, written))
    monitor.leave_out_incomplete()
    return collect(project, monitor, (), {})


def _run_host(host: Path, project: Project, address: str, deadline: float) -> Ending:
    """Start the host, have it run the program, and end it. All that both printed is read then."""
    folder = project.program if project.program.is_dir() else project.program.parent
    process = PluginProcess([str(host), address], folder=folder, environment=_environment_for(project))
    try:
        port = process.port(min(_STARTING, max(0.0, deadline - time.monotonic())))
    except PluginDiedError as error:
        return Ending(printed=str(error), error=f"{host.name} named no port")
    request = _request_for(project, folder, address)
    ending = Ending()
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
    """Return options as a Struct takes them: keys are texts."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _environment_for(project: Project) -> dict[str, str]:
    """Return the environment of the host: that of this process, without settings for the CLI, which would reach its services."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PULUMI_")}
    return {
        **own,
        **project.variables,
        # Plugins are neither looked for nor installed.
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }


def _find_not_seen(project: Project, host: Path, written: YamlProgram) -> Iterator[NotSeen]:
    """Yield how the program was run, and what its host could not check."""
    reason = f"{host.name} ran the program without an engine"
    if unknown := sorted(written.packages - {"dra-infra"}):
        reason += f"; it did not check the properties of resources of {join_words(unknown)}: their schema is not known here"
    yield NotSeen(what="language", name=name_language(project.runtime), reason=reason)
