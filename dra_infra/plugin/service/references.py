"""Which claims a request names: checked before anything of it reaches a disk or the API server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol

from dra_infra.errors import PluginError, Problem
from dra_infra.model.names import is_dns_label, is_dns_subdomain
from dra_infra.plugin.claims import ClaimReference, check_uid

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
    """For logs: what was not checked may be long."""
    return ClaimReference(
        namespace=reference.namespace[:_LONGEST_LABEL],
        name=reference.name[:_LONGEST_SUBDOMAIN],
        uid=reference.uid[:_LONGEST_LABEL],
    )


def _shown(text: str) -> str:
    return repr(text[:_LONGEST_LABEL])


def _invalid(path: str, message: str) -> PluginError:
    problem = Problem(
        path=path,
        code="invalid-claim-name",
        message=message,
        hint="requests come from the kubelet, with the claim's own metadata",
    )
    return PluginError([problem])
