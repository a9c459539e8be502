"""Runs a Pulumi program in process, against a monitor and engine of ours, and gives what it asks for.

The resource monitor and engine that a program talks to in `synth` are two objects in the same process, no socket.
They take the SDK's own protobuf requests and answer as the engine does in a preview in which every provider is away:
inputs are echoed, everything else is unknown.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2, provider_pb2, resource_pb2

from dra_infra.catalog.drivers import read_pins
from dra_infra.components.report import (
    RefusedComponentsError,
    judged_at_end,
    problems_of_run,
    targets_of_run,
)
from dra_infra.errors import InvalidSpecError, Place, Problem, ProgramError, in_reading_order
from dra_infra.output.secret_detector import report_mask
from dra_infra.process import collector_paused
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.charts import RELEASE_TYPE, read_release
from dra_infra.program.project import DRIVER_SETTING, Project, load_project, minor_of, secret_texts_of
from dra_infra.program.surroundings import (
    UNKNOWN_VALUE,
    ProgramTimeoutError,
    bounded,
    close_loop,
    explain,
    fields_to_plain,
    is_of_program,
    new_loop,
    output_on_stderr,
    run_file,
    sdk_quiet,
    sdk_shortcuts,
)
from dra_infra.program_objects import NotSeen, Program, ProgramObject
from dra_infra.target import ClusterTarget

DEFAULT_TIMEOUT = 60.0
"""Seconds that a program may run."""

_KUBERNETES = "kubernetes:"
# Resources of pulumi-kubernetes whose objects are made by the provider, not by the program.
_MADE_BY_PROVIDER = ("kubernetes:helm.sh/", "kubernetes:yaml", "kubernetes:kustomize")


def synth(
    directory: Path | str = ".",
    *,
    stack: str | None = None,
    config: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Program:
    """Run the Pulumi program in *directory* with preview semantics: no CLI, no network, no cluster.

    Args:
        directory: A Pulumi project whose runtime is python.
        stack: Stack whose configuration is read; None takes the only one, else `dev`.
        config: Settings over those of the stack file, by key such as `dra-infra:kubernetes`.
        timeout: Seconds that the program may run.

    Returns:
        The program with every problem that its components reported in `problems`.

    Raises:
        ProgramError: When the program cannot be found, raises, or does not end.
    """
    return synth_project(load_project(Path(directory), stack, config), timeout=timeout)


def synth_project(project: Project, *, timeout: float = DEFAULT_TIMEOUT) -> Program:
    """Run the program of a project that was read before, as `synth` does.

    Raises:
        ProgramError: When the program raises, or does not end.
    """
    return _run(project, lambda: run_file(project.program), timeout)


def synth_function(
    program: Callable[[], Any], *, config: Mapping[str, str] | None = None, timeout: float = DEFAULT_TIMEOUT
) -> Program:
    """Run a function that declares resources, as `synth` runs a project."""
    root = Path.cwd()
    values = {key if ":" in key else f"test:{key}": value for key, value in (config or {}).items()}
    project = Project(name="test", root=root, program=root, stack="test", config=values)
    return _run(project, program, timeout)


def _run(project: Project, body: Callable[[], Any], timeout: float) -> Program:
    # Of its own context, so that a run leaves the SDK's settings in the caller's context as they were.
    return contextvars.copy_context().run(_run_in_context, project, body, timeout)


def _run_in_context(project: Project, body: Callable[[], Any], timeout: float) -> Program:
    from pulumi import runtime
    from pulumi.runtime import settings, stack

    judged_at_end.set(True)
    monitor = Monitor(
        project=project.name, stack=project.stack, root=project.root, names=MadeUpNames(project.config)
    )
    settings.set_root_resource(None)  # type: ignore[arg-type]  # a run before this one in the process left its own
    runtime.configure(
        runtime.Settings(
            project=project.name,
            stack=project.stack,
            monitor=monitor,
            engine=Engine(),
            dry_run=True,
            organization="organization",
            root_directory=str(project.root),
        )
    )
    runtime.set_all_config(dict(project.config), list(project.secret_keys))
    loop = new_loop()
    loop.set_exception_handler(lambda _loop, _context: None)
    problems: list[Problem] = []
    targets: dict[str, ClusterTarget] = {}
    raised: list[Exception] = []

    def observed() -> Any:
        nonlocal problems, targets
        problems, targets = problems_of_run(), targets_of_run()
        try:
            return body()
        except Exception as error:
            # The SDK shows the failure of a component instead, and the user would meet one after the other.
            raised.append(error)
            raise

    try:
        asyncio.set_event_loop(loop)
        with bounded(timeout), collector_paused(), output_on_stderr(), sdk_quiet(), sdk_shortcuts():
            loop.run_until_complete(stack.run_in_stack(observed))
    except (Exception, SystemExit, ProgramTimeoutError) as error:
        cause = raised[0] if raised else _with_trace(error, settings.SETTINGS.rpc_manager)
        # Components that were refused end the run, and their problems say why. What the program itself raised is told besides.
        if not problems or not isinstance(cause, RefusedComponentsError):
            mask = report_mask(secret_texts_of(project))
            found = explain(cause, project.root, limit=timeout, mask=mask).problems
            raise ProgramError([*problems, *found]) from error
    finally:
        close_loop(loop)
    return _collect(project, monitor, tuple(problems), targets)


def _with_trace(error: BaseException, calls: Any) -> BaseException:
    """*error* with its trace: asyncio drops it when a second task waits for the task that failed; calls keep it."""
    if error is getattr(calls, "unhandled_exception", None):
        error.__traceback__ = calls.exception_traceback
    return error


def _collect(
    project: Project, monitor: Any, problems: tuple[Problem, ...], targets: Mapping[str, ClusterTarget]
) -> Program:
    objects, releases = [], []
    of_kubernetes = [
        each for each in monitor.registrations.values() if each.custom and each.type.startswith(_KUBERNETES)
    ]
    manifests = monitor.names.shown_in(
        {each.urn: _complete(each.type, each.inputs) for each in of_kubernetes if is_object(each.type)}
    )
    for registration in of_kubernetes:
        if registration.urn not in manifests:
            monitor.note_made_by_provider(registration)
            if found := read_release(registration, targets.get(registration.component)):
                releases.append(
                    replace(
                        found,
                        namespace=monitor.names.shown(found.namespace),
                        values=monitor.names.shown(found.values),
                    )
                )
            continue
        delete_first = registration.delete_before_replace and "spec" in registration.replace_on_changes
        objects.append(
            ProgramObject(
                urn=registration.urn,
                manifest=manifests[registration.urn],
                component=registration.component,
                replacement="delete-first" if delete_first else "provider",
                place=registration.place,
                target=targets.get(registration.component),
            )
        )
    duplicates = [
        Problem(
            path=each.component or each.name,
            code="duplicate-urn",
            message=f"two resources have the URN {each.urn}",
            hint="give one of them another name",
            place=each.place,
        )
        for each in monitor.duplicates
    ]
    return Program(
        project=project.name,
        stack=project.stack,
        objects=tuple(
            sorted(objects, key=lambda each: (each.ref.namespace, each.ref.kind, each.ref.name, each.urn))
        ),
        not_seen=tuple(sorted({*monitor.not_seen, *project.not_seen})),
        problems=in_reading_order([*problems, *duplicates]),
        kubernetes=minor_of(project.config),
        driver=_known(project.config.get(DRIVER_SETTING) or "newest"),
        releases=tuple(sorted(releases, key=lambda each: each.urn)),
        resources=tuple(sorted(monitor.registrations)),
    )


def is_object(type_: str) -> bool:
    """True for the type of a resource that is one object of Kubernetes."""
    return type_.startswith(_KUBERNETES) and not type_.startswith(_MADE_BY_PROVIDER)


def _complete(type_: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with apiVersion and kind, which a program may leave to the resource type."""
    _, api_version, kind = type_.split(":", 2)
    return {"apiVersion": api_version.removeprefix("core/"), "kind": kind, **inputs}


def _known(release: str) -> str:
    try:
        read_pins(release)
    except InvalidSpecError:
        return "newest"
    return release


_STACK = "pulumi:pulumi:Stack"
_OWN_PREFIX = "dra-infra:index:"
_FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Registration:
    """One resource that the program registered."""

    urn: str
    type: str
    name: str
    parent: str
    inputs: dict[str, Any]
    custom: bool
    remote: bool
    replace_on_changes: tuple[str, ...] = ()
    delete_before_replace: bool = False
    place: Place | None = None
    component: str = ""


@dataclass(kw_only=True)
class Monitor:
    """Answers a program's registrations, reads and invokes, and remembers them.

    Args:
        project: Name of the project.
        stack: Name of the stack.
        root: Folder whose files count as the user's own when a resource's place is looked for.
        names: Makes up names for objects without one.
    """

    project: str
    stack: str
    root: Path
    names: MadeUpNames
    registrations: dict[str, Registration] = field(default_factory=dict)
    not_seen: set[NotSeen] = field(default_factory=set)
    duplicates: list[Registration] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def GetDeploymentInfo(self, _request: empty_pb2.Empty) -> resource_pb2.DeploymentInfo:  # noqa: N802
        """The features of this monitor; transforms and hooks need a running engine to call back."""
        return resource_pb2.DeploymentInfo(supportedFeatures=list(_FEATURES))

    def SupportsFeature(self, _request: Any) -> resource_pb2.SupportsFeatureResponse:  # noqa: N802
        """The older form of `GetDeploymentInfo`."""
        return resource_pb2.SupportsFeatureResponse(hasSupport=False)

    def RegisterResource(self, request: Any) -> resource_pb2.RegisterResourceResponse:  # noqa: N802
        """Remember a resource; its outputs are its inputs, and the rest is unknown."""
        urn = self._make_urn(request.parent, request.type, request.name)
        has_metadata = "metadata" in request.object.fields
        if request.custom and is_object(request.type):
            self.names.add_to(request.object, urn, request.name)
        registration = Registration(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            inputs=fields_to_plain(request.object, nulls=request.type == RELEASE_TYPE),
            custom=request.custom,
            remote=request.remote,
            replace_on_changes=tuple(request.replaceOnChanges),
            delete_before_replace=request.deleteBeforeReplace,
            place=self._find_place(request),
            component=self._find_component(request.type, request.name, request.parent),
        )
        with self._lock:
            if urn in self.registrations:
                self.duplicates.append(registration)
            self.registrations[urn] = registration
            if request.remote:
                self.not_seen.add(
                    NotSeen(what=request.type, name=request.name, reason="its provider makes the objects")
                )
        response = resource_pb2.RegisterResourceResponse(urn=urn, object=struct_pb2.Struct())
        if request.custom:
            response.object.CopyFrom(request.object)
            if not has_metadata and is_object(request.type):
                # What the server would fill in is known to no program that asks for it here.
                response.object.fields["metadata"].struct_value.fields["uid"].string_value = UNKNOWN_VALUE
        return response

    def RegisterResourceOutputs(self, _request: Any) -> empty_pb2.Empty:  # noqa: N802
        """Outputs of components are the program's own affair."""
        return empty_pb2.Empty()

    def ReadResource(self, request: Any) -> resource_pb2.ReadResourceResponse:  # noqa: N802
        """`.get` and StackReference: nothing is read here, so everything but the inputs is unknown."""
        self._note(request.type, request.name, "it is read from a provider or another stack")
        properties = struct_pb2.Struct()
        if request.type == "pulumi:pulumi:StackReference":
            properties.CopyFrom(request.properties)
            properties.fields["outputs"].string_value = UNKNOWN_VALUE
            properties.fields["secretOutputNames"].string_value = UNKNOWN_VALUE
        return resource_pb2.ReadResourceResponse(
            urn=self._make_urn(request.parent, request.type, request.name), properties=properties
        )

    def Invoke(self, request: Any) -> resource_pb2.ResourceInvokeResponse:  # noqa: N802
        """Functions of providers are not called here: the result is unknown."""
        self._note("function", request.tok, "providers are not called here")
        return resource_pb2.ResourceInvokeResponse(unknown=True)

    def Call(self, request: Any) -> provider_pb2.CallResponse:  # noqa: N802
        """Methods of resources are not called here: the result is unknown."""
        self._note("method", request.tok, "providers are not called here")
        response = provider_pb2.CallResponse()
        getattr(response, "return").fields["result"].string_value = UNKNOWN_VALUE
        return response

    def RegisterPackage(self, request: Any) -> resource_pb2.RegisterPackageResponse:  # noqa: N802
        """Parameterized packages get a reference that is stable in a run."""
        return resource_pb2.RegisterPackageResponse(ref=f"{request.name}@{request.version}")

    def SignalAndWaitForShutdown(self, _request: Any) -> empty_pb2.Empty:  # noqa: N802
        """Nothing is running that had to be waited for."""
        return empty_pb2.Empty()

    def note_made_by_provider(self, registration: Registration) -> None:
        """A Release, Chart or the like: its objects are only known to the provider."""
        self._note(registration.type, registration.name, "its provider makes the objects")

    def _note(self, what: str, name: str, reason: str) -> None:
        with self._lock:
            self.not_seen.add(NotSeen(what=what, name=name, reason=reason))

    def _make_urn(self, parent: str, type_: str, name: str) -> str:
        # sdk/go/common/resource/urn: the types of all parents but the stack's are joined by `$`.
        parent_type = parent.split("::", 3)[2] if parent else ""
        qualified = type_ if parent_type in ("", _STACK) else f"{parent_type}${type_}"
        return f"urn:pulumi:{self.stack}::{self.project}::{qualified}::{name}"

    def _find_component(self, type_: str, name: str, parent: str) -> str:
        if type_.startswith(_OWN_PREFIX):
            return f'{type_.removeprefix(_OWN_PREFIX)}("{name}")'
        holder = self.registrations.get(parent)
        return holder.component if holder else ""

    def _find_place(self, request: Any) -> Place | None:
        """The innermost frame in the user's own files: what the SDK reports may lie in a library's component."""
        for frame in request.stackTrace.frames:
            if file := _file_of(frame.pc.uri, self.root):
                return Place(file=file, line=frame.pc.line)
        return None


@dataclass
class Engine:
    """Takes what the program logs."""

    logged: list[tuple[str, str]] = field(default_factory=list)
    _root: str = ""

    def Log(self, request: Any) -> empty_pb2.Empty:  # noqa: N802
        """Remember everything but debug messages, as (severity, text)."""
        severity = engine_pb2.LogSeverity.Name(request.severity).lower()
        if severity != "debug":
            self.logged.append((severity, request.message.replace(UNKNOWN_VALUE, "[unknown]")))
        return empty_pb2.Empty()

    def GetRootResource(self, _request: Any) -> Any:  # noqa: N802
        """The stack's URN."""
        return engine_pb2.GetRootResourceResponse(urn=self._root)

    def SetRootResource(self, request: Any) -> Any:  # noqa: N802
        """Remember the stack's URN."""
        self._root = request.urn
        return engine_pb2.SetRootResourceResponse()

    def RequirePulumiVersion(self, _request: Any) -> Any:  # noqa: N802
        """No CLI takes part, so there is no version to compare."""
        return engine_pb2.RequirePulumiVersionResponse()


@lru_cache(maxsize=4096)
def _file_of(uri: str, root: Path) -> str:
    """The file of the program in *root*, as seen from there; empty for every other URI."""
    parts = urlsplit(uri)
    file = Path(unquote(parts.path))
    return str(file.relative_to(root)) if parts.scheme == "file" and is_of_program(file, root) else ""
