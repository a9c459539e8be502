"""Writes the claims of pods as `attach`, where that gives the very same pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any, NamedTuple

from dra_infra.components import pod_specs
from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.kubernetes.api.names import is_dns_label
from dra_infra.program_writing.python_text import Call, Name
from dra_infra.specs.attachments import choose_containers


class ClaimOfProgram(NamedTuple):
    """A claim or claim template of the program.

    Args:
        variable: What it is assigned to.
        component: The component's name, after which pods' entries are called.
        requests: Names of its requests.
    """

    variable: str
    component: str
    requests: tuple[str, ...]


Claims = Mapping[tuple[str, str], ClaimOfProgram]
"""Claims that pods of a namespace can use: by the field of a pod's entry that names them, and their name."""


class _Attachment(NamedTuple):
    """One call of `attach`."""

    claim: ClaimOfProgram
    entry: Mapping[str, Any]
    containers: tuple[str, ...]
    request: str | None


class AttachedPod(NamedTuple):
    """A pod spec without the claims that `attach` gives it.

    Args:
        pod: The rest of it.
        calls: The calls that give them, in order: the variable, and arguments beside the pod.
    """

    pod: Mapping[str, Any]
    calls: Sequence[tuple[str, Mapping[str, Any]]]

    def inline(self) -> Any:
        """The pod spec as one expression."""
        code: Any = self.pod
        for variable, keywords in self.calls:
            code = Call(f"{variable}.attach", [code], keywords)
        return code

    def statements(self, name: str) -> Iterator[tuple[str, Any]]:
        """The assignments that make the pod spec, which is called *name*."""
        yield name, self.pod
        for variable, keywords in self.calls:
            yield name, Call(f"{variable}.attach", [Name(name)], keywords)


def is_pod_spec(value: Mapping[str, Any]) -> bool:
    """True for a pod spec with claims, wherever in a workload it is."""
    return isinstance(value.get("containers"), list) and bool(mappings(value.get("resourceClaims")))


def uses_claims(pod: Mapping[str, Any], claims: Claims) -> bool:
    """True for a pod spec that names claims of the program."""
    return any(_claim_of(each, claims) for each in mappings(pod.get("resourceClaims")))


def attach_claims(pod: Mapping[str, Any], claims: Claims) -> AttachedPod | None:
    """The pod spec by calls of `attach`; None where these cannot give this very pod spec."""
    found: list[_Attachment] = []
    for entry in mappings(pod["resourceClaims"]):
        if claim := _claim_of(entry, claims):
            found += _attachments(pod, entry, claim)
    rest = _without(pod, found)
    for calls in (found, _in_order(pod, found)):
        if calls and _attached(rest, calls) == pod:
            return AttachedPod(rest, [(each.claim.variable, _keywords(each, rest)) for each in calls])
    return None


def _in_order(pod: Mapping[str, Any], found: Sequence[_Attachment]) -> list[_Attachment]:
    """The calls in an order in which each container gets its claims as it has them; none where there is no such order."""
    calls = {(each.entry["name"], each.request): each for each in found}
    order = TopologicalSorter[tuple[Any, str | None]](dict.fromkeys(calls, ()))
    for container in (*mappings(pod.get("initContainers")), *mappings(pod["containers"])):
        claims = mappings(mapping(container.get("resources")).get("claims"))
        named = [(each.get("name"), each.get("request")) for each in claims]
        keys = [key for key in named if all(isinstance(each, str | None) for each in key) and key in calls]
        for before, after in pairwise(keys):
            order.add(after, before)
    try:
        return [calls[key] for key in order.static_order()]
    except CycleError:
        return []


def _claim_of(entry: Mapping[str, Any], claims: Claims) -> ClaimOfProgram | None:
    for field in ("resourceClaimName", "resourceClaimTemplateName"):
        name = entry.get(field)
        # What the server refuses as the name of an entry, attach does not take.
        is_named = isinstance(entry.get("name"), str) and is_dns_label(entry["name"])
        if len(entry) == 2 and isinstance(name, str) and is_named:
            return claims.get((field, name))
    return None


def _attachments(
    pod: Mapping[str, Any], entry: Mapping[str, Any], claim: ClaimOfProgram
) -> Iterator[_Attachment]:
    """One for each request that containers name, and one for all that name none."""
    containers: dict[str | None, list[str]] = {}
    for container in (*mappings(pod.get("initContainers")), *mappings(pod["containers"])):
        for each in mappings(mapping(container.get("resources")).get("claims")):
            request = each.get("request")
            if each.get("name") == entry["name"] and isinstance(request, str | None):
                containers.setdefault(request, []).append(str(container.get("name")))
    for request, names in containers.items():
        yield _Attachment(claim, entry, tuple(names), request)


def _without(pod: Mapping[str, Any], found: Sequence[_Attachment]) -> dict[str, Any]:
    names = [each.entry["name"] for each in found]
    rest = dict(pod)
    _put(
        rest,
        "resourceClaims",
        [each for each in pod["resourceClaims"] if mapping(each).get("name") not in names],
    )
    for field in ("initContainers", "containers"):
        if isinstance(pod.get(field), list):
            rest[field] = [_bare(each, names) for each in pod[field]]
    return rest


def _bare(container: Any, names: Sequence[str]) -> Any:
    resources = mapping(mapping(container).get("resources"))
    if not isinstance(resources.get("claims"), list):
        return container
    kept = dict(resources)
    _put(kept, "claims", [each for each in resources["claims"] if mapping(each).get("name") not in names])
    bare = dict(container)
    _put(bare, "resources", kept)
    return bare


def _put(held: dict[str, Any], key: str, value: Any) -> None:
    """Sets a field, in its place, or takes it away where nothing is in it."""
    if value:
        held[key] = value
    else:
        del held[key]


def _attached(pod: Mapping[str, Any], found: Sequence[_Attachment]) -> Any:
    """The pod that `attach` gives; None where it refuses to."""
    result: Any = pod
    for each in found:
        entry = str(each.entry["name"])
        try:
            names = choose_containers(
                pod_specs.view_pod(result),
                entry=entry,
                requests=each.claim.requests,
                containers=each.containers,
                request=each.request,
            )
        except InvalidSpecError:
            return None
        if pod_specs.find_entry(result, entry) is None:
            result = pod_specs.add_entry(result, each.entry)
        request = {} if each.request is None else {"request": each.request}
        result = pod_specs.add_container_claims(result, names, {"name": entry, **request})
    return result


def _keywords(each: _Attachment, pod: Mapping[str, Any]) -> Mapping[str, Any]:
    keywords: dict[str, Any] = {}
    if [container.get("name") for container in mappings(pod["containers"])] != list(each.containers):
        keywords["containers"] = each.containers[0] if len(each.containers) == 1 else list(each.containers)
    elif len(each.containers) > 1:
        keywords["containers"] = list(each.containers)
    if each.request is not None:
        keywords["request"] = each.request
    if each.entry["name"] != each.claim.component:
        keywords["entry"] = each.entry["name"]
    return keywords
