"""Calls transforms of a program in another process, which serves them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import grpc
from pulumi.runtime.proto import callback_pb2, callback_pb2_grpc, resource_pb2

from dra_infra.program.languages.endpoint import OPTIONS
from dra_infra.program.transforms import Transforms


class RemoteTransforms(Transforms):
    """As the transforms of a program in Python, each at the address that its registration names.

    Args:
        deadline: Until when they may run, of `time.monotonic`.
    """

    def __init__(self, deadline: float) -> None:
        super().__init__()
        self._deadline = deadline
        self._targets: dict[str, str] = {}
        self._channels: dict[str, grpc.Channel] = {}
        self._callbacks: Any = self

    def add_to_stack(self, callback: Any) -> None:
        """Call this one for every resource that is registered from now on."""
        self._targets[callback.token] = callback.target
        super().add_to_stack(callback)

    def of_resource(self, urn: str, parents: Iterable[str], own: Iterable[Any]) -> list[str]:
        """The transforms of a resource: its own, those of its parents from the nearest on, those of the stack."""
        known = [*own]
        self._targets.update((each.token, each.target) for each in known)
        return super().of_resource(urn, parents, known)

    async def call(self, token: str, request: bytes) -> resource_pb2.TransformResponse:
        """Call one."""
        target = self._targets[token]
        if target not in self._channels:
            self._channels[target] = grpc.insecure_channel(target, options=OPTIONS)
        stub = callback_pb2_grpc.CallbacksStub(self._channels[target])
        answer = stub.Invoke(
            callback_pb2.CallbackInvokeRequest(token=token, request=request),
            timeout=max(0.0, self._deadline - time.monotonic()),
        )
        return resource_pb2.TransformResponse.FromString(answer.response)

    def stop(self) -> None:
        """Close all connections."""
        for channel in self._channels.values():
            channel.close()
