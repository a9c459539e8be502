"""Liveness and readiness for the kubelet's grpc probes, and how the plugin asks itself whether it lives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final
from urllib.parse import quote

import grpc
import grpc.aio

from dra_infra.errors import PluginError
from dra_infra.plugin.command.logs import tell
from dra_infra.plugin.command.metrics_server import held, not_usable
from dra_infra.plugin.command.setting_values import Address
from dra_infra.plugin.protocol import grpc_health_v1_pb2 as messages
from dra_infra.plugin.protocol import registration_pb2
from dra_infra.plugin.service.event_loop import run

SERVICE: Final = "grpc.health.v1.Health"

SECONDS: Final = 3.0
"""For an answer of our own; a probe of the kubelet waits for one second, if its author does not say more, as that of `NodePlugin` does."""

_MOST_CALLS: Final = 16
_THREADS: Final = 2

Check = Callable[[], str]
"""Says what keeps it from working; empty where nothing does."""


class ProbeServer:
    """Answers probes.

    Args:
        address: Where to listen; port 0 is any that is free.
        checks: What is tried, by the name of the service that a probe asks for.

    Raises:
        PluginError: `plugin-address-not-usable`.
    """

    def __init__(self, address: Address, checks: Mapping[str, Check]) -> None:
        self._checks = checks
        self._told: dict[str, str] = {}
        self._server, self.port = run(self._start(address))

    def stop(self) -> None:
        """Answer no more."""
        run(self._server.stop(0.2))

    async def _start(self, address: Address) -> tuple[grpc.aio.Server, int]:
        method = grpc.unary_unary_rpc_method_handler(
            self._check,
            messages.HealthCheckRequest.FromString,
            messages.HealthCheckResponse.SerializeToString,
        )
        server = grpc.aio.server(
            ThreadPoolExecutor(_THREADS, thread_name_prefix="probes"),
            handlers=[grpc.method_handlers_generic_handler(SERVICE, {"Check": method})],
            options=[("grpc.max_receive_message_length", 1024), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=_MOST_CALLS,
        )
        try:
            port = server.add_insecure_port(str(address))
        except RuntimeError as error:
            await server.stop(None)
            raise _not_usable(address) from error
        await server.start()
        return server, port

    def _check(
        self, request: messages.HealthCheckRequest, context: grpc.ServicerContext
    ) -> messages.HealthCheckResponse:
        name = request.service
        if name not in self._checks:
            context.abort(grpc.StatusCode.NOT_FOUND, f"services are {', '.join(filter(None, self._checks))}")
        reason = self._checks[name]()
        if reason != self._told.get(name, ""):
            # Told when it changes: probes come every few seconds.
            self._told[name] = reason
            if reason:
                tell("warning", "a probe fails", probe=name, reason=reason)
            else:
                tell("info", "a probe succeeds again", probe=name)
        status = messages.HealthCheckResponse.NOT_SERVING if reason else messages.HealthCheckResponse.SERVING
        return messages.HealthCheckResponse(status=status)


def ask_itself(registration: Path | None, service: Path) -> str:
    """Call our own registration, and connect to the socket that it names, as the kubelet does.

    Args:
        registration: Its socket; None where it is not there on purpose.
        service: The socket of the services.

    Returns:
        What does not answer; empty where all does.
    """
    try:
        if registration and ask_registration(registration).endpoint != str(service):
            return f"{registration} is another instance's"
        with grpc.insecure_channel(f"unix:{quote(str(service))}") as channel:
            grpc.channel_ready_future(channel).result(SECONDS)
    except (grpc.RpcError, grpc.FutureTimeoutError) as error:
        what = service if isinstance(error, grpc.FutureTimeoutError) else registration
        return f"{what} does not answer"
    return ""


def ask_registration(socket: Path, seconds: float = SECONDS) -> registration_pb2.PluginInfo:
    """What a plugin says of itself.

    Raises:
        grpc.RpcError: Nobody answers.
    """
    with grpc.insecure_channel(f"unix:{quote(str(socket))}") as channel:
        call = channel.unary_unary(
            "/pluginregistration.Registration/GetInfo",
            registration_pb2.InfoRequest.SerializeToString,
            registration_pb2.PluginInfo.FromString,
        )
        info: registration_pb2.PluginInfo = call(registration_pb2.InfoRequest(), timeout=seconds)
        return info


def _not_usable(address: Address) -> PluginError:
    # gRPC does not say why.
    error = OSError("gRPC cannot, and does not say why")
    try:
        with held(address):
            pass
    except OSError as why:
        error = why
    return not_usable("healthAddress", address, error)
