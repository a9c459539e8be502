"""Keys of ResourceQuotas under which only one of two releases counts claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dra_infra.kubernetes.api import DeviceClass, Release, mapping, value_at
from dra_infra.kubernetes.apiserver import QuotaKey, counts_by_extended_resource
from dra_infra.upgrades.differences import Difference
from dra_infra.upgrades.objects import ComparedObject


def compare_quotas(
    items: Iterable[ComparedObject],
    classes: Iterable[DeviceClass],
    before: Release,
    after: Release,
) -> Iterator[Difference]:
    """Yield keys that count claims on one release only. Code: `upgrade-quota`.

    From 1.35 on, with the gate DRAExtendedResource, claims count under the keys of extended resources of their classes too.
    Source: pkg/quota/v1/evaluator/core/resource_claims.go of 1.34.10, 1.35.8, 1.36.4 and 1.37.1.

    Args:
        items: Objects, of which ResourceQuotas and DeviceClasses count.
        classes: DeviceClasses of the cluster.
        before: The older release.
        after: The newer release.
    """
    counts = [counts_by_extended_resource(release) for release in (before, after)]
    if counts[0] == counts[1]:
        return
    objects = list(items)
    keys = dict(_list_keys(objects, classes))
    for item in objects:
        if item.ref.kind != "ResourceQuota":
            continue
        for key in sorted(mapping(value_at(item.manifest, "spec", "hard"))):
            if key in keys:
                yield Difference(
                    level="changes",
                    area="quotas",
                    code="upgrade-quota",
                    subject=item.ref,
                    place=item.place,
                    path=f"spec.hard[{key}]",
                    message=f"claims of DeviceClass {keys[key]} count under this key on one release only",
                    before=_describe(is_counted=counts[0]),
                    after=_describe(is_counted=counts[1]),
                    hint="raise the limit before the upgrade by what claims of the namespace take",
                )


def _list_keys(items: Iterable[ComparedObject], classes: Iterable[DeviceClass]) -> Iterator[tuple[str, str]]:
    specs: list[tuple[str, Mapping[str, Any]]] = [
        (each.metadata.name or "", each.spec.to_manifest()) for each in classes
    ]
    specs += [
        (item.ref.name, mapping(item.manifest.get("spec")))
        for item in items
        if item.ref.kind == "DeviceClass"
    ]
    for name, spec in specs:
        resource = spec.get("extendedResourceName")
        for key in QuotaKey.list_of_class(name, str(resource) if resource else None)[1:]:
            yield key, name


def _describe(*, is_counted: bool) -> str:
    return "pods and claims count" if is_counted else "pods count, claims do not"
