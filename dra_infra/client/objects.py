"""Accessors for plain objects that a server sent, of whatever shape they are.

They also lead from a pod to its claims, from a claim to its classes, and to what the cluster says about a pod that
waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dra_infra.kubernetes.api import PodRecord, mapping, mappings

Manifest = Mapping[str, Any]


def text(value: Any) -> str:
    """*value* where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def number(value: Any) -> int:
    """*value* where it is a whole number, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def is_object(value: Any) -> bool:
    """True for an object as every server stores it: a mapping with metadata that name it."""
    return isinstance(value, Mapping) and name_of(value) != ""


def name_of(item: Manifest) -> str:
    """The name of an object."""
    return text(mapping(item.get("metadata")).get("name"))


def namespace_of(item: Manifest) -> str:
    """The namespace of an object; empty where it is in none."""
    return text(mapping(item.get("metadata")).get("namespace"))


def uid_of(item: Manifest) -> str:
    """The UID of an object, which tells it from another one of its name."""
    return text(mapping(item.get("metadata")).get("uid"))


def full_name(item: Manifest) -> str:
    """`namespace/name`, or the name of an object without a namespace."""
    namespace = namespace_of(item)
    return f"{namespace}/{name_of(item)}" if namespace else name_of(item)


def namespaced_name(item: Manifest) -> tuple[str, str]:
    """Namespace and name of an object, which tell it from the others of its kind."""
    return namespace_of(item), name_of(item)


def labels_of(item: Manifest) -> Manifest:
    """The labels of an object."""
    return mapping(mapping(item.get("metadata")).get("labels"))


def claims_of(pod: Manifest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of the claims that a pod has, and of the templates whose claims were not made yet."""
    status = mapping(pod.get("status"))
    made = made_claims(pod)
    names = []
    missing = []
    for entry in mappings(mapping(pod.get("spec")).get("resourceClaims")):
        name = text(entry.get("resourceClaimName")) or made.get(text(entry.get("name")), "")
        if name:
            names.append(name)
        elif text(entry.get("name")) not in made:
            missing.append(f"template {text(entry.get('resourceClaimTemplateName'))}")
    extended = text(mapping(status.get("extendedResourceClaimStatus")).get("resourceClaimName"))
    return (*names, *([extended] if extended else ())), tuple(missing)


def made_claims(pod: Manifest) -> dict[str, str]:
    """Names of the claims that were made of a pod's templates, by the pod's name for them."""
    return {
        text(each.get("name")): text(each.get("resourceClaimName"))
        for each in mappings(mapping(pod.get("status")).get("resourceClaimStatuses"))
    }


def requests_of(claim: Manifest) -> dict[str, str]:
    """The class of each request, by `request` or `request/alternative`."""
    found = {}
    for request in mappings(mapping(mapping(claim.get("spec")).get("devices")).get("requests")):
        name = text(request.get("name"))
        exactly = mapping(request.get("exactly"))
        if exactly:
            found[name] = text(exactly.get("deviceClassName"))
        for alternative in mappings(request.get("firstAvailable")):
            found[f"{name}/{text(alternative.get('name'))}"] = text(alternative.get("deviceClassName"))
    return found


def reasons_of(pods: Iterable[Manifest], events: Sequence[Manifest]) -> tuple[str, ...]:
    """The scheduler's words on a pod that waits, else the last warning about one that does not run."""
    found = []
    for pod in pods:
        if not PodRecord.of(pod).waits:
            continue
        status = mapping(pod.get("status"))
        refused = [
            text(each.get("message"))
            for each in mappings(status.get("conditions"))
            if each.get("type") == "PodScheduled" and each.get("status") == "False"
        ]
        found += [f"Pod {name_of(pod)}: {said}" for said in refused if said] or _warnings(pod, events)
    return tuple(dict.fromkeys(found))


def warning_about(pod: Manifest, events: Sequence[Manifest]) -> Manifest | None:
    """Return the last event about a pod that has a message; None where there is none."""
    about = [
        each
        for each in events
        if text(mapping(each.get("involvedObject")).get("uid")) == uid_of(pod) and text(each.get("message"))
    ]
    return max(
        about, key=lambda each: text(each.get("lastTimestamp")) or text(each.get("eventTime")), default=None
    )


def _warnings(pod: Manifest, events: Sequence[Manifest]) -> list[str]:
    last = warning_about(pod, events)
    if last is None:
        return []
    return [f"Pod {name_of(pod)}: {text(last.get('reason'))}: {text(last.get('message'))}"]


def name_pod(pod: Manifest) -> str:
    """A pod, what it does, and where."""
    return f"Pod {full_name(pod)} ({PodRecord.of(pod).state})"
