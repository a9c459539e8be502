"""Refusals of the API server, each with its code, what was asked, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_infra.client.kinds import Kind
from dra_infra.client.refusals import TooLargeError, UntrustedError, shorten
from dra_infra.errors import ClusterError, PluginError, Problem

_CODES: Final = {
    "cluster-unreachable": "api-unreachable",
    "cluster-answer": "api-unreachable",
    "cluster-unauthorized": "api-unauthorized",
    "cluster-credentials": "api-no-credentials",
    "kubeconfig-unreadable": "api-no-credentials",
}

_HINTS: Final = {
    "api-untrusted": "give the plugin the authority of that certificate: ca.crt of the pod's account, or certificate-authority of the --kubeconfig. Its file is read again for each request",
    "api-unreachable": "is the API server up, and the network of the node? It is asked again",
    "api-unauthorized": "the plugin's pod needs the token of its service account, or name a --kubeconfig that holds one",
    "api-no-credentials": "see the file of the token, or the exec plugin, that the --kubeconfig names; the plugin's pod needs the token of its service account",
}

_MAY_BE_OURS: Final = frozenset({"api-untrusted", "api-unauthorized"})

_GONE: Final = 410
_FORBIDDEN: Final = 403
_UNAUTHORIZED: Final = 401


class ApiError(PluginError):
    """An API server did not do what it was asked.

    Attributes:
        status: HTTP's; 0 where no answer came, so that what was asked may have been done or not.
        reason: Kubernetes' word for it, such as `AlreadyExists`.
        retry_after: Seconds for which the server wants to be left alone.
        too_large: Whether the answer was larger than what is read of one.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        status: int = 0,
        reason: str = "",
        retry_after: float = 0.0,
        too_large: bool = False,
        before: Sequence[Problem] = (),
    ) -> None:
        super().__init__([*before, problem])
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        self.too_large = too_large

    @property
    def may_be_ours(self) -> bool:
        """True where a server is there, and what this process was started with may be what keeps them apart.

        Not where there are no credentials to show: they are looked for again for each request, so a restart finds no others,
        and an exec plugin whose cloud is away fails on all nodes at once.
        """
        return self.problems[-1].code in _MAY_BE_OURS


def retry_after_of(error: PluginError) -> float:
    """Seconds for which a server wants to be left alone, if it was one that failed, for `backoff`."""
    return error.retry_after if isinstance(error, ApiError) else 0.0


def joined(before: PluginError, error: ApiError) -> ApiError:
    """*error*, with the problems that had led to what was asked."""
    return ApiError(
        error.problems[0],
        status=error.status,
        reason=error.reason,
        retry_after=error.retry_after,
        before=before.problems,
    )


def from_cluster_error(request: str, error: ClusterError) -> ApiError:
    """Return what `dra_infra.client` raised, in the words of the plugin."""
    first = error.problems[0]
    code = "api-untrusted" if isinstance(error, UntrustedError) else _CODES.get(first.code, "api-unreachable")
    problem = Problem(path=request, code=code, message=first.message, hint=_HINTS[code])
    # Without credentials nothing was sent: as behind a 401, nothing was done.
    refused = code in ("api-unauthorized", "api-no-credentials")
    too_large = isinstance(error, TooLargeError)
    return ApiError(problem, status=_UNAUTHORIZED if refused else 0, too_large=too_large)


def refused(
    request: str, kind: Kind, verb: str, status: int, said: str, reason: str = "", *, retry_after: float = 0.0
) -> ApiError:
    """An answer of 400 and more to a *request* such as `get ResourceClaim ml/trainer`; the *verb* is one of rules of roles."""
    if status == _FORBIDDEN:
        # What the plugin patches is status alone, which is a resource of its own for RBAC.
        resource = f"{kind.plural}/status" if verb == "patch" else kind.plural
        rule = f'{{apiGroups: ["{kind.group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'
        hint = f"grant it to the plugin's account in a ClusterRole: {rule}"
        problem = Problem(path=request, code="api-forbidden", message=shorten(said), hint=hint)
    elif status in (429, 500, 502, 503, 504):
        message = f"the API server is busy or fails: {status} {shorten(said)}"
        problem = Problem(
            path=request, code="api-unreachable", message=message, hint=_HINTS["api-unreachable"]
        )
    else:
        hint = "another changed it meanwhile, and it is tried again" if status in (404, 409, _GONE) else ""
        message = f"the API server says {status}: {shorten(said)}"
        problem = Problem(path=request, code="api-refused", message=message, hint=hint)
    return ApiError(problem, status=status, reason=reason, retry_after=retry_after)


def too_long(request: str) -> ApiError:
    """A list that does not end, or whose objects would take too much memory."""
    message = "the list does not end, or is longer than the plugin has memory for"
    hint = "see whether what is between the plugin and the API server answers as it does"
    return ApiError(Problem(path=request, code="api-refused", message=message, hint=hint))


def not_served(kind: Kind) -> ApiError:
    """A server without Dynamic Resource Allocation, or with other versions of it."""
    names = " or ".join(map(kind.api_version, kind.versions))
    problem = Problem(
        path=kind.plural,
        code="kind-not-served",
        message=f"the API server serves no {kind.plural} as {names}",
        hint="Kubernetes 1.34 and newer serve resource.k8s.io/v1; see --runtime-config of the API server",
    )
    return ApiError(problem, status=404)
