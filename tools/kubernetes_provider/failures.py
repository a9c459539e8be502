"""How the provider tells the engine that something went wrong."""

from __future__ import annotations

from typing import Final, NoReturn

import grpc
from google.protobuf import any_pb2
from pulumi.runtime.proto import provider_pb2, status_pb2

from tools.kubernetes_provider.api_server import NotServedError, RefusedError
from tools.kubernetes_provider.values import Object, encode

DETAILS: Final = "grpc-status-details-bin"
"""Trailing metadata in which gRPC carries a status with details."""

HINTS: Final = {
    "AlreadyExists": (
        "The object is in the cluster but not in this stack's state. If it is yours, adopt it with "
        "`pulumi import`; if a replacement needs its name, set delete_before_replace; if the Pulumi "
        "resource was renamed, add an alias."
    ),
    "Conflict": (
        "Leave the field to the other manager (drop it, or list it in ignore_changes), or take it over "
        'with the annotation pulumi.com/patchForce: "true".'
    ),
}
"""What to do, by Kubernetes' reason of the refusal."""


def explain(error: Exception) -> str:
    """Return the text of *error*, and what to do about it."""
    if isinstance(error, RefusedError) and error.reason in HINTS:
        return f"{error}\n{HINTS[error.reason]}"
    if isinstance(error, NotServedError):
        return f"{error}\nVerify that the definition of this kind has been created and is served."
    return str(error)


def abort(context: grpc.ServicerContext, message: str) -> NoReturn:
    """End the call with an error that leaves the state of the resource as it was."""
    context.abort(grpc.StatusCode.UNKNOWN, message)


def abort_partially(
    context: grpc.ServicerContext,
    message: str,
    *,
    resource_id: str,
    properties: Object,
    inputs: Object,
    reasons: tuple[str, ...],
) -> NoReturn:
    """End the call with an error that puts the object into the state: it exists, but is not ready.

    The next deployment waits for it again.
    """
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=resource_id,
            properties=encode(properties),
            inputs=encode(inputs),
            reasons=[message, *reasons],
        )
    )
    code = grpc.StatusCode.UNKNOWN
    status = status_pb2.Status(code=code.value[0], message=message, details=[detail])
    context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
    context.abort(code, message)
