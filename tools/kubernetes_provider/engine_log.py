"""Messages to the user, which the engine shows beside the resource that they are about."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import grpc
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

SECONDS: Final = 5.0


class EngineLog:
    """The engine's log; silent until the engine has said where it is."""

    def __init__(self) -> None:
        self._engine: engine_pb2_grpc.EngineStub | None = None

    def connect(self, address: str) -> None:
        """Log to the engine at *address*."""
        if address:
            self._engine = engine_pb2_grpc.EngineStub(grpc.insecure_channel(address))

    def info(self, urn: str, message: str) -> None:
        """Tell the user something about a resource."""
        self._say(engine_pb2.INFO, urn, message)

    def warn(self, urn: str, message: str) -> None:
        """Warn the user."""
        self._say(engine_pb2.WARNING, urn, message)

    def _say(self, severity: engine_pb2.LogSeverity.ValueType, urn: str, message: str) -> None:
        if self._engine is None:
            return
        # A message that is lost must not cost the deployment.
        with suppress(grpc.RpcError):
            self._engine.Log(
                engine_pb2.LogRequest(severity=severity, urn=urn, message=message), timeout=SECONDS
            )
