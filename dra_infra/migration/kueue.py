"""What Kueue does with workloads whose pods have claims, which its configuration and its queues decide, often of another team.

Source: pkg/dra/claims.go, pkg/features/kube_features.go and site/content/en/docs/concepts/dynamic_resource_allocation.md of
kubernetes-sigs/kueue at ff69552e, behind 0.19.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from dra_infra.catalog.workload_kinds import QUEUE_LABEL
from dra_infra.kubernetes.api import find_all, group_of, mapping, mappings, show_steps, value_at
from dra_infra.migration.chart_releases import read_text
from dra_infra.migration.outcomes import Remark
from dra_infra.output.wording import join_words

_CODE: Final = "controller-setting-needed"
_TOPOLOGY: Final = "kueue.x-k8s.io/podset-"
_GROUP: Final = "config.kueue.x-k8s.io"
_CLASSES: Final = ("resources", "deviceClassMappings", "*", "deviceClassNames", "*")


def find_mapped_classes(objects: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the classes that configurations of Kueue among objects map to names of resources."""
    found: set[str] = set()
    for manifest in objects:
        data = mapping(manifest.get("data")) if manifest.get("kind") == "ConfigMap" else {}
        texts = [each for each in data.values() if isinstance(each, str) and _GROUP in each]
        for config in (manifest, *filter(None, map(read_text, texts))):
            if group_of(config) == _GROUP:
                found |= {str(name) for _, name in find_all(config, _CLASSES) if name}
    return frozenset(found)


def _find_classes(added: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Return the classes that new claim templates name."""
    requests = (
        request
        for each in added
        for request in mappings(value_at(each, "spec", "spec", "devices", "requests"))
    )
    return frozenset(str(value_at(each, "exactly", "deviceClassName")) for each in requests)


def find_queue_needs(
    manifest: Mapping[str, Any],
    added: Iterable[Mapping[str, Any]],
    pods: Iterable[tuple[str | int, ...]],
    mapped: frozenset[str],
) -> Iterator[Remark]:
    """Yield what Kueue needs, or does not do, for an object that waits in a queue and whose pods got claims.

    Args:
        manifest: The object.
        added: Its new claim templates.
        pods: The paths of its pod templates.
        mapped: Classes that Kueue's configuration in the input maps.
    """
    holders = [("metadata",), *((*steps, "metadata") for steps in pods)]
    queue = next((each for each in holders if value_at(manifest, *each, "labels", QUEUE_LABEL)), None)
    if queue and (missing := sorted(_find_classes(added) - mapped)):
        names = join_words(missing)
        message = f"Kueue from 0.18 on admits no workload with claims of a class that its configuration does not map, here {names}: it waits suspended"
        hint = f"have {names} in resources.deviceClassMappings of Kueue's configuration, and that name in the ClusterQueue of this queue"
        yield Remark(f"{show_steps(queue)}.labels[{QUEUE_LABEL}]", "lost", _CODE, message, hint)
    for holder in holders:
        for name in mapping(value_at(manifest, *holder, "annotations")):
            if str(name).startswith(_TOPOLOGY) and str(name).endswith("-topology"):
                message = "Kueue does not count devices of claims where it chooses nodes by topology, so that pods may wait on nodes without free devices"
                hint = "leave the annotation out, or keep these pods on the device plugin"
                yield Remark(f"{show_steps(holder)}.annotations[{name}]", "lost", _CODE, message, hint)
