"""The resource monitor and engine that a program talks to in `synth`: two objects in the same process, no socket.

They take the SDK's own protobuf requests and answer as the engine does in a preview in which every provider is away:
inputs are echoed, everything else is unknown. Transforms are called as the engine calls them
(pkg/resource/deploy/source_eval.go): those of the resource, of its parents, of the stack.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from google.protobuf import empty_pb2, struct_pb2
from pulumi.runtime.proto import engine_pb2, provider_pb2, resource_pb2

from dra_infra.components.report import user_file
from dra_infra.errors import Place, Problem
from dra_infra.kubernetes.api import CLAIM_KINDS, UNKNOWN, ObjectRef, is_placeholder, name_kind
from dra_infra.program.autonaming import MadeUpNames
from dra_infra.program.charts import RELEASE_TYPE
from dra_infra.program.functions import (
    NotExpandedError,
    ProviderSettings,
    call_function,
    describe_why,
    expand_component,
    find_scopes,
    is_kept,
    is_namespaced,
    name_of_child,
)
from dra_infra.program.project import kubernetes_of
from dra_infra.program.stand_ins import StandIns, secret_names
from dra_infra.program.surroundings import SIGNATURE_KEY, UNKNOWN_VALUE, fields_to_plain
from dra_infra.program.transforms import Transforms
from dra_infra.program_objects import DEFAULT_PROVIDER, NOT_EXPANDED, UNKNOWN_RESULT, ComponentRef, NotSeen
from dra_infra.resource_options import (
    NO_OPTIONS,
    Alias,
    ResourceOptions,
    make_urn,
    without_version,
)
from dra_infra.target import ClusterTarget

_KUBERNETES: Final = "kubernetes:"
# Resources of pulumi-kubernetes whose objects are made by the provider, not by the program.
_MADE_BY_PROVIDER: Final = ("kubernetes:helm.sh/", "kubernetes:yaml", "kubernetes:kustomize")


def is_of_kubernetes(type_: str) -> bool:
    """True for the type of a resource of pulumi-kubernetes."""
    return type_.startswith(_KUBERNETES)


def is_object(type_: str) -> bool:
    """True for the type of a resource that is one object of Kubernetes."""
    return type_.startswith(_KUBERNETES) and not type_.startswith(_MADE_BY_PROVIDER)


_CHART: Final = "kubernetes:helm.sh/v3:Chart"
_PROVIDER: Final = "pulumi:providers:kubernetes"
_STACK_REFERENCE: Final = "pulumi:pulumi:StackReference"
_NOT_READ: Final = "it is read from a provider or another stack"
_FILLED_IN: Final = (
    "annotations",
    "creationTimestamp",
    "finalizers",
    "generation",
    "labels",
    "ownerReferences",
    "resourceVersion",
    "uid",
)
"""Metadata of an object of which nothing but the name is known."""

_OWN_PREFIX = "dra-infra:index:"
_FEATURES = (
    resource_pb2.RESOURCE_MONITOR_FEATURE_SECRETS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
    resource_pb2.RESOURCE_MONITOR_FEATURE_DELETED_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
    resource_pb2.RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
    resource_pb2.RESOURCE_MONITOR_FEATURE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
    resource_pb2.RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
)

_DISABLED: Final = "pulumi:disable-default-providers"


def _fill_in_uid(outputs: struct_pb2.Struct, uid: str) -> None:
    """Add the UID, which the server makes up, as a text that stands for a value which is not known yet.

    `UNKNOWN_RESULT` is an ordinary text to the SDK, so that `apply` is still called with the metadata that is written.
    """
    metadata = outputs.fields["metadata"]
    if metadata.WhichOneof("kind") in (None, "struct_value"):
        fields = metadata.struct_value.fields
        fields["uid"].string_value = fields["uid"].string_value or uid


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
    options: ResourceOptions = NO_OPTIONS
    place: Place | None = None
    component: ComponentRef | None = None
    provider: str = DEFAULT_PROVIDER


@dataclass(kw_only=True)
class Monitor:
    """Answers a program's registrations, reads and invokes, and remembers them.

    Args:
        project: Name of the project.
        stack: Name of the stack.
        root: Folder whose files count as the user's own when a resource's place is looked for.
        names: Makes up names for objects without one.
        transforms: Those that the program registers.
        config: Settings of the stack.
        stand_ins: What stands in for what is read from elsewhere.
        folder: Where paths that the program names begin.
    """

    project: str
    stack: str
    root: Path
    names: MadeUpNames
    transforms: Transforms
    config: Mapping[str, str]
    stand_ins: StandIns = field(default_factory=StandIns)
    folder: Path = Path()
    registrations: dict[str, Registration] = field(default_factory=dict)
    not_seen: set[NotSeen] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    _namespaces: dict[str, str] = field(default_factory=dict)
    """The namespaces of providers of Kubernetes, by their names."""
    _scopes: dict[tuple[Any, Any], Any] = field(default_factory=dict)
    """The scopes of kinds that the program has defined so far, by group and kind."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def GetDeploymentInfo(self, _request: empty_pb2.Empty) -> resource_pb2.DeploymentInfo:  # noqa: N802
        """The features of this monitor; migrations of states are for an engine that has one."""
        return resource_pb2.DeploymentInfo(supportedFeatures=list(_FEATURES))

    def SupportsFeature(self, _request: Any) -> resource_pb2.SupportsFeatureResponse:  # noqa: N802
        """The older form of `GetDeploymentInfo`."""
        return resource_pb2.SupportsFeatureResponse(hasSupport=False)

    def RegisterStackTransform(self, callback: Any) -> empty_pb2.Empty:  # noqa: N802
        """Call this transform for every resource that follows."""
        self.transforms.add_to_stack(callback)
        return empty_pb2.Empty()

    def RegisterStackInvokeTransform(self, _callback: Any) -> empty_pb2.Empty:  # noqa: N802
        """No function of a provider is called here, so there is nothing to transform."""
        return empty_pb2.Empty()

    def RegisterResourceHook(self, request: Any) -> empty_pb2.Empty:  # noqa: N802
        """A hook changes no object, and runs where something is deployed; some run in previews too."""
        by = "`pulumi preview` and `up` run it" if request.on_dry_run else "`pulumi up` runs it"
        self._note("hook", request.name, f"{by}, and it is not run here")
        return empty_pb2.Empty()

    def RegisterErrorHook(self, request: Any) -> empty_pb2.Empty:  # noqa: N802
        """A hook that is called when a deployment fails."""
        self._note("hook", request.name, "`pulumi up` runs it, and it is not run here")
        return empty_pb2.Empty()

    def RegisterResource(  # noqa: N802
        self, request: Any
    ) -> resource_pb2.RegisterResourceResponse | Coroutine[Any, Any, resource_pb2.RegisterResourceResponse]:
        """Remember a resource; its outputs are its inputs, and the rest is unknown.

        With transforms, the answer is to be awaited: they may wait for Outputs.
        """
        urn = self._make_urn(request.parent, request.type, request.name)
        parents = self._parents_of(request.parent)
        if chosen := self.transforms.of_resource(urn, parents, request.transforms):
            return self._register_transformed(urn, request, chosen)
        return self._register(urn, request)

    async def _register_transformed(self, urn: str, request: Any, chosen: Sequence[str]) -> Any:
        await self.transforms.apply(chosen, request)
        return self._register(urn, request)

    def _parents_of(self, parent: str) -> Iterator[str]:
        while parent:
            yield parent
            registered = self.registrations.get(parent)
            parent = registered.parent if registered else ""

    def _register(self, urn: str, request: Any) -> resource_pb2.RegisterResourceResponse:
        has_metadata = "metadata" in request.object.fields
        if request.custom:
            self._add_namespace(request)
        if request.custom and is_object(request.type):
            kind = request.type.rpartition(":")[2]
            self.names.add_to(
                request.object,
                urn,
                request.name,
                kind,
                is_named_by_content=kind in CLAIM_KINDS and self._is_part_without_name(request.parent),
            )
        registration = Registration(
            urn=urn,
            type=request.type,
            name=request.name,
            parent=request.parent,
            inputs=fields_to_plain(request.object, nulls=request.type == RELEASE_TYPE),
            custom=request.custom,
            remote=request.remote,
            options=self._options_of(request),
            place=self._find_place(request),
            component=self._find_component(request.type, request.name, request.parent),
            provider=_name_of(request.provider),
        )
        with self._lock:
            if urn in self.registrations:
                self.problems.append(_duplicate(registration))
            self.registrations[urn] = registration
            if request.type == _PROVIDER:
                self._namespaces.setdefault(request.name, str(registration.inputs.get("namespace") or ""))
            elif request.type.endswith(":CustomResourceDefinition"):
                self._scopes |= find_scopes([registration.inputs.get("spec")])
        if request.remote:
            self._expand(registration)
        if request.custom or request.remote:
            name = str(registration.component or request.name)
            self._check_provider(request.type, request.provider, name, registration.place)
        response = resource_pb2.RegisterResourceResponse(urn=urn, object=struct_pb2.Struct())
        if request.custom:
            response.object.CopyFrom(request.object)
            if is_object(request.type):
                _fill_in_uid(response.object, UNKNOWN_RESULT if has_metadata else UNKNOWN_VALUE)
        return response

    def _expand(self, holder: Registration) -> None:
        """Register what the provider makes of a component, where it follows from files."""
        try:
            settings = self._settings_of(holder.provider)
            manifests = expand_component(holder.type, holder.name, holder.inputs, settings)
        except NotExpandedError as error:
            self._note(holder.type, holder.name, describe_why(error))
            return
        children = [self._child_of(holder, each) for each in manifests or ()]
        parents = [holder.urn, *self._parents_of(holder.parent)]
        if manifests is None:
            self._note(holder.type, holder.name, NOT_EXPANDED)
        elif any(self.transforms.of_resource(each.urn, parents, ()) for each in children):
            self._note(holder.type, holder.name, f"{NOT_EXPANDED}: transforms change them")
            return
        with self._lock:
            for child in children:
                if child.urn in self.registrations:
                    self.problems.append(_duplicate(child))
                self.registrations[child.urn] = child

    def _child_of(self, holder: Registration, manifest: dict[str, Any]) -> Registration:
        api_version = str(manifest.get("apiVersion"))
        group = api_version if "/" in api_version else f"core/{api_version}"
        type_ = f"{_KUBERNETES}{group}:{manifest.get('kind')}"
        name = name_of_child(holder.name, holder.inputs, manifest)
        options = holder.options
        has_aliases = bool(options.aliases or options.parent)
        return Registration(
            urn=self._make_urn(holder.urn, type_, name),
            type=type_,
            name=name,
            parent=holder.urn,
            inputs=manifest,
            custom=True,
            remote=False,
            options=ResourceOptions(
                parent=holder.urn if has_aliases else "",
                protect=options.protect,
                retain_on_delete=options.retain_on_delete or is_kept(holder.type, manifest),
                deleted_with=options.deleted_with,
            ),
            place=holder.place,
            component=holder.component,
            provider=holder.provider,
        )

    def RegisterResourceOutputs(self, _request: Any) -> empty_pb2.Empty:  # noqa: N802
        """Outputs of components are the program's own affair."""
        return empty_pb2.Empty()

    def ReadResource(self, request: Any) -> resource_pb2.ReadResourceResponse:  # noqa: N802
        """`.get` and StackReference: what stands in for it, its ID, and everything else unknown."""
        self._check_provider(request.type, request.provider, request.name, self._find_place(request))
        properties = struct_pb2.Struct()
        if request.type == _STACK_REFERENCE:
            properties.CopyFrom(request.properties)
            self._read_outputs(request, properties)
        elif is_object(request.type):
            self._read_object(request, properties)
        else:
            self._note(request.type, request.name, _NOT_READ)
        return resource_pb2.ReadResourceResponse(
            urn=self._make_urn(request.parent, request.type, request.name),
            id=request.id if is_object(request.type) and request.id != UNKNOWN_VALUE else "",
            properties=properties,
        )

    def _read_outputs(self, request: Any, properties: struct_pb2.Struct) -> None:
        stack = properties.fields["name"].string_value or request.id
        outputs, file = self.stand_ins.outputs.get(stack, (None, ""))
        if outputs is None:
            properties.fields["outputs"].string_value = UNKNOWN_VALUE
            properties.fields["secretOutputNames"].string_value = UNKNOWN_VALUE
            self._note(request.type, request.name, _NOT_READ)
            return
        properties.update({"outputs": outputs, "secretOutputNames": secret_names(outputs)})
        self._note(request.type, request.name, f"{file} stands in for the outputs of {stack}")

    def _read_object(self, request: Any, properties: struct_pb2.Struct) -> None:
        _, api_version, kind = request.type.split(":", 2)
        namespace, _, name = request.id.rpartition("/")
        if not name or UNKNOWN_VALUE in request.id:
            self._note(request.type, request.name, _NOT_READ)
            return
        api_version = api_version.removeprefix("core/")
        ref = ObjectRef(name_kind(kind, api_version.rpartition("/")[0]), name, namespace).stored
        manifest, file = self.stand_ins.objects.get((api_version, ref), (None, ""))
        if manifest is not None:
            properties.update(manifest)
            self._note(request.type, request.name, f"{file} stands in for the object")
            return
        metadata = {**dict.fromkeys(_FILLED_IN, UNKNOWN_VALUE), "name": name}
        metadata |= {"namespace": namespace} if namespace else {}
        properties.update({"apiVersion": api_version, "kind": kind, "metadata": metadata})
        self._note(request.type, request.name, "it is read from a cluster: nothing but its name is known")

    def Invoke(self, request: Any) -> resource_pb2.ResourceInvokeResponse:  # noqa: N802
        """Answer with a stand-in for the function's result, or with what the function makes of files; all else is unknown."""
        self._check_provider(request.tok, request.provider, request.tok, self._find_place(request))
        response = resource_pb2.ResourceInvokeResponse()
        result, file = self.stand_ins.functions.get(request.tok, (None, ""))
        if result is not None:
            self._note("function", request.tok, f"{file} stands in for its result")
        else:
            try:
                settings = self._settings_of(_name_of(request.provider))
                made = call_function(request.tok, fields_to_plain(request.args, nulls=True), settings)
            except NotExpandedError as error:
                self._note("function", request.tok, describe_why(error))
                made = None
            result = None if made is None else {"result": [*made]}
        if result is None:
            # Who asked for it notes it.
            response.unknown = True
        else:
            getattr(response, "return").update(result)
        return response

    def _settings_of(self, provider: str) -> ProviderSettings:
        """Return what the provider of that name knows."""
        return ProviderSettings(
            folder=self.folder,
            namespace=self._namespace_of(provider) or "default",
            target=ClusterTarget(kubernetes=kubernetes_of(self.config)),
        )

    def _namespace_of(self, provider: str) -> str:
        """Return the namespace that the provider of that name gives to objects without one; empty where it has none.

        A default provider reads the stack's settings.
        """
        if provider == DEFAULT_PROVIDER:
            namespace = self.config.get("kubernetes:namespace") or ""
            return UNKNOWN if UNKNOWN_VALUE in namespace else namespace
        return self._namespaces.get(provider, "")

    def _add_namespace(self, request: Any) -> None:
        """Put an object or Helm release without a namespace into that of its provider (Check of pulumi-kubernetes)."""
        namespace = self._namespace_of(_name_of(request.provider))
        if not namespace:
            return
        if request.type == RELEASE_TYPE:
            _fill_in(request.object, namespace)
        elif is_object(request.type):
            _, api_version, kind = request.type.split(":", 2)
            group = api_version.removeprefix("core/").rpartition("/")[0]
            metadata = request.object.fields["metadata"]
            is_known = metadata.WhichOneof("kind") in (None, "null_value", "struct_value")
            # A resource for a patch has the kind of its object with an ending.
            if is_known and is_namespaced(group, kind.removesuffix("Patch"), self._scopes, others=True):
                _fill_in(metadata.struct_value, namespace)

    def _is_part_without_name(self, parent: str) -> bool:
        """Check for an object of a component of ours that was given no `object_name`: claims are named by their content then."""
        component = self.registrations.get(parent)
        return (
            component is not None
            and component.type.startswith(_OWN_PREFIX)
            and "objectName" not in component.inputs
        )

    def note_unknown_result(self, token: str) -> None:
        """Note a function whose result is not known, unless a reason was noted; one of pulumi-kubernetes makes objects."""
        if any((each.what, each.name) == ("function", token) for each in self.not_seen):
            return
        makes_objects = token.startswith(_KUBERNETES)
        self._note("function", token, NOT_EXPANDED if makes_objects else "providers are not called here")

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

    @property
    def empty_charts(self) -> Iterator[Registration]:
        """Charts none of whose objects was registered: the SDK does not render one whose values are not known."""
        parents = {each.parent for each in self.registrations.values()}
        for each in self.registrations.values():
            if each.type == _CHART and each.urn not in parents:
                yield each

    def note_made_by_provider(self, registration: Registration) -> None:
        """A Release, Chart or the like: its objects are only known to the provider."""
        self._note(registration.type, registration.name, NOT_EXPANDED)

    def _check_provider(self, token: str, provider: str, name: str, place: Place | None) -> None:
        """Refuse what needs a default provider that the stack disables, as the engine does (source_eval.go)."""
        package = token.partition(":")[0]
        if provider or package == "pulumi" or not {"*", package} & self._disabled:
            return
        problem = Problem(
            path=name,
            code="default-provider-disabled",
            message=f"default provider for {package!r} disabled, and {token} names no provider of its own",
            hint=f"give it one by opts=ResourceOptions(provider=...), or take {package!r} out of {_DISABLED}",
            place=place,
        )
        with self._lock:
            self.problems.append(problem)

    @cached_property
    def _disabled(self) -> frozenset[str]:
        """The packages whose default providers the stack disables."""
        try:
            packages = json.loads(self.config.get(_DISABLED) or "[]")
        except ValueError:
            return frozenset()
        return frozenset(map(str, packages)) if isinstance(packages, list) else frozenset()

    def _note(self, what: str, name: str, reason: str) -> None:
        with self._lock:
            self.not_seen.add(NotSeen(what=what, name=name, reason=reason))

    def _make_urn(self, parent: str, type_: str, name: str) -> str:
        return make_urn(self.stack, self.project, parent, type_, name)

    def _options_of(self, request: Any) -> ResourceOptions:
        """The options of a resource, with those that it inherits as in the engine."""
        holder = self.registrations.get(request.parent)
        above = holder.options if holder else NO_OPTIONS
        timeouts = request.customTimeouts if request.HasField("customTimeouts") else None
        has_order = request.deleteBeforeReplaceDefined or request.deleteBeforeReplace
        used = {urn for each in request.propertyDependencies.values() for urn in each.urns}
        return ResourceOptions(
            parent=request.parent if above.aliases or above.parent else "",
            aliases=tuple(_aliases_of(request)),
            protect=request.protect if request.HasField("protect") else above.protect,
            retain_on_delete=(
                request.retainOnDelete if request.HasField("retainOnDelete") else above.retain_on_delete
            ),
            ignore_changes=tuple(request.ignoreChanges),
            replace_on_changes=tuple(request.replaceOnChanges),
            delete_before_replace=request.deleteBeforeReplace if has_order else None,
            depends_on=tuple(sorted(set(request.dependencies) - used)),
            deleted_with=request.deletedWith or above.deleted_with,
            custom_timeouts=tuple(_list_timeouts(timeouts)) if timeouts is not None else (),
        )

    def _find_component(self, type_: str, name: str, parent: str) -> ComponentRef | None:
        if type_.startswith(_OWN_PREFIX):
            return ComponentRef(type_.removeprefix(_OWN_PREFIX), name)
        holder = self.registrations.get(parent)
        return holder.component if holder else None

    def _find_place(self, request: Any) -> Place | None:
        """The innermost frame in the user's own files: what the SDK reports may lie in a library's component."""
        for frame in request.stackTrace.frames:
            if file := _file_of(frame.pc.uri, os.fspath(self.root)):
                return Place(file=file, line=frame.pc.line)
        return None


def _fill_in(holder: struct_pb2.Struct, namespace: str) -> None:
    """Set the field `namespace`, unless it is set."""
    values = holder.fields
    written = values["namespace"].WhichOneof("kind") if "namespace" in values else None
    is_empty = written == "string_value" and not values["namespace"].string_value
    if SIGNATURE_KEY not in values and (written in (None, "null_value") or is_empty):
        values["namespace"].string_value = UNKNOWN_VALUE if is_placeholder(namespace) else namespace


def _duplicate(registration: Registration) -> Problem:
    return Problem(
        path=str(registration.component or registration.name),
        code="duplicate-urn",
        message=f"two resources have the URN {registration.urn}",
        hint="give one of them another name",
        place=registration.place,
    )


@dataclass
class Engine:
    """Takes what the program logs."""

    logged: list[tuple[str, str]] = field(default_factory=list)
    _root: str = ""

    def Log(self, request: Any) -> empty_pb2.Empty:  # noqa: N802
        """Remember everything but debug messages, as (severity, text)."""
        severity = engine_pb2.LogSeverity.Name(request.severity).lower()
        if severity != "debug":
            self.logged.append(
                (
                    severity,
                    request.message.replace(UNKNOWN_VALUE, "[unknown]").replace(UNKNOWN_RESULT, "[unknown]"),
                )
            )
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


def _list_timeouts(timeouts: Any) -> Iterator[tuple[str, str]]:
    for name in ("create", "update", "delete"):
        if limit := getattr(timeouts, name):
            yield name, limit


def _aliases_of(request: Any) -> Iterator[Alias]:
    """The aliases of a resource, without those that pulumi-kubernetes gives to other versions of its type."""
    yield from (Alias(urn=urn) for urn in request.aliasURNs)
    for alias in request.aliases:
        spec = alias.spec
        others = (spec.name, spec.stack, spec.project, spec.parentUrn, spec.noParent)
        if alias.urn:
            yield Alias(urn=alias.urn)
        elif any(others) or without_version(spec.type) != without_version(request.type):
            yield Alias(
                name=spec.name,
                type=spec.type,
                parent=spec.parentUrn,
                is_without_parent=spec.noParent,
                project=spec.project,
                stack=spec.stack,
            )


def _name_of(provider: str) -> str:
    """The name of a provider of Kubernetes from its reference, a URN and an ID; those of other packages deploy no objects."""
    urn, _, _ = provider.rpartition("::")
    _, _, kind, name = urn.split("::", 3) if urn.count("::") >= 3 else ("", "", "", "")
    return name if kind.endswith(_PROVIDER) else DEFAULT_PROVIDER


@lru_cache(maxsize=4096)
def _file_of(uri: str, root: str) -> str:
    """The file of the program in *root*, as seen from there; empty for every other URI."""
    parts = urlsplit(uri)
    return user_file(unquote(parts.path), root) if parts.scheme == "file" else ""
