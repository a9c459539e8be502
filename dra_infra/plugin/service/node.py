"""Prepares and releases claims when the kubelet asks, in both versions of its protocol.

Each claim of a request has an answer of its own: one that cannot be prepared keeps no other back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Literal, TypeVar

import grpc

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim, ClaimDevice, ClaimReference
from dra_infra.plugin.observing import Observer, Operation
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.protocol import dra_v1_pb2 as messages
from dra_infra.plugin.service.answers import explain
from dra_infra.plugin.service.references import Named, by_uid, check_one, shortened
from dra_infra.plugin.unexpected import expected

VERSIONS: Final = {
    "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin": True,
    "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin": False,
}
"""Names of the service, and whether its devices have shares. Messages without shares are the same bytes in both."""

MOST_CLAIMS: Final = 256
"""Claims of one request: those of one pod."""

PATIENCE: Final = 40.0
"""Seconds in which the claims of a request have to be begun: the kubelet gives a call up after 45."""

_Result = TypeVar("_Result")


class _Caller:
    """Whoever waits for an answer, and for how long.

    A claim that is prepared after its caller went may be one that was released in between, and nobody would release it again:
    the kubelet cancels its call when the pod is deleted (pkg/kubelet/pod_workers.go), and then releases.
    """

    def __init__(self, context: grpc.ServicerContext) -> None:
        self._context = context
        # It may have less time left than we take: its call has waited for a thread.
        self._until = time.monotonic() + min(PATIENCE, context.time_remaining())

    def left(self) -> float:
        """Seconds in which work may begin."""
        return self._until - time.monotonic()

    def check(self, reference: ClaimReference) -> None:
        """Whether work on a claim may begin.

        Raises:
            PluginError: `call-out-of-time`.
        """
        if self.left() < 0:
            message = "was not begun: what came before it took all the time of the kubelet's call"
            raise _too_late(
                reference,
                message,
                "the kubelet asks again; if it stays so, see the plugin's log for what takes long",
            )
        if not self._context.is_active():
            message = "was not begun: the kubelet had cancelled its call"
            raise _too_late(
                reference, message, "its pod was deleted, most likely; else the kubelet asks again"
            )


class NodeService:
    """What the kubelet calls before a pod's containers start, and when no pod has a claim any more.

    Args:
        read_claim: Reads an allocated claim from the API server; raises `PluginError`.
    """

    def __init__(
        self,
        *,
        preparations: Preparations,
        read_claim: Callable[[ClaimReference], Claim],
        observer: Observer,
    ) -> None:
        self._preparations = preparations
        self._read_claim = read_claim
        self._observer = observer

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """The service in both versions, for a server."""
        return tuple(
            grpc.method_handlers_generic_handler(
                service,
                {
                    "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                        partial(self._prepare, shares=shares),
                        messages.NodePrepareResourcesRequest.FromString,
                        messages.NodePrepareResourcesResponse.SerializeToString,
                    ),
                    "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                        self._release,
                        messages.NodeUnprepareResourcesRequest.FromString,
                        messages.NodeUnprepareResourcesResponse.SerializeToString,
                    ),
                },
            )
            for service, shares in VERSIONS.items()
        )

    def _prepare(
        self, request: messages.NodePrepareResourcesRequest, context: grpc.ServicerContext, *, shares: bool
    ) -> messages.NodePrepareResourcesResponse:
        response = messages.NodePrepareResourcesResponse()
        for uid, prepared, error in self._each("prepare", request.claims, context, self._prepare_one):
            answer = response.claims[uid]
            answer.error = error
            answer.devices.extend(_device(each, cdi_id, shares=shares) for each, cdi_id in prepared or ())
        return response

    def _release(
        self, request: messages.NodeUnprepareResourcesRequest, context: grpc.ServicerContext
    ) -> messages.NodeUnprepareResourcesResponse:
        response = messages.NodeUnprepareResourcesResponse()
        for uid, _, error in self._each("release", request.claims, context, self._release_one):
            response.claims[uid].error = error
        return response

    def _prepare_one(self, reference: ClaimReference, caller: _Caller) -> tuple[tuple[ClaimDevice, str], ...]:
        claim = self._read_claim(reference)
        caller.check(reference)
        check = partial(caller.check, reference)
        ids = self._preparations.prepare(claim, within=caller.left(), check=check)
        return tuple(zip(claim.devices, ids, strict=True))

    def _release_one(self, reference: ClaimReference, caller: _Caller) -> None:
        check = partial(caller.check, reference)
        self._preparations.release(reference.uid, within=caller.left(), check=check)

    def _each(
        self,
        kind: Literal["prepare", "release"],
        claims: Iterable[Named],
        context: grpc.ServicerContext,
        work: Callable[[ClaimReference, _Caller], _Result],
    ) -> Iterator[tuple[str, _Result | None, str]]:
        """Each claim's UID, with what *work* made of it or the text of an error."""
        named = by_uid(claims)
        if len(named) > MOST_CLAIMS:
            text = f"the request has {len(named)} claims, and {MOST_CLAIMS} are the most"
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
        caller = _Caller(context)
        for uid, references in named.items():
            operation = Operation(kind=kind, claim=shortened(references[0]))
            self._observer.began(operation)
            began = time.monotonic()
            result, error = _attempt(partial(_work_on, references, caller, work))
            self._observer.ended(operation, seconds=time.monotonic() - began, error=error)
            yield uid, result, explain(error, operation.claim) if error else ""


def _work_on(
    references: tuple[ClaimReference, ...],
    caller: _Caller,
    work: Callable[[ClaimReference, _Caller], _Result],
) -> _Result:
    reference = check_one(references)
    caller.check(reference)
    return work(reference, caller)


def _attempt(work: Callable[[], _Result]) -> tuple[_Result | None, PluginError | None]:
    try:
        # One claim fails, and the service goes on.
        with expected("the node plugin"):
            return work(), None
    except PluginError as error:
        return None, error


def _device(device: ClaimDevice, cdi_id: str, *, shares: bool) -> messages.Device:
    return messages.Device(
        request_names=[device.request],
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=[cdi_id],
        share_id=device.share_id if shares and device.share_id else None,
    )


def _too_late(reference: ClaimReference, message: str, hint: str) -> PluginError:
    return PluginError([Problem(path=str(reference), code="call-out-of-time", message=message, hint=hint)])
