"""Prepares and releases claims when the kubelet asks, in both versions of its protocol.

Each claim of a request has an answer of its own: one that cannot be prepared keeps no other back. Which claims a
request names is checked before anything of it reaches a disk or the API server. Errors are written as an event of a
pod shows them: "NodePrepareResources failed for ResourceClaim NAME: TEXT".
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, Literal, Protocol, TypeVar

import grpc
import grpc.aio

from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api.names import is_dns_label, is_dns_subdomain
from dra_infra.plugin.claims import Claim, ClaimDevice, ClaimReference, check_uid
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.observing import Observer, Operation
from dra_infra.plugin.preparations import Preparations
from dra_infra.plugin.protocol import dra_v1_pb2 as messages
from dra_infra.plugin.service.methods import Method, service_handler
from dra_infra.plugin.service.serving import Pool

LONGEST: Final = 800
"""Characters: an event has room for 1,024 with what the kubelet puts around it."""

_GAPS: Final = re.compile(r"\s+")


def explain(error: PluginError, claim: ClaimReference) -> str:
    """All problems of a claim in one line, without the claim's name: the kubelet says it."""
    text = "; ".join(_line(problem, str(claim)) for problem in error.problems)
    # Parameters of a claim may have half a letter (JSON's \\ud800), which no message takes: all claims would fail with it.
    text = _GAPS.sub(" ", text).strip().encode("utf-8", "replace").decode()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _line(problem: Problem, claim: str) -> str:
    path = problem.path.removeprefix(claim).removeprefix(":").strip()
    where = f"{path}: " if path else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{where}{problem.message} [{problem.code}]{hint}"


_LONGEST_LABEL: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
"""Characters that an API server lets namespaces and names of claims have; a UID has 36."""


class Named(Protocol):
    """A claim of a request, in any version of the protocol."""

    namespace: str
    uid: str
    name: str


def by_uid(claims: Iterable[Named]) -> dict[str, tuple[ClaimReference, ...]]:
    """The claims of a request by UID, as answers are; more than one where the request contradicts itself."""
    found: dict[str, dict[ClaimReference, None]] = {}
    for each in claims:
        reference = ClaimReference(namespace=each.namespace, name=each.name, uid=each.uid)
        found.setdefault(each.uid, {})[reference] = None
    return {uid: tuple(references) for uid, references in found.items()}


def check_one(references: tuple[ClaimReference, ...]) -> ClaimReference:
    """The claim that a UID stands for.

    Raises:
        PluginError: `invalid-claim-uid`, `invalid-claim-name`.
    """
    first = references[0]
    check_uid(first.uid)
    if len(references) > 1:
        names = ", ".join(_shown(f"{each.namespace}/{each.name}") for each in references[:3])
        raise _invalid("claim.uid", f"is that of several claims: {names}")
    if not is_dns_label(first.namespace):
        raise _invalid("claim.namespace", f"{_shown(first.namespace)} is no namespace")
    if not is_dns_subdomain(first.name):
        raise _invalid("claim.name", f"{_shown(first.name)} is no name of a claim")
    return first


def shortened(reference: ClaimReference) -> ClaimReference:
    """Shorten a reference for logs: what was not checked may be long."""
    return ClaimReference(
        namespace=reference.namespace[:_LONGEST_LABEL],
        name=reference.name[:_LONGEST_SUBDOMAIN],
        uid=reference.uid[:_LONGEST_LABEL],
    )


def _shown(text: str) -> str:
    return repr(text[:_LONGEST_LABEL])


def _invalid(path: str, message: str) -> PluginError:
    return PluginError.of(
        path=path,
        code="invalid-claim-name",
        message=message,
        hint="requests come from the kubelet, with the claim's own metadata",
    )


VERSIONS: Final = {
    "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin": True,
    "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin": False,
}
"""Names of the service, and whether its devices have shares. Messages without shares are the same bytes in both."""

MOST_CLAIMS: Final = 256
"""Claims of one request: those of one pod."""

SECONDS_TO_BEGIN: Final = 40.0
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
        self._until = time.monotonic() + (
            SECONDS_TO_BEGIN if seconds is None else min(SECONDS_TO_BEGIN, seconds)
        )
        self.gone = False

    def left(self) -> float:
        """Seconds in which work may begin."""
        return self._until - time.monotonic()

    def check(self, reference: ClaimReference) -> None:
        """Check that work on a claim may begin.

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
    """The service DRAPlugin: the kubelet calls it before a pod's containers start, and when no pod has a claim any more.

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
            service_handler(
                service,
                {
                    "NodePrepareResources": Method.unary(
                        messages.NodePrepareResourcesRequest,
                        self._in_thread(partial(self._prepare, shares=shares)),
                    ),
                    "NodeUnprepareResources": Method.unary(
                        messages.NodeUnprepareResourcesRequest, self._in_thread(self._release)
                    ),
                },
                self._observer.malformed,
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
            result: _Result | None = None
            error: PluginError | None = None
            try:
                # One claim fails, and the service goes on.
                with as_plugin_error("the node plugin"):
                    reference = check_one(references)
                    caller.check(reference)
                    result = work(reference, caller)
            except PluginError as caught:
                error = caught
            self._observer.ended(operation, seconds=time.monotonic() - began, error=error)
            yield uid, result, explain(error, operation.claim) if error else ""


def _device(device: ClaimDevice, cdi_id: str, *, shares: bool) -> messages.Device:
    return messages.Device(
        request_names=[device.request],
        pool_name=device.pool,
        device_name=device.device,
        cdi_device_ids=[cdi_id],
        share_id=device.share_id if shares and device.share_id else None,
    )


def _too_late(reference: ClaimReference, message: str, hint: str) -> PluginError:
    return PluginError.of(path=str(reference), code="call-out-of-time", message=message, hint=hint)
