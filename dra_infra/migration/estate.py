"""All that is migrated together: objects of folders, charts or a cluster, each with what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dra_infra.kubernetes.api import WorkloadKinds, show_steps
from dra_infra.migration.accounts import Limits, limits_together, migrate_account
from dra_infra.migration.chart_values import find_elsewhere, find_values, migrate_values
from dra_infra.migration.claim_templates import ClaimTemplates
from dra_infra.migration.controllers import read_controllers
from dra_infra.migration.kserve import find_default_mode
from dra_infra.migration.kueue import find_mapped_classes
from dra_infra.migration.mentions import find_mentions
from dra_infra.migration.needs import Settings, containers_of
from dra_infra.migration.old_dra.conversion import migrate_old_dra
from dra_infra.migration.outcomes import Migrated, Remark
from dra_infra.migration.workloads import (
    find_kind,
    migrate_workload,
    model_of,
    more_kinds,
    tell_why,
)


def migrated_kinds(kinds: WorkloadKinds) -> frozenset[tuple[str, str]]:
    """Group and name of each kind that servers of today have and a migration reads; ConfigMaps may hold anything, and are none."""
    claims = (("resource.k8s.io", each) for each in ("DeviceClass", "ResourceClaim", "ResourceClaimTemplate"))
    queues = ("kueue.x-k8s.io", "ClusterQueue"), ("kueue.x-k8s.io", "Cohort")
    accounts = ("", "ResourceQuota"), ("", "LimitRange"), ("autoscaling", "HorizontalPodAutoscaler"), *queues
    nobodys = ("kueue.x-k8s.io", "Workload"), ("", "PodTemplate")
    return frozenset({*kinds.kinds, *more_kinds().kinds, *claims, *accounts}).difference(nobodys)


def migrate_objects(objects: Sequence[Mapping[str, Any]], settings: Settings) -> list[Migrated]:
    """Migrates objects to claims of resource.k8s.io/v1; the result has one for each of them, in their order.

    Old DRA comes first, so that a pod has its claims in the form of today before those of device plugins join them.

    An object with nothing to migrate has no remarks, and its manifest is the very one that was given.

    Args:
        objects: Manifests as plain data. They are not changed.
        settings: What is known of the cluster.
    """
    settings = replace(
        settings,
        controllers=read_controllers(objects),
        serving_mode=find_default_mode(objects),
        mapped_classes=find_mapped_classes(objects),
    )
    old = migrate_old_dra(objects, settings.kinds)
    first = [old.get(index, Migrated(manifest=each)) for index, each in enumerate(objects)]
    templates = ClaimTemplates(
        [each for done in first for each in (done.manifest, *done.added) if each is not None], settings.kinds
    )
    limits = limits_together(objects, settings)
    return [_go_on(done, settings, templates, each) for done, each in zip(first, limits, strict=True)]


def _go_on(
    done: Migrated, settings: Settings, templates: ClaimTemplates, together: Limits | None
) -> Migrated:
    """Migrates what became of an object of old DRA, or the object itself where it is none."""
    # What stays together with old claims gets no new ones.
    if done.manifest is None or any(each.code == "kept-together" for each in done.remarks):
        return done
    values = migrate_values(done.manifest, settings)
    found = (
        values
        or migrate_workload(done.manifest, settings, templates)
        or migrate_account(done.manifest, settings, together)
        or Migrated(manifest=done.manifest)
    )
    now = found.manifest or done.manifest
    told = [each for each in done.remarks if each.code == "selector-not-rewritten"]
    # A request of v1beta1 had its selectors on itself.
    told += [each._replace(path=each.path.replace("].selectors[", "].exactly.selectors[")) for each in told]
    read = _read_fields(now, (*found.remarks, *told), settings)
    values_left = list(find_elsewhere(now, settings, read)) if _may_ask(now) else []
    read |= {path for path, _ in values_left}
    mentions = find_mentions(now, read) if _may_ask(now) else ()
    unread = (tell_why(now, each, settings.kinds) for each in mentions)
    return Migrated(
        manifest=now,
        remarks=(*done.remarks, *found.remarks, *(remark for _, remark in values_left), *unread),
        added=(*done.added, *found.added),
    )


def _read_fields(manifest: Mapping[str, Any], remarks: Sequence[Remark], settings: Settings) -> set[str]:
    """Paths of what the migration has read: resources of containers in pod specs, and fields on which it remarks.

    A remark on a container as a whole is one on its devices: its variables and arguments were not read for resources.
    """
    kind = find_kind(manifest, settings.kinds)
    containers = {
        f"{path}.{at}"
        for path, spec in (kind.find_holders(manifest) if kind else ())
        if isinstance(spec, Mapping)
        for at in (*dict(containers_of(spec)), *filter(None, [model_of(kind, spec) if kind else ""]))
    }
    # What a ClusterQueue covers, its flavours have quotas for.
    told = {each.path.partition(".coveredResources[")[0] for each in remarks}
    told |= set(map(show_steps, find_values(manifest)))
    return {f"{each}.resources" for each in containers} | told - {"", *containers}


def _may_ask(manifest: Mapping[str, Any]) -> bool:
    """False for objects that name resources without asking for them, such as nodes, and for values, which are searched where they are read."""
    describes = ("Node", "ResourceSlice", "CustomResourceDefinition", "DeviceClass", "ResourceFlavor")
    return manifest.get("kind") not in (None, "", *describes)
