"""What the provider's answers have in common: outputs, and errors, which quote secrets as servers and helm do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

import grpc

from tools.kubernetes_provider import values
from tools.kubernetes_provider.api_server import NotServedError, RefusedError
from tools.kubernetes_provider.failures import abort, abort_partially, explain
from tools.kubernetes_provider.helm_command import HelmError
from tools.kubernetes_provider.kubeconfig import UnreachableError
from tools.kubernetes_provider.resource_types import format_id, metadata
from tools.kubernetes_provider.values import Object
from tools.kubernetes_provider.waiting import NotDoneError

FIELD_MANAGER_KEY: Final = "__fieldManager"
"""Output in which the state remembers who applies the object, as with the vendor's provider."""

SERVER_METADATA: Final = frozenset(
    {"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}
)
"""Fields that a server writes; an imported object's inputs are what is left."""


@contextmanager
def reporting(context: grpc.ServicerContext, what: str) -> Iterator[None]:
    """Turn expected failures into an error of the call."""
    try:
        yield
    except (HelmError, NotServedError, RefusedError, UnreachableError) as error:
        abort(context, f"{what}: {explain(error)}")


def abort_with_state(
    context: grpc.ServicerContext, message: str, error: NotDoneError, inputs: Object, manager: str
) -> NoReturn:
    """End the call with an error that keeps the object, as *error* saw it last, in the state."""
    abort_partially(
        context,
        message,
        resource_id=format_id(error.live),
        properties=make_outputs(error.live, inputs, manager),
        inputs=inputs,
        reasons=error.reasons,
    )


def type_token(urn: str) -> str:
    """Return the type token of a URN, without the types of its parents."""
    return urn.split("::")[2].rpartition("$")[2]


def make_outputs(live: Object, inputs: Object, manager: str) -> Object:
    """Return the outputs of a resource: the object, secret where the inputs are."""
    return {**values.mark_secrets(live, inputs), FIELD_MANAGER_KEY: manager}


def make_inputs(live: Object) -> Object:
    """Return an object as a program could have written it."""
    own = {name: value for name, value in metadata(live).items() if name not in SERVER_METADATA}
    kept = {name: value for name, value in live.items() if name != "status"}
    return {**kept, "metadata": own}
