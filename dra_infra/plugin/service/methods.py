"""Methods of gRPC services that refuse a request which is not the message that they take.

grpc parses a request before it calls the method, and logs a failure of that as an exception with its traceback. So
whoever reaches a socket could fill the log. The parsers here raise nothing, and the methods refuse.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message

_Request = TypeVar("_Request", bound=Message)
_Response = TypeVar("_Response", bound=Message)


class OnMalformed(Protocol):
    """Is called for each request that was refused; returns soon and raises nothing."""

    def __call__(self, *, method: str, peer: str) -> None:
        """Note the refusal of a request to *method*, such as `grpc.health.v1.Health/Check`, by *peer* in gRPC's words."""
        ...


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service, which a coroutine answers.

    Args:
        request: The message that it takes.
        answer: Gets the request and gRPC's context.
        streams: Whether it answers with a stream, which *answer* writes to the context, or with one message.
    """

    request: type[Message]
    answer: Callable[[Any, Any], Awaitable[Any]]
    streams: bool = False

    @classmethod
    def unary(
        cls,
        request: type[_Request],
        answer: Callable[[_Request, grpc.aio.ServicerContext[_Request, _Response]], Awaitable[_Response]],
    ) -> Self:
        """A method with one answer."""
        return cls(request, answer)

    @classmethod
    def stream(
        cls,
        request: type[_Request],
        answer: Callable[[_Request, grpc.aio.ServicerContext[_Request, _Response]], Awaitable[None]],
    ) -> Self:
        """A method with a stream of answers."""
        return cls(request, answer, streams=True)


def service_handler(
    service: str, methods: Mapping[str, Method], on_malformed: OnMalformed
) -> grpc.GenericRpcHandler[Any, Any]:
    """A service for a server; malformed requests are answered with INVALID_ARGUMENT."""
    handlers = {name: _handler(method, f"{service}/{name}", on_malformed) for name, method in methods.items()}
    return grpc.method_handlers_generic_handler(service, handlers)


def _handler(method: Method, name: str, on_malformed: OnMalformed) -> grpc.RpcMethodHandler[Any, Any]:
    def parse(content: bytes) -> Message | None:
        try:
            return method.request.FromString(content)
        except DecodeError:
            return None

    async def answer(request: Message | None, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        if request is None:
            on_malformed(method=name, peer=context.peer())
            await context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, "the request is not a message of this method"
            )
        return await method.answer(request, context)

    make = grpc.unary_stream_rpc_method_handler if method.streams else grpc.unary_unary_rpc_method_handler
    return make(answer, parse, _serialize)


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()
