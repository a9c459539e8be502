"""The resource provider service: what the engine asks about resources of the `kubernetes` package."""

from __future__ import annotations

from typing import Any, Final

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from typing_extensions import override

from tools import plugin_server
from tools.kubernetes_provider import values
from tools.kubernetes_provider.answers import (
    FIELD_MANAGER_KEY,
    abort_with_state,
    make_inputs,
    make_outputs,
    reporting,
    type_token,
)
from tools.kubernetes_provider.changes import follow_drift
from tools.kubernetes_provider.checks import NameSource, complete, find_problems
from tools.kubernetes_provider.cluster_session import ClusterSession
from tools.kubernetes_provider.comparison import compare
from tools.kubernetes_provider.engine_log import EngineLog
from tools.kubernetes_provider.failures import abort
from tools.kubernetes_provider.functions import FunctionError, call_function
from tools.kubernetes_provider.helm_command import HelmError
from tools.kubernetes_provider.operations import is_awaited
from tools.kubernetes_provider.options import Options, find_refused, read_options
from tools.kubernetes_provider.readiness import assess
from tools.kubernetes_provider.release_resource import TYPE as RELEASE
from tools.kubernetes_provider.release_resource import ReleaseResource
from tools.kubernetes_provider.resource_types import (
    UnsupportedTypeError,
    field_manager,
    format_id,
    parse_id,
    parse_token,
)
from tools.kubernetes_provider.schema import read_schema
from tools.kubernetes_provider.waiting import NotDoneError

VERSION: Final = "4.34.2"
"""Of the vendor's provider that this one stands in for; resources of the Python SDK ask for it."""


class KubernetesProvider(provider_pb2_grpc.ResourceProviderServicer):
    """Answers for objects of one cluster."""

    def __init__(self) -> None:
        self._configured: ClusterSession | None = None
        self._log = EngineLog()

    @property
    def _releases(self) -> ReleaseResource:
        return ReleaseResource(self._session, self._log)

    @property
    def _session(self) -> ClusterSession:
        """The configured cluster, else the ambient one: an engine may ask before it knows the configuration."""
        if self._configured is None:
            self._configured = ClusterSession(Options())
        return self._configured

    @override
    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        self._log.connect(request.engine_address)
        return provider_pb2.ProviderHandshakeResponse(
            accept_secrets=True, supports_autonaming_configuration=True
        )

    @override
    def GetPluginInfo(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    @override
    def GetSchema(
        self, request: provider_pb2.GetSchemaRequest, context: grpc.ServicerContext
    ) -> provider_pb2.GetSchemaResponse:
        """Return the schema of the kinds that YAML programs of tests use; Python programs need none."""
        return provider_pb2.GetSchemaResponse(schema=read_schema(VERSION))

    @override
    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        failures = [
            provider_pb2.CheckFailure(property=name, reason=reason)
            for name, reason in sorted(find_refused(values.decode(request.news)).items())
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    @override
    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Never replace a provider: that would replace every object on it."""
        same = values.decode(request.old_inputs or request.olds) == values.decode(request.news)
        changes = provider_pb2.DiffResponse.DIFF_NONE if same else provider_pb2.DiffResponse.DIFF_SOME
        return provider_pb2.DiffResponse(changes=changes)

    @override
    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        self._configured = ClusterSession(read_options(values.decode(request.args)))
        return provider_pb2.ConfigureResponse(
            acceptSecrets=True, supportsPreview=True, supports_autonaming_configuration=True
        )

    @override
    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        if type_token(request.urn) == RELEASE:
            return self._releases.check(request)
        inputs, old_inputs = values.decode(request.news), values.decode(request.olds)
        source = NameSource.of(request)
        try:
            kind = parse_token(type_token(request.urn))
        except UnsupportedTypeError as unsupported:
            failure = provider_pb2.CheckFailure(reason=str(unsupported))
            return provider_pb2.CheckResponse(failures=[failure])
        problems = find_problems(kind, inputs, source)
        if problems:
            failures = [
                provider_pb2.CheckFailure(property=found.path, reason=found.reason) for found in problems
            ]
            return provider_pb2.CheckResponse(inputs=request.news, failures=failures)
        checked = complete(
            inputs,
            old_inputs,
            source,
            find_default_namespace=lambda: self._session.find_default_namespace(kind),
        )
        return provider_pb2.CheckResponse(inputs=values.encode(checked))

    @override
    def Diff(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        if type_token(request.urn) == RELEASE:
            return self._releases.diff(request)
        kind = parse_token(type_token(request.urn))
        return compare(
            kind,
            old_inputs=values.decode(request.old_inputs),
            old_object=values.decode(request.olds),
            new_inputs=values.decode(request.news),
            namespaced=self._session.is_namespaced(kind),
            options=self._session.options,
        )

    @override
    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        if type_token(request.urn) == RELEASE:
            return self._releases.create(request, context)
        kind = parse_token(type_token(request.urn))
        inputs = values.decode(request.properties)
        manager = field_manager(request.urn)
        body = values.reveal(inputs)
        with reporting(context, f"resource {request.urn} was not created"):
            if request.preview:
                known = not self._session.unreachable and not values.has_unknown(inputs)
                made = self._session.operations().preview_create(kind, body) if known else None
                properties = make_outputs(made, inputs, manager) if made else inputs
                return provider_pb2.CreateResponse(properties=values.encode(properties))
            try:
                live = self._session.operations().create(kind, body, seconds=request.timeout)
            except NotDoneError as unready:
                message = f"resource {request.urn} was created, but did not become ready: {unready}"
                abort_with_state(context, message, unready, inputs, manager)
            properties = make_outputs(live, inputs, manager)
            return provider_pb2.CreateResponse(id=format_id(live), properties=values.encode(properties))

    @override
    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        if type_token(request.urn) == RELEASE:
            return self._releases.update(request, context)
        kind = parse_token(type_token(request.urn))
        inputs = values.decode(request.news)
        stored = values.reveal(values.decode(request.olds))
        manager = stored.get(FIELD_MANAGER_KEY) or field_manager(request.urn)
        body = values.reveal(inputs)
        namespace, name = parse_id(request.id)
        place: dict[str, Any] = {"namespace": namespace, "name": name, "manager": manager}
        with reporting(context, f"update of resource {request.urn} failed"):
            if request.preview:
                known = not self._session.unreachable and not values.has_unknown(inputs)
                made = self._session.operations().preview_update(kind, body, **place) if known else None
                properties = make_outputs(made, inputs, manager) if made else inputs
                return provider_pb2.UpdateResponse(properties=values.encode(properties))
            try:
                live = self._session.operations().update(kind, body, **place, seconds=request.timeout)
            except NotDoneError as unready:
                message = f"resource {request.urn} was updated, but did not become ready: {unready}"
                abort_with_state(context, message, unready, inputs, manager)
            return provider_pb2.UpdateResponse(properties=values.encode(make_outputs(live, inputs, manager)))

    @override
    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        if type_token(request.urn) == RELEASE:
            return self._releases.read(request, context)
        kind = parse_token(type_token(request.urn))
        inputs = values.decode(request.inputs)
        stored = values.reveal(values.decode(request.properties))
        if self._session.unreachable and self._session.options.delete_unreachable:
            return provider_pb2.ReadResponse()
        namespace, name = parse_id(request.id)
        with reporting(context, f"resource {request.urn} was not read"):
            live = self._session.operations().read(kind, namespace, name)
            if live is None:
                return provider_pb2.ReadResponse()
            manager = stored.get(FIELD_MANAGER_KEY) or field_manager(request.urn)
            found = follow_drift(values.reveal(inputs), stored or None, live) if inputs else make_inputs(live)
            found = values.mark_secrets(found, inputs)
            readiness = assess(live)
            if inputs and is_awaited(found) and not readiness.ready:
                unready = NotDoneError(f"{kind.kind} {name} is not ready", live, readiness.reasons)
                abort_with_state(context, str(unready), unready, found, manager)
            return provider_pb2.ReadResponse(
                id=request.id,
                properties=values.encode(make_outputs(live, found, manager)),
                inputs=values.encode(found),
            )

    @override
    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        if type_token(request.urn) == RELEASE:
            self._releases.delete(request, context)
            return empty_pb2.Empty()
        kind = parse_token(type_token(request.urn))
        inputs = values.decode(request.old_inputs)
        if self._session.unreachable and self._session.options.delete_unreachable:
            return empty_pb2.Empty()
        namespace, name = parse_id(request.id)
        stored = values.reveal(values.decode(request.properties))
        with reporting(context, f"resource {request.urn} was not deleted"):
            try:
                self._session.operations().delete(
                    kind, values.reveal(inputs), namespace=namespace, name=name, seconds=request.timeout
                )
            except NotDoneError as undead:
                manager = stored.get(FIELD_MANAGER_KEY) or field_manager(request.urn)
                abort_with_state(context, str(undead), undead, inputs, manager)
        return empty_pb2.Empty()

    @override
    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        try:
            objects = call_function(request.tok, values.decode(request.args), self._session)
        except (FunctionError, HelmError) as error:
            abort(context, f"{request.tok}: {error}")
        response = provider_pb2.InvokeResponse()
        # The field is called like a keyword of Python.
        getattr(response, "return").CopyFrom(values.encode({"result": objects}))
        return response

    @override
    def Construct(
        self, request: provider_pb2.ConstructRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConstructResponse:
        abort(context, f"{request.type}: components are not part of the stand-in provider")

    @override
    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        if self._configured is not None:
            self._configured.cancel()
        return empty_pb2.Empty()

    def close(self) -> None:
        """End what would outlive this process."""
        if self._configured is not None:
            self._configured.helm.close()


def main() -> None:
    """Serve the engine."""
    provider = KubernetesProvider()
    plugin_server.serve(
        lambda server: provider_pb2_grpc.add_ResourceProviderServicer_to_server(provider, server),
        on_exit=provider.close,
    )
