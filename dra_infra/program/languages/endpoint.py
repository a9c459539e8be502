"""The services that a program in another language calls: monitor, engine and schemas, on one port of the loopback device."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable
from concurrent import futures
from typing import Any, Final, Protocol

import grpc
from pulumi.runtime.proto import engine_pb2_grpc, resource_pb2, resource_pb2_grpc
from pulumi.runtime.proto.codegen import loader_pb2

from dra_infra.errors import ProblemsError

MOST_BYTES: Final = 2**26
"""Bytes of one message."""

OPTIONS: Final = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_send_message_length", MOST_BYTES),
    # The port of a program is nobody else's.
    ("grpc.so_reuseport", 0),
    ("grpc.enable_http_proxy", 0),
)

_THREADS: Final = 64

_FEATURES: Final = frozenset(
    (
        "secrets",
        "resourceReferences",
        "outputValues",
        "aliasSpecs",
        "deletedWith",
        "parameterization",
        "transforms",
        "invokeTransforms",
        "resourceHooks",
        "errorHooks",
        "replacementTrigger",
        "replaceWith",
    )
)
"""Features of the monitor by their older names, which older SDKs ask for one by one."""

_PASSED_ON: Final = (
    "Invoke",
    "Call",
    "ReadResource",
    "RegisterResourceOutputs",
    "RegisterStackTransform",
    "RegisterStackInvokeTransform",
    "RegisterResourceHook",
    "RegisterErrorHook",
    "RegisterPackage",
    "SignalAndWaitForShutdown",
)


class Registrar(Protocol):
    """Registers the resources of a program, and takes the problems of its calls."""

    def refuse(self, error: ProblemsError) -> None:
        """Remember why a call fails."""

    def register(self, request: resource_pb2.RegisterResourceRequest) -> Any:
        """Return the answer to a registration, or a coroutine of it."""


class Endpoint:
    """A server of gRPC for one program.

    Args:
        monitor: Answers the calls of the resource monitor.
        registrar: Answers registrations.
        engine: Answers the calls of the engine.
        schema_of: Returns the schema of a package by its name, as JSON.
    """

    def __init__(
        self, *, monitor: Any, registrar: Registrar, engine: Any, schema_of: Callable[[str], bytes]
    ) -> None:
        # What gRPC itself prints, such as that a program has ended, is no news.
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        self._server = grpc.server(futures.ThreadPoolExecutor(_THREADS), options=OPTIONS)
        resource_pb2_grpc.add_ResourceMonitorServicer_to_server(_Monitor(monitor, registrar), self._server)
        engine_pb2_grpc.add_EngineServicer_to_server(_Engine(engine), self._server)
        self._server.add_generic_rpc_handlers((_handle_schemas(schema_of),))
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def address(self) -> str:
        """Where the program reaches it."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Serve."""
        self._server.start()

    def stop(self) -> None:
        """End all calls, and wait for that."""
        self._server.stop(None).wait()


class _Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    def __init__(self, monitor: Any, registrar: Registrar) -> None:
        self._monitor = monitor
        self._registrar = registrar
        for name in _PASSED_ON:
            setattr(self, name, self._pass_on(getattr(monitor, name)))

    def GetDeploymentInfo(self, request: Any, _context: Any) -> resource_pb2.DeploymentInfo:  # noqa: N802
        """The features of the monitor, with values that are Outputs: our package needs them."""
        info: resource_pb2.DeploymentInfo = self._monitor.GetDeploymentInfo(request)
        info.supportedFeatures.append(resource_pb2.RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES)
        return info

    def SupportsFeature(self, request: Any, _context: Any) -> resource_pb2.SupportsFeatureResponse:  # noqa: N802
        """The older form of `GetDeploymentInfo`."""
        return resource_pb2.SupportsFeatureResponse(hasSupport=request.id in _FEATURES)

    def RegisterResource(self, request: Any, context: Any) -> resource_pb2.RegisterResourceResponse:  # noqa: N802
        """Register a resource."""
        answer: resource_pb2.RegisterResourceResponse = self._pass_on(self._register)(request, context)
        return answer

    def _register(self, request: Any) -> Any:
        answer = self._registrar.register(request)
        return asyncio.run(answer) if inspect.iscoroutine(answer) else answer

    def _pass_on(self, function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
        def answer(request: Any, context: grpc.ServicerContext) -> Any:
            try:
                return function(request)
            except ProblemsError as error:
                self._registrar.refuse(error)
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            except (ValueError, TypeError, LookupError) as error:
                # The program decides what is in a request.
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))

        return answer


class _Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self, engine: Any) -> None:
        for name in ("Log", "GetRootResource", "SetRootResource", "RequirePulumiVersion"):
            setattr(self, name, _ignore_context(getattr(engine, name)))


def _handle_schemas(schema_of: Callable[[str], bytes]) -> grpc.GenericRpcHandler[Any, Any]:
    """Return the service of schemas. The SDK has its messages; its module for the service imports one that does not exist."""

    def get_schema(request: Any, _context: Any) -> loader_pb2.GetSchemaResponse:
        return loader_pb2.GetSchemaResponse(schema=schema_of(request.package))

    handler = grpc.unary_unary_rpc_method_handler(
        get_schema,
        request_deserializer=loader_pb2.GetSchemaRequest.FromString,
        response_serializer=loader_pb2.GetSchemaResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler("codegen.Loader", {"GetSchema": handler})


def _ignore_context(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda request, _context: function(request)
