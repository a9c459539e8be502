"""Dangers of quotas that a change exceeds: claims beyond them are refused, and their pods wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.kubernetes.api.workload_kinds import PodTemplate
from dra_infra.kubernetes.apiserver.admission import (
    CLAIMS_KEY,
    Use,
    count_claim,
    counts_claims,
    describe_refusal,
    is_extended_key,
    read_hard,
)
from dra_infra.kubernetes.scheduler.extended_resources import GATE
from dra_infra.kubernetes.scheduler.pod_resources import pod_requests
from dra_infra.output.wording import join_words
from dra_infra.placement.placement import Placement
from dra_infra.program_objects import NotSeen, get_field
from dra_infra.review.comparison import Comparison, ProgramIndex
from dra_infra.review.dangers import Danger
from dra_infra.review.rollout import count_surge
from dra_infra.review.running import Key, key_of, name_extended


class _Passed(NamedTuple):
    """How a key of a quota is passed; keys that count the same devices are passed alike.

    Args:
        limit: What the quota allows.
        was: What it allowed before, where that was more.
        own: What the program needs.
        foreign: What others use.
        holders: What needs it, with how much, the most first: the program's own before what runs of others.
        rolling: Objects that need it only while they roll over.
    """

    limit: int
    was: int | None
    own: int
    foreign: int
    holders: tuple[tuple[ObjectRef, int], ...] = ()
    rolling: tuple[ObjectRef, ...] = ()


def find_passed_quotas(compared: Comparison) -> Iterator[Danger]:
    """`quota-passed`, for good or while pods roll over: once for each quota and the keys of it that are passed alike."""
    quotas = _find_quotas(compared)
    if not quotas:
        return
    bridged = compared.head.release.enabled(GATE)
    snapshot = compared.running.snapshot
    placement = compared.head_placement
    shipped = (
        *(snapshot.fleet.classes if snapshot else ()),
        *(placement.fleet.classes if placement else ()),
    )
    extended = name_extended(compared.head, shipped)
    counted = QuotaUse(extended=extended, bridged=bridged, running=compared.running.objects)
    before = _add_up(counted.by_object(compared.base_index, _count_daemons(compared.base_placement)))
    by_object = counted.by_object(compared.head_index, _count_daemons(compared.head_placement))
    after = _add_up(by_object)
    charges = compared.running.find_charges()
    others = charges.by_namespace
    rolling = _count_rolling(compared, counted)
    for ref, (old, new) in sorted(quotas.items()):
        where = ref.namespace or "default"
        foreign, own = others.get(where, Counter()), after.get(where, Counter())
        sides = before.get(where, Counter()), own
        passed: dict[_Passed, list[str]] = {}
        for key, limit in sorted(new.items()):
            if not counts_claims(key):
                continue
            use, was = own[key], sides[0][key]
            rolls = {
                owner: each[key] for owner, each in rolling.items() if _in(owner, where) and each.get(key)
            }
            before_it = old[key] if limit < old.get(key, limit) else None
            if use + foreign[key] > limit and (use > was or before_it is not None):
                holders = [
                    (owner, each[key]) for owner, each in by_object.items() if _in(owner, where) and each[key]
                ]
                holders.sort(key=lambda held: (-held[1], held[0]))
                holders += charges.holders(where, key)
                found = _Passed(limit, before_it, use, foreign[key], tuple(holders))
            elif use + foreign[key] + sum(rolls.values()) > limit >= use + foreign[key]:
                peak = use + sum(rolls.values())
                found = _Passed(limit, None, peak, foreign[key], rolling=tuple(sorted(rolls)))
            else:
                continue
            passed.setdefault(found, []).append(key)
        answer = _find_answer(compared, counted, ref, new, sides, foreign)
        for found, keys in passed.items():
            yield _describe(ref, keys, found, answer)


def find_uncounted(compared: Comparison) -> Iterator[NotSeen]:
    """Pods that quotas may bound and that are not counted: those of DaemonSets, whose number is that of nodes."""
    kinds = {ref.kind for ref in compared.head_index.objects} | {key[0] for key in compared.running.objects}
    counted = _count_daemons(compared.head_placement)
    for pods in compared.head_index.pods.values() if "ResourceQuota" in kinds else ():
        if pods.replicas is None and pods.claims and pods.owner not in counted:
            reason = "on how many nodes it runs is not known without a fleet"
            yield NotSeen(what="quota for", name=str(pods.owner), reason=reason)


def _describe(quota: ObjectRef, keys: Sequence[str], passed: _Passed, answer: str) -> Danger:
    meanwhile = ""
    if passed.rolling:
        meanwhile = (
            f" while {join_words(passed.rolling)} {'rolls' if len(passed.rolling) == 1 else 'roll'} over"
        )
    of_keys = f"{join_words(keys)} {'is' if len(keys) == 1 else 'are'} {passed.limit:,}"
    needed = f"and the program needs {passed.own:,}" + (
        f" beside {passed.foreign:,} of others" if passed.foreign else ""
    )
    enough = f"{passed.own + passed.foreign:,}"
    raised = join_words([f'hard["{key}"]' for key in keys])
    if passed.was is not None:
        held = join_words([f"{owner} ({use:,})" for owner, use in passed.holders])
        return Danger(
            who=quota,
            code="quota-passed",
            message=f"is lowered from {passed.was:,} below what is needed: {of_keys}, {needed}"
            + (f": {held}" if held else ""),
            hint=f"leave {raised} at {enough} or more, or lower what is needed first: what runs stays, and what is made "
            "again is refused until the rest fits",
        )
    return Danger(
        who=quota,
        code="quota-passed",
        message=f"is passed{meanwhile}: {of_keys}, {needed}",
        hint=f"raise {raised} to {enough}, or ask for less: "
        + (answer if answer and not meanwhile else "what passes it is refused, and its pods wait"),
    )


def _find_answer(
    compared: Comparison,
    counted: QuotaUse,
    quota: ObjectRef,
    limits: Mapping[str, int],
    sides: tuple[Use, Use],
    foreign: Use,
) -> str:
    """The server's answer to a claim by which the use of a quota grows; empty where it depends on the order of what is new.

    Of claims that ask for the same it does not, but for the name of the one that is refused.
    """
    before, after = sides
    new = [
        each.object
        for each in compared.changes
        if each.action == "created"
        and each.ref.kind == "ResourceClaim"
        and _in(each.ref, quota.namespace or "default")
    ]
    asked = [counted.of_claim(each.manifest.get("spec")) for each in new]
    if not new or asked.count(asked[0]) < len(new) or any(each.ref == quota for each in compared.changes):
        return ""
    if any(after[key] - before[key] != amount * len(new) for key, amount in asked[0].items()):
        return ""
    used = before + foreign
    for number, requested in enumerate(asked, 1):
        if refusal := describe_refusal(quota.name, limits, requested, used):
            names = join_words((str(each.ref) for each in new), most=4)
            which = names if len(new) == 1 else f"number {number} of {names} to come"
            return f"the API server answers {which} with: {refusal}"
        used += requested
    return ""


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


def _count_daemons(placement: Placement | None) -> Mapping[ObjectRef, int]:
    workloads = placement.workloads if placement else ()
    return {each.owner: each.replicas for each in workloads if each.owner.kind == "DaemonSet"}


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
        running: Objects of the cluster, whose claim templates pods may name too.
    """

    extended: Mapping[str, str] = field(default_factory=dict)
    bridged: bool = True
    running: Mapping[Key, Mapping[str, Any]] = field(default_factory=dict, repr=False)

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
            if entry.template_name:
                own = templates.objects.get(ref)
                template = own.manifest if own else self.running.get(key_of(ref))
                use += (
                    self.of_claim(get_field(template, "spec.spec")) if template else Counter({CLAIMS_KEY: 1})
                )
        return use + self.of_requests(pods)

    def of_requests(self, pods: PodTemplate) -> Use:
        """The use of quota by the extended resources that one pod asks for."""
        use: Use = Counter()
        try:
            requests = pod_requests(pods.spec)
        except ValueError:
            return use
        for name, amount in requests.items():
            if is_extended_key(name):
                use[f"requests.{name}"] += amount
        return use

    def by_object(self, program: ProgramIndex, daemons: Mapping[ObjectRef, int]) -> dict[ObjectRef, Use]:
        """The use of quota by each claim, and by the pods of each object.

        Args:
            program: The objects.
            daemons: Pods of DaemonSets, as far as their number is known; others count for none.
        """
        found: dict[ObjectRef, Use] = {
            ref: self.of_claim(item.manifest.get("spec"))
            for ref, item in program.objects.items()
            if ref.kind == "ResourceClaim"
        }
        for owner, pods in program.pods.items():
            # A PodTemplate makes no pods by itself.
            if owner.kind != "PodTemplate":
                number = daemons.get(owner, 0) if pods.replicas is None else pods.replicas
                one = self.of_pod(pods, program) if number > 0 else Counter()
                found[owner] = Counter({key: each * number for key, each in one.items()})
        return found


def _add_up(by_object: Mapping[ObjectRef, Use]) -> dict[str, Use]:
    """The use of quota by namespace."""
    total: defaultdict[str, Use] = defaultdict(Counter)
    for owner, use in by_object.items():
        total[owner.namespace or "default"] += use
    return dict(total)
