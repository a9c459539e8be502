"""Dangers of quotas that a change exceeds: claims beyond them are refused, and their pods wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from dra_infra.catalog.snapshots import Snapshot
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.pods import find_pod_templates
from dra_infra.output.wording import join_words
from dra_infra.placement.placement import Placement
from dra_infra.program_objects import NotSeen, Program, get_field
from dra_infra.review.claim_use import ClaimUse, QuotaUse, Use, read_hard
from dra_infra.review.dangers.sides import Danger, Sides
from dra_infra.review.rollout import count_surge
from dra_infra.review.running import key_of
from dra_infra.target import ClusterTarget, check_target

_GATE = "DRAExtendedResource"


def find_passed_quotas(sides: Sides) -> Iterator[Danger]:
    """`quota-passed`, once for each quota and key, for good or while pods roll over."""
    quotas = _find_quotas(sides)
    if not quotas:
        return
    counted = QuotaUse(extended=_find_extended_names(sides), bridged=_is_bridged(sides.head))
    before, after = (
        counted.of_program(use, _count_daemons(placement))
        for use, placement in zip((sides.before, sides.after), sides.placements, strict=True)
    )
    others = _count_others(sides, counted)
    rolling = _count_rolling(sides, counted)
    for ref, (old, new) in sorted(quotas.items()):
        where = ref.namespace or "default"
        for key, limit in sorted(new.items()):
            foreign = others.get(where, Counter())[key]
            was, now = (side.get(where, Counter())[key] + foreign for side in (before, after))
            peak = now + sum(each.get(key, 0) for owner, each in rolling.items() if _in(owner, where))
            if now > limit and (now > was or limit < old.get(key, limit)):
                yield _describe(ref, key, limit, now - foreign, foreign)
            elif peak > limit >= now:
                owners = [owner for owner, each in rolling.items() if _in(owner, where) and each.get(key)]
                yield _describe(ref, key, limit, peak - foreign, foreign, owners)


def find_uncounted(
    head: Program, placement: Placement | None, snapshot: Snapshot | None
) -> Iterator[NotSeen]:
    """Pods that quotas may bound and that are not counted: those of DaemonSets, whose number is that of nodes."""
    bounded = any(each.ref.kind == "ResourceQuota" for each in head.objects) or any(
        each.get("kind") == "ResourceQuota" for each in (snapshot.objects if snapshot else ())
    )
    counted = _count_daemons(placement)
    for item in head.objects if bounded else ():
        for pods in find_pod_templates(item.manifest):
            if pods.replicas is None and pods.claims and pods.owner not in counted:
                reason = "on how many nodes it runs is not known without a fleet"
                yield NotSeen(what="quota for", name=str(pods.owner), reason=reason)


def _describe(
    quota: ObjectRef, key: str, limit: int, own: int, foreign: int, rolling: list[ObjectRef] | None = None
) -> Danger:
    beside = f" beside {foreign:,} of others" if foreign else ""
    meanwhile = (
        f" while {join_words(sorted(rolling))} {'rolls' if len(rolling) == 1 else 'roll'} over"
        if rolling
        else ""
    )
    return Danger(
        who=quota,
        code="quota-passed",
        message=f"is passed{meanwhile}: {key} is {limit:,}, and the program needs {own:,}{beside}",
        hint=f'raise hard["{key}"] to {own + foreign:,}, or ask for less: what passes it is refused, and its pods wait',
    )


def _in(owner: ObjectRef, namespace: str) -> bool:
    return (owner.namespace or "default") == namespace


def _find_quotas(sides: Sides) -> dict[ObjectRef, tuple[dict[str, int], dict[str, int]]]:
    """Limits before and after: of the program, and of quotas that run and are in neither program."""
    found = {
        ref: (
            read_hard(old.manifest) if (old := sides.before.objects.get(ref)) else {},
            read_hard(item.manifest),
        )
        for ref, item in sides.after.objects.items()
        if ref.kind == "ResourceQuota"
    }
    own = {key_of(ref) for ref in (*sides.before.objects, *found)}
    for quota in sides.running.of_kind("ResourceQuota"):
        ref = ObjectRef(
            kind="ResourceQuota",
            name=str(get_field(quota, "metadata.name")),
            namespace=str(get_field(quota, "metadata.namespace") or ""),
        )
        if key_of(ref) not in own:
            limits = read_hard(quota)
            found[ref] = limits, limits
    return found


def _find_extended_names(sides: Sides) -> dict[str, str]:
    classes: dict[str, Any] = {}
    fleet = sides.snapshot.fleet if sides.snapshot else None
    placement = sides.placements[1]
    for source in (fleet, placement.fleet if placement else None):
        for class_ in source.classes if source else ():
            classes[class_.metadata.name] = class_.spec.extended_resource_name
    for ref, item in sides.after.objects.items():
        if ref.kind == "DeviceClass":
            classes[ref.name] = get_field(item.manifest, "spec.extendedResourceName")
    return {name: extended for name, extended in classes.items() if isinstance(extended, str)}


def _is_bridged(head: Program) -> bool:
    target = ClusterTarget(kubernetes=head.kubernetes)
    return not check_target(target) and target.releases[-1].enabled(_GATE)


def _count_daemons(placement: Placement | None) -> Mapping[ObjectRef, int]:
    workloads = placement.workloads if placement else ()
    return {each.owner: each.replicas for each in workloads if each.owner.kind == "DaemonSet"}


def _count_others(sides: Sides, counted: QuotaUse) -> dict[str, Use]:
    """The use of quota by running objects that are not the program's own, by namespace."""
    running = sides.running
    own = {key_of(ref) for ref in (*sides.before.objects, *sides.after.objects)}
    use: dict[str, Use] = {}
    for key, manifest in running.objects.items():
        if key[0] not in ("ResourceClaim", "Pod") or not own.isdisjoint(running.owners_of(key)):
            continue
        total = use.setdefault(key[1], Counter())
        if key[0] == "ResourceClaim":
            total += counted.of_claim(manifest.get("spec"))
        elif get_field(manifest, "status.phase") not in ("Succeeded", "Failed"):
            for pods in find_pod_templates(manifest):
                # Claims of a pod that runs are objects of their own.
                one = counted.of_pod(pods, _NO_TEMPLATES)
                total += Counter(
                    {name: amount for name, amount in one.items() if name.startswith("requests.")}
                )
    return use


_NO_TEMPLATES = ClaimUse(objects={}, pods={}, users={})


def _count_rolling(sides: Sides, counted: QuotaUse) -> dict[ObjectRef, Use]:
    """The use of quota by pods and claims that exist beside the old ones during a rollout."""
    found: dict[ObjectRef, Use] = {}
    for change in sides.changes:
        if sides.rolls(change) and change.ref.kind == "Deployment":
            pods = sides.after.pods[change.ref]
            surge = count_surge(change.object.manifest, pods.replicas)
            one = counted.of_pod(pods, sides.after)
            found[change.ref] = Counter({key: each * surge for key, each in one.items()})
        elif (
            change.ref.kind == "ResourceClaim"
            and change.order == "create-first"
            and change.before is not None
        ):
            found[change.ref] = counted.of_claim(change.before.manifest.get("spec"))
    return found
