"""Dangers of quotas that a change exceeds: claims beyond them are refused, and their pods wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dra_infra.catalog.workload_kinds import find_pod_templates
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.workload_kinds import PodTemplate
from dra_infra.kubernetes.apiserver.admission import CLAIMS_KEY, Use, count_claim, is_extended_key, read_hard
from dra_infra.kubernetes.scheduler.extended_resources import GATE
from dra_infra.kubernetes.scheduler.pod_resources import pod_requests
from dra_infra.output.wording import join_words
from dra_infra.placement.placement import Placement
from dra_infra.program_objects import NotSeen, get_field
from dra_infra.review.comparison import Comparison, ProgramIndex
from dra_infra.review.dangers import Danger
from dra_infra.review.rollout import count_surge


def find_passed_quotas(compared: Comparison) -> Iterator[Danger]:
    """`quota-passed`, once for each quota and key, for good or while pods roll over."""
    quotas = _find_quotas(compared)
    if not quotas:
        return
    bridged = compared.head.release.enabled(GATE)
    counted = QuotaUse(extended=_find_extended_names(compared), bridged=bridged)
    before, after = (
        counted.of_program(use, _count_daemons(placement))
        for use, placement in (
            (compared.base_index, compared.base_placement),
            (compared.head_index, compared.head_placement),
        )
    )
    others = _count_others(compared, counted)
    rolling = _count_rolling(compared, counted)
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


def find_uncounted(compared: Comparison) -> Iterator[NotSeen]:
    """Pods that quotas may bound and that are not counted: those of DaemonSets, whose number is that of nodes."""
    kinds = {ref.kind for ref in compared.head_index.objects} | {key[0] for key in compared.running.objects}
    counted = _count_daemons(compared.head_placement)
    for pods in compared.head_index.pods.values() if "ResourceQuota" in kinds else ():
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


def _find_quotas(compared: Comparison) -> dict[ObjectRef, tuple[dict[str, int], dict[str, int]]]:
    """Limits before and after: of the program, and of quotas that run and are in neither program."""
    found = {
        ref: (
            read_hard(old.manifest) if (old := compared.base_index.objects.get(ref)) else {},
            read_hard(item.manifest),
        )
        for ref, item in compared.head_index.objects.items()
        if ref.kind == "ResourceQuota"
    }
    for key, quota in compared.running.objects.items():
        if key[0] == "ResourceQuota" and key not in compared.own:
            namespace = str(get_field(quota, "metadata.namespace") or "")
            limits = read_hard(quota)
            found[ObjectRef(kind="ResourceQuota", name=key[2], namespace=namespace)] = limits, limits
    return found


def _find_extended_names(compared: Comparison) -> dict[str, str]:
    classes: dict[str, Any] = {}
    snapshot, placement = compared.running.snapshot, compared.head_placement
    for class_ in (
        *compared.head.stand_in_classes,
        *(snapshot.fleet.classes if snapshot else ()),
        *(placement.fleet.classes if placement else ()),
    ):
        classes[class_.metadata.name] = class_.spec.extended_resource_name
    for ref, item in compared.head_index.objects.items():
        if ref.kind == "DeviceClass":
            classes[ref.name] = get_field(item.manifest, "spec.extendedResourceName")
    return {name: extended for name, extended in classes.items() if isinstance(extended, str)}


def _count_daemons(placement: Placement | None) -> Mapping[ObjectRef, int]:
    workloads = placement.workloads if placement else ()
    return {each.owner: each.replicas for each in workloads if each.owner.kind == "DaemonSet"}


def _count_others(compared: Comparison, counted: QuotaUse) -> dict[str, Use]:
    """The use of quota by running objects that are not the program's own, by namespace."""
    running = compared.running
    use: dict[str, Use] = {}
    for key, manifest in running.objects.items():
        if key[0] not in ("ResourceClaim", "Pod") or not compared.own.isdisjoint(running.owners_of(key)):
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


_NO_TEMPLATES = ProgramIndex(objects={}, pods={}, needs={}, users={})


def _count_rolling(compared: Comparison, counted: QuotaUse) -> dict[ObjectRef, Use]:
    """The use of quota by pods and claims that exist beside the old ones during a rollout."""
    found: dict[ObjectRef, Use] = {}
    for change in compared.changes:
        if change.urn in compared.rolling and change.ref.kind == "Deployment":
            pods = compared.head_index.pods[change.ref]
            surge = count_surge(change.object.manifest, pods.replicas)
            one = counted.of_pod(pods, compared.head_index)
            found[change.ref] = Counter({key: each * surge for key, each in one.items()})
        elif (
            change.ref.kind == "ResourceClaim"
            and change.order == "create-first"
            and change.before is not None
        ):
            found[change.ref] = counted.of_claim(change.before.manifest.get("spec"))
    return found


@dataclass(frozen=True, kw_only=True, slots=True)
class QuotaUse:
    """Counts claims and pods.

    Args:
        extended: The extended resource name of each class that has one.
        bridged: Whether devices of claims count for extended resources too (gate DRAExtendedResource).
    """

    extended: Mapping[str, str] = field(default_factory=dict)
    bridged: bool = True

    def of_claim(self, spec: Any) -> Use:
        """The use of quota by one claim."""
        return count_claim(spec, self.extended, bridged=self.bridged)

    def of_pod(self, pods: PodTemplate, templates: ProgramIndex) -> Use:
        """The use of quota by one pod: claims that are made for it, and extended resources that it asks for."""
        use: Use = Counter()
        for entry in pods.claims:
            ref = ObjectRef(
                kind="ResourceClaimTemplate", name=str(entry.template_name), namespace=pods.owner.namespace
            )
            template = templates.objects.get(ref) if entry.template_name else None
            if entry.template_name:
                use += (
                    self.of_claim(get_field(template.manifest, "spec.spec"))
                    if template
                    else Counter({CLAIMS_KEY: 1})
                )
        try:
            requests = pod_requests(pods.spec)
        except ValueError:
            requests = {}
        for name, amount in requests.items():
            if is_extended_key(name):
                use[f"requests.{name}"] += amount
        return use

    def of_program(self, program: ProgramIndex, daemons: Mapping[ObjectRef, int]) -> dict[str, Use]:
        """The use of quota by all claims and pods, by namespace.

        Args:
            program: The objects.
            daemons: Pods of DaemonSets, as far as their number is known; others count for none.
        """
        total: defaultdict[str, Use] = defaultdict(Counter)
        for ref, item in program.objects.items():
            if ref.kind == "ResourceClaim":
                total[ref.namespace or "default"] += self.of_claim(item.manifest.get("spec"))
        for owner, pods in program.pods.items():
            # A PodTemplate makes no pods by itself.
            if owner.kind != "PodTemplate":
                number = daemons.get(owner, 0) if pods.replicas is None else pods.replicas
                one = self.of_pod(pods, program) if number > 0 else Counter()
                total[owner.namespace or "default"] += Counter(
                    {key: each * number for key, each in one.items()}
                )
        return dict(total)
