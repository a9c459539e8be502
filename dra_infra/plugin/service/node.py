"""Prepares and releases claims when the kubelet asks, in both versions of its protocol.

Each claim of a request has an answer of its own: one that cannot be prepared keeps no other back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Literal, TypeVar

import grpc
import grpc.aio

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim, ClaimDevice, ClaimReference
from dra_infra.plugin.observing import Observer, Operation
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.protocol import dra_v1_pb2 as messages
from dra_infra.plugin.service.answers import explain
from dra_infra.plugin.service.references import Named, by_uid, check_one, shortened
from dra_infra.plugin.service.serving import Pool
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
_Request = TypeVar("_Request", messages.NodePrepareResourcesRequest, messages.NodeUnprepareResourcesRequest)
_Response = TypeVar("_Response")


class _Caller:
    """Whoever waits for an answer, and for how long.

    A claim that is prepared after its caller went may be one that was released in between, and nobody would release it again:
    the kubelet cancels its call when the pod is deleted (pkg/kubelet/pod_workers.go), and then releases.
    """

    def __init__(self, seconds: float | None) -> None:
        # It may have less time left than we take.
        self._until = time.monotonic() + (PATIENCE if seconds is None else min(PATIENCE, seconds))
        self.gone = False

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
        if self.gone:
            message = "was not begun: the kubelet had cancelled its call"
            raise _too_late(
                reference, message, "its pod was deleted, most likely; else the kubelet asks again"
            )


class NodeService:
    """What the kubelet calls before a pod's containers start, and when no pod has a claim any more.

    Args:
        read_claim: Reads an allocated claim from the API server; raises `PluginError`.
        pool: Where claims are worked on.
    """

    def __init__(
        self,
        *,
        preparations: Preparations,
        read_claim: Callable[[ClaimReference], Claim],
        observer: Observer,
        pool: Pool,
    ) -> None:
        self._preparations = preparations
        self._read_claim = read_claim
        self._observer = observer
        self._pool = pool

    def handlers(self) -> tuple[grpc.GenericRpcHandler[Any, Any], ...]:
        """The service in both versions, for a server."""
        return tuple(
            grpc.method_handlers_generic_handler(
                service,
                {
                    "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
                        self._in_thread(partial(self._prepare, shares=shares)),
                        messages.NodePrepareResourcesRequest.FromString,
                        messages.NodePrepareResourcesResponse.SerializeToString,
                    ),
                    "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
                        self._in_thread(self._release),
                        messages.NodeUnprepareResourcesRequest.FromString,
                        messages.NodeUnprepareResourcesResponse.SerializeToString,
                    ),
                },
            )
            for service, shares in VERSIONS.items()
        )

    def _in_thread(
        self, work: Callable[[_Request, _Caller], _Response]
    ) -> Callable[[_Request, grpc.aio.ServicerContext[_Request, _Response]], Awaitable[_Response]]:
        async def answer(
            request: _Request, context: grpc.aio.ServicerContext[_Request, _Response]
        ) -> _Response:
            if (number := len(by_uid(request.claims))) > MOST_CLAIMS:
                text = f"the request has {number} claims, and {MOST_CLAIMS} are the most"
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, text)
            caller = _Caller(context.time_remaining())
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pool, work, request, caller)
            except asyncio.CancelledError:
                caller.gone = True
                raise

        return answer

    def _prepare(
        self, request: messages.NodePrepareResourcesRequest, caller: _Caller, *, shares: bool
    ) -> messages.NodePrepareResourcesResponse:
        response = messages.NodePrepareResourcesResponse()
        for uid, prepared, error in self._each("prepare", request.claims, caller, self._prepare_one):
            answer = response.claims[uid]
            answer.error = error
            answer.devices.extend(_device(each, cdi_id, shares=shares) for each, cdi_id in prepared or ())
        return response

    def _release(
        self, request: messages.NodeUnprepareResourcesRequest, caller: _Caller
    ) -> messages.NodeUnprepareResourcesResponse:
        response = messages.NodeUnprepareResourcesResponse()
        for uid, _, error in self._each("release", request.claims, caller, self._release_one):
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
        caller: _Caller,
        work: Callable[[ClaimReference, _Caller], _Result],
    ) -> Iterator[tuple[str, _Result | None, str]]:
        """Each claim's UID, with what *work* made of it or the text of an error."""
        for uid, references in by_uid(claims).items():
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
