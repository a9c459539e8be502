"""ValidatingAdmissionPolicies as the API server asks them: which requests they are about, and what they say of each.

The names below are loaded when they are first used: most runs ask no policy, and evaluating expressions takes 0.1 s to load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dra_infra.kubernetes.apiserver.policies.decisions import BINDING as BINDING
    from dra_infra.kubernetes.apiserver.policies.decisions import GROUP as GROUP
    from dra_infra.kubernetes.apiserver.policies.decisions import NO_PARAMS as NO_PARAMS
    from dra_infra.kubernetes.apiserver.policies.decisions import POLICY as POLICY
    from dra_infra.kubernetes.apiserver.policies.decisions import Decision as Decision
    from dra_infra.kubernetes.apiserver.policies.decisions import Policy as Policy
    from dra_infra.kubernetes.apiserver.policies.matching import refuse_shapes as refuse_shapes
    from dra_infra.kubernetes.apiserver.policies.objects import NO_LABELS as NO_LABELS
    from dra_infra.kubernetes.apiserver.policies.objects import NO_LIMITS as NO_LIMITS
    from dra_infra.kubernetes.apiserver.policies.requests import CONTROLLER_ASKS as CONTROLLER_ASKS
    from dra_infra.kubernetes.apiserver.policies.requests import NO_NAMESPACE as NO_NAMESPACE
    from dra_infra.kubernetes.apiserver.policies.requests import NOBODY_ASKS as NOBODY_ASKS
    from dra_infra.kubernetes.apiserver.policies.requests import Request as Request
    from dra_infra.kubernetes.apiserver.policies.requests import User as User
    from dra_infra.kubernetes.apiserver.policies.requests import read_claim_request as read_claim_request
    from dra_infra.kubernetes.apiserver.policies.requests import read_pod_request as read_pod_request
    from dra_infra.kubernetes.apiserver.policies.requests import read_request as read_request

# No module of the package has the name of one of these: importing it would put it in their place.
_HOMES: Final = {
    **dict.fromkeys(("BINDING", "GROUP", "NO_PARAMS", "POLICY", "Decision", "Policy"), "decisions"),
    "refuse_shapes": "matching",
    **dict.fromkeys(("NO_LABELS", "NO_LIMITS"), "objects"),
    **dict.fromkeys(
        ("CONTROLLER_ASKS", "NOBODY_ASKS", "NO_NAMESPACE", "Request", "User", "read_claim_request"),
        "requests",
    ),
    **dict.fromkeys(("read_pod_request", "read_request"), "requests"),
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (the table is the one list of names)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
