"""Advice on the claims that containers use: claims of the pod that none uses, and requests that a claim does not have.

The API server checks only that a container names an entry of the pod. The kubelet injects the devices of the request that
is named, which are none where the claim has no such request (cdiDevicesAsList in pkg/kubelet/cm/dra/claiminfo.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dra_infra.advice.findings import Finding
from dra_infra.advice.references import KnownObjects, Requests
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import PodClaimEntry, PodTemplate, drivers_of, is_placeholder, mapping, mappings
from dra_infra.output.wording import join_words, nearest

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_OF_PODS: Final = frozenset({"dra.net", "cni.dra.networking.x-k8s.io"})
"""Drivers that give a device to the whole pod, by its network namespace, so that no container needs to name the claim."""
_OF_PODS_CLASSES: Final = ("dranet", "dra.net")
"""Names of classes of such a driver, where the class is not in the input."""


def advise_containers(template: PodTemplate, known: KnownObjects) -> Iterator[Problem]:
    """Yield claims that no container uses, and requests that are not in the claim; paths are those of the object.

    Codes `claim-without-container`, `unknown-request`.
    """
    entries = {each.name: each for each in template.claims}
    used: set[str] = set()
    is_known = True
    for where, use in _uses(template):
        name = use.get("name")
        if is_placeholder(name) or not isinstance(name, str):
            is_known = False
            continue
        used.add(name)
        request = use.get("request")
        entry = entries.get(name)
        if entry is not None and isinstance(request, str) and request and not is_placeholder(request):
            finding = _check_request(request, _requests_of(entry, template, known))
            if finding is not None:
                yield finding.at(template.at(f"{where}.request"))
    if not is_known or not any(mappings(template.spec.get(name)) for name in _LISTS):
        return
    for index, entry in enumerate(template.claims):
        if entry.name in used or is_placeholder(entry.name):
            continue
        requests = _requests_of(entry, template, known)
        if requests is None or not _is_of_pod(requests, known):
            yield _unused(entry.name).at(template.at(f"resourceClaims[{index}]"))


def _uses(template: PodTemplate) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in _LISTS:
        for number, container in enumerate(mappings(template.spec.get(field))):
            claims = mapping(container.get("resources")).get("claims")
            for index, use in enumerate(mappings(claims)):
                yield f"{field}[{number}].resources.claims[{index}]", use


def _requests_of(entry: PodClaimEntry, template: PodTemplate, known: KnownObjects) -> Requests | None:
    """Return the requests of the claim or template of an entry; None where they are not known."""
    kind, name = "ResourceClaim", entry.claim_name
    if name is None:
        kind, name = "ResourceClaimTemplate", entry.template_name
    if not isinstance(name, str):
        return None
    namespace = template.owner.namespace
    spaces = ("", "default") if namespace in ("", "default") else (namespace,)
    return next((found for each in spaces if (found := known.find_requests(kind, each, name))), None)


def _check_request(request: str, requests: Requests | None) -> Finding | None:
    if requests is None or request in requests:
        return None
    near = nearest(request, sorted(requests))
    one = next(iter(requests)) if len(requests) == 1 else near
    return Finding(
        "unknown-request",
        f"the claim has no request {request!r}, so the container starts without any of its devices",
        f"write request: {one}, or leave request out for all devices of the claim"
        if one
        else f"the claim has {join_words(sorted(requests))}; without request the container gets the devices of all",
    )


def _is_of_pod(requests: Requests, known: KnownObjects) -> bool:
    """Return True where all devices of a claim are for the whole pod."""
    names = {name for classes in requests.values() for name in classes}
    records = [known.classes.get(name) for name in names]
    return bool(names) and all(
        bool(drivers_of(each) & _OF_PODS)
        if each is not None
        else any(part in name for part in _OF_PODS_CLASSES)
        for name, each in zip(names, records, strict=True)
    )


def _unused(name: str) -> Finding:
    return Finding(
        "claim-without-container",
        f"no container uses the claim {name!r}: its devices are allocated, and the containers start without them",
        f"write resources: {{claims: [{{name: {name}}}]}} in each container that needs them",
    )
