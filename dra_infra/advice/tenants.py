"""Advice on namespaces with a quota of devices: what keeps their pods from taking devices without a claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dra_infra.errors import Problem
from dra_infra.kubernetes.api import ObjectRef, mapping, value_at
from dra_infra.kubernetes.api.pod_security import ENFORCE, enforced_level
from dra_infra.kubernetes.apiserver import QuotaKey


def advise_tenants(
    objects: Sequence[Mapping[str, Any]], beside: Iterable[Mapping[str, Any]] = ()
) -> Iterator[tuple[int, Problem]]:
    """Find namespaces that limit devices and let privileged pods in: `quota-without-pod-security`.

    Args:
        objects: Manifests as plain data.
        beside: Namespaces and quotas that exist beside them. A namespace that is in neither is not known, and nothing is said.

    Returns:
        Pairs of an object's position and a warning: at the Namespace, or at the quota where only that is among *objects*.
    """
    everything = [*beside, *objects]
    quotas = [each for each in everything if _is(each, "ResourceQuota")]
    limited = {ObjectRef.of(each).stored.namespace: each for each in quotas if _limits_devices(each)}
    if not limited:
        return
    labels = {
        ObjectRef.of(each).name: mapping(value_at(each, "metadata", "labels"))
        for each in everything
        if _is(each, "Namespace")
    }
    own = {ObjectRef.of(each).name for each in objects if _is(each, "Namespace")}
    told: set[str] = set()
    for index, each in enumerate(objects):
        ref = ObjectRef.of(each).stored
        if _is(each, "Namespace"):
            namespace = ref.name
            path = "metadata.labels"
        elif _limits_devices(each) and ref.namespace not in own:
            namespace = ref.namespace
            path = "metadata.namespace"
        else:
            continue
        known = labels.get(namespace)
        if namespace in told or namespace not in limited or known is None:
            continue
        if enforced_level(known) == "privileged":
            told.add(namespace)
            yield index, _warning(path, namespace, limited[namespace], known)


def _warning(path: str, namespace: str, quota: Mapping[str, Any], labels: Mapping[str, Any]) -> Problem:
    is_written = f"has {ENFORCE}: privileged" if ENFORCE in labels else f"lacks the label {ENFORCE}"
    return Problem(
        path=path,
        code="quota-without-pod-security",
        message=f"namespace {namespace} {is_written}: a privileged or hostPath pod takes every device of its node without a "
        f"claim, whatever ResourceQuota {value_at(quota, 'metadata', 'name')} allows",
        hint=f"label the namespace with {ENFORCE}: baseline, even where the API server is configured so",
        severity="warning",
    )


def _limits_devices(manifest: Mapping[str, Any]) -> bool:
    """A quota has a key for devices of a class, or for an extended resource."""
    hard = mapping(value_at(manifest, "spec", "hard")) if _is(manifest, "ResourceQuota") else {}
    return any(QuotaKey(key).counts_devices for key in hard)


def _is(manifest: Mapping[str, Any], kind: str) -> bool:
    return (manifest.get("apiVersion"), manifest.get("kind")) == ("v1", kind)
