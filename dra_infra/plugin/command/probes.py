"""Liveness and readiness for the kubelet's grpc probes, and how the plugin asks itself whether it lives."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import grpc
import grpc.aio

from dra_infra.plugin.command.logs import log
from dra_infra.plugin.command.open_port import FRESH, LARGEST, MOST, OpenPort, Shared, not_usable
from dra_infra.plugin.command.operation_log import log_malformed
from dra_infra.plugin.command.settings import Address
from dra_infra.plugin.protocol import grpc_health_v1_pb2 as messages
from dra_infra.plugin.protocol import registration_pb2
from dra_infra.plugin.service.methods import Method, service_handler
from dra_infra.plugin.service.serving import not_made, run

SERVICE: Final = "grpc.health.v1.Health"

SECONDS: Final = 3.0
"""Seconds for an answer of our own; a probe of the kubelet waits for one, if its author does not say more, as that of `NodePlugin` does."""

_LONGEST: Final = 15.0
"""Seconds of a connection. The kubelet makes one for each probe, and waits ten seconds for that of `NodePlugin`."""

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""First bytes of each HTTP/2 connection."""

_BEGINS: Final = 0.5
"""Seconds for which a connection that does not end keeps its turn; a probe takes hundredths of it."""

_CALLS: Final = 2
"""Calls of one connection at a time."""

_OPTIONS: Final = [
    ("grpc.max_receive_message_length", 1024),
    ("grpc.max_concurrent_streams", _CALLS),
    ("grpc.max_metadata_size", 4096),
    ("grpc.absolute_max_metadata_size", 8192),
]

Check = Callable[[], str]
"""Says what keeps it from working; empty where nothing does."""


class ProbeServer:
    """Answers probes.

    gRPC serves at a socket of the plugin's own, for it knows no limits for each peer; what comes in at the port goes there.

    Args:
        address: Where to listen; port 0 is any that is free.
        checks: What is tried, by the name of the service that a probe asks for.
        folder: Only our user may open what is in it.
        fresh: Seconds for which what was found holds for the next probe.

    Raises:
        PluginError: `plugin-address-not-usable`, `socket-not-made`.
    """

    def __init__(
        self, address: Address, checks: Mapping[str, Check], *, folder: Path, fresh: float = FRESH
    ) -> None:
        self._checks = {name: Shared(check, fresh) for name, check in checks.items()}
        self._told: dict[str, str] = {}
        # Named as sockets are while they are made: what a killed instance left is taken away with those (service/sockets.py).
        self._inside = folder / f".{secrets.token_hex(3)}"
        try:
            self._open = OpenPort(address, self._pass_on, seconds=_LONGEST)
        except OSError as error:
            raise not_usable("healthAddress", address, error) from error
        self.port = self._open.port
        try:
            self._server = run(self._start())
        except BaseException:
            self._open.stop()
            raise

    def stop(self) -> None:
        """Answer no more."""
        self._open.stop()
        run(self._server.stop(0.2))
        self._inside.unlink(missing_ok=True)

    async def _start(self) -> grpc.aio.Server:
        check = Method.unary(messages.HealthCheckRequest, self._check)
        server = grpc.aio.server(
            handlers=[service_handler(SERVICE, {"Check": check}, log_malformed)],
            options=_OPTIONS,
            # More than there can be: calls that only begin must not keep a probe from its answer.
            maximum_concurrent_rpcs=_CALLS * MOST * 2,
        )
        try:
            server.add_insecure_port(f"unix:{quote(str(self._inside))}")
            self._inside.chmod(0o600)
        except (OSError, RuntimeError) as error:
            await server.stop(None)
            raise not_made(self._inside, error) from error
        await server.start()
        return server

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection that speaks HTTP/2 on to gRPC, until either side ends it or it has sent too much."""
        if await reader.readexactly(len(_PREFACE)) != _PREFACE:
            return
        ways: set[asyncio.Task[None]] = set()
        questions: asyncio.StreamWriter | None = None
        try:
            # gRPC takes calls one by one, those of connections that have ended too: with more than it can answer none is answered
            # in time. So who says nothing more keeps a turn for a while.
            async with self._open.turn(writer):
                answers, questions = await asyncio.open_unix_connection(str(self._inside), limit=LARGEST)
                questions.write(_PREFACE)
                ways = {
                    asyncio.create_task(_copy(reader, questions)),
                    asyncio.create_task(_copy(answers, writer)),
                }
                done, _ = await asyncio.wait(ways, timeout=_BEGINS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in ways:
                each.cancel()
            if questions is not None:
                questions.transport.abort()

    async def _check(
        self,
        request: messages.HealthCheckRequest,
        context: grpc.aio.ServicerContext[messages.HealthCheckRequest, messages.HealthCheckResponse],
    ) -> messages.HealthCheckResponse:
        name = request.service
        if name not in self._checks:
            known = ", ".join(filter(None, self._checks))
            await context.abort(grpc.StatusCode.NOT_FOUND, f"services are {known}")
        reason = await self._checks[name].get()
        if reason != self._told.get(name, ""):
            # Told when it changes: probes come every few seconds.
            self._told[name] = reason
            if reason:
                log("warning", "a probe fails", probe=name, reason=reason)
            else:
                log("info", "a probe succeeds again", probe=name)
        status = messages.HealthCheckResponse.NOT_SERVING if reason else messages.HealthCheckResponse.SERVING
        return messages.HealthCheckResponse(status=status)


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on what comes, until it ends or is more than a connection may send."""
    size = 0
    with suppress(OSError):
        while (block := await source.read(4096)) and (size := size + len(block)) <= LARGEST:
            target.write(block)
            await target.drain()


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
    """Ask a plugin for its PluginInfo.

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
