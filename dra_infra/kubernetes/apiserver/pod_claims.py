"""Validation of the claim parts of pods (validatePodResourceClaims and below).

Upstream: pkg/apis/core/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_infra.kubernetes.api import names
from dra_infra.kubernetes.api.placeholders import as_placeholder, is_placeholder
from dra_infra.kubernetes.api.pods import ContainerResourceClaim, PodClaims, PodResourceClaim
from dra_infra.kubernetes.apiserver.field_errors import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    malformed,
    not_found,
    required,
)


def check_pod_claims(pod: PodClaims) -> Iterator[FieldError]:
    """Check `resourceClaims` of a pod spec and `resources.claims` of its containers."""
    yield from _check_entries(pod.resource_claims, f"{pod.path}.resourceClaims")
    known = sorted({entry.name for entry in pod.resource_claims if entry.name})
    for container in pod.containers:
        yield from _check_uses(container.claims, f"{pod.path}.{container.path}.resources.claims", known)
    if pod.pod_level_claims is not None:
        at = f"{pod.path}.resources.claims"
        yield forbidden("pod.resources-claims", at, "claims may not be set for Resources at pod-level")
        yield from _check_uses(pod.pod_level_claims, at, known)


def check_pod_update(pod: PodClaims, old: PodClaims) -> Iterator[FieldError]:
    """The claims of a pod that exists never change; the server's text goes on with what differs."""
    before, after = (each.resource_claims for each in (old, pod))
    if before != after or [each.claims for each in old.containers] != [
        each.claims for each in pod.containers
    ]:
        yield forbidden("pod.claims-immutable", pod.path, "pod updates may not change fields")


def _check_entries(entries: Sequence[PodResourceClaim], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        at = f"{path}[{index}]"
        if not entry.name:
            yield required("pod.claim-name-required", f"{at}.name")
        elif entry.name in seen:
            yield duplicate("pod.claim-duplicate", f"{at}.name", entry.name)
        else:
            for told in names.dns_label(entry.name):
                yield invalid("pod.claim-name-format", f"{at}.name", entry.name, told)
            seen.add(entry.name)
        yield from _check_target(entry, at)


def _check_target(entry: PodResourceClaim, path: str) -> Iterator[FieldError]:
    claim, template = entry.resource_claim_name, entry.resource_claim_template_name
    if (claim is None) == (template is None):
        told = (
            "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            if claim is None
            else "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        )
        # The server prints its internal type, whose fields have no JSON names.
        shown = {"Name": entry.name, "ResourceClaimName": claim, "ResourceClaimTemplateName": template}
        yield invalid("pod.claim-one-of", path, shown, told)
    for field, name in (("resourceClaimName", claim), ("resourceClaimTemplateName", template)):
        if name is not None and not is_placeholder(name):
            yield from malformed("pod.claim-reference", f"{path}.{field}", name, names.dns_subdomain(name))


def _check_uses(
    uses: Sequence[ContainerResourceClaim], path: str, known: Sequence[str]
) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, use in enumerate(uses):
        at = f"{path}[{index}]"
        if not use.name:
            yield required("container.claim-name-required", at)
            continue
        if use.name in seen:
            yield duplicate("container.claim-duplicate", at, use.name)
        else:
            key = use.name
            if use.request:
                for told in names.dns_label(use.request):
                    yield invalid("container.claim-request", f"{at}.request", use.request, told)
                key = as_placeholder(use.request, as_placeholder(use.name, f"{use.name}/{use.request}"))
            if key in seen:
                yield duplicate("container.claim-duplicate", at, key)
            elif not use.request and any(each.startswith(f"{use.name}/") for each in seen):
                yield duplicate("container.claim-duplicate", at, use.name)
            seen.add(key)
        if use.name not in known and not any(map(is_placeholder, known)):
            told = "must be one of the names in pod.spec.resourceClaims"
            told += f": {', '.join(known)}" if known else " which is empty"
            yield not_found("container.claim-unknown", at, use.name, told)
