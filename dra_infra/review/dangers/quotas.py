"""Dangers of quotas that a change exceeds: claims beyond them are refused, and their pods wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef, PodTemplate
from dra_infra.kubernetes.apiserver import (
    Charges,
    QuotaKey,
    Use,
    count_claim,
    count_extended_claim,
    count_pod,
    counts_by_extended_resource,
    describe_refusal,
    read_hard,
)
from dra_infra.kubernetes.scheduler import pod_requests
from dra_infra.output.wording import join_words
from dra_infra.placement.demand import ExtendedClaim
from dra_infra.placement.objects import ProgramObjects
from dra_infra.placement.placement import Placement
from dra_infra.placement.question import PlacementQuestion
from dra_infra.placement.running import name_extended
from dra_infra.program_objects import NotSeen, get_field
from dra_infra.review.comparison import Comparison, ProgramIndex
from dra_infra.review.dangers import Danger
from dra_infra.review.rollout import count_surge
from dra_infra.specs.compute_domains import channel_template


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
    placement = compared.head_placement
    count = _Counter(compared)
    before = _count_program(compared, compared.base_index, compared.base_placement, count).by_namespace
    own = _count_program(compared, compared.head_index, placement, count)
    after = own.by_namespace
    others = compared.running.find_charges()
    foreign = others.by_namespace
    rolling = _count_rolling(compared, count)
    for ref, (old, new) in sorted(quotas.items()):
        where = ref.namespace or "default"
        was, use, beside = (each.get(where, Counter()) for each in (before, after, foreign))
        passed: dict[_Passed, list[str]] = {}
        for key, limit in sorted(new.items()):
            if not QuotaKey(key).counts_claims:
                continue
            needed = use[key] + beside[key]
            rolls = dict(rolling.holders(where, key))
            before_it = old[key] if limit < old.get(key, limit) else None
            if needed > limit and (use[key] > was[key] or before_it is not None):
                holders = (*own.holders(where, key), *others.holders(where, key))
                how = _Passed(limit, before_it, use[key], beside[key], holders)
            elif needed + sum(rolls.values()) > limit >= needed:
                peak = use[key] + sum(rolls.values())
                how = _Passed(limit, None, peak, beside[key], rolling=tuple(sorted(rolls)))
            else:
                continue
            passed.setdefault(how, []).append(key)
        answer = _find_answer(compared, count, ref, new, (was, use), beside)
        for how, keys in passed.items():
            yield _describe(ref, keys, how, answer)


class _Counter:
    """Counts what claims and pods use of quotas, by the classes and the release of the head.

    Args:
        compared: Both sides.
    """

    def __init__(self, compared: Comparison) -> None:
        head, snapshot, placement = compared.head, compared.running.snapshot, compared.head_placement
        shipped = (
            *(snapshot.fleet.classes if snapshot else ()),
            *(placement.fleet.classes if placement else ()),
        )
        classes = {each.metadata.name: each for each in (*shipped, *head.stand_in_classes)}
        self._extended = name_extended(head, shipped)
        self._objects = ProgramObjects(
            PlacementQuestion(
                manifests=[each.manifest for each in head.objects],
                fleet=Fleet(name="", classes=tuple(classes.values())),
                release=head.release,
                kinds=compared.kinds,
            )
        )

    def count_claim(self, spec: Any) -> Use:
        """Count what one claim uses."""
        return count_claim(spec, self._extended, bridged=counts_by_extended_resource(self._objects.release))

    def count_pod(self, pods: PodTemplate) -> Use:
        """Count what one pod uses, with the claim that the scheduler makes for its extended resources."""
        try:
            requests = pod_requests(pods.spec)
        except ValueError:
            return Counter()
        use = count_pod(requests)
        demand = self._objects.served.find(pods.spec, requests)
        if demand is None:
            return use
        namespace, classes = pods.owner.namespace, self._objects.classes
        spec = ExtendedClaim(demand, namespace, classes, has_claims=bool(pods.claims)).spec_for({})
        return use + count_extended_claim(spec, self._extended, use) if spec else use


def find_uncounted(compared: Comparison) -> Iterator[NotSeen]:
    """Pods that quotas may bound and that are not counted: those of DaemonSets, whose number is that of nodes."""
    kinds = {ref.kind for ref in compared.head_index.objects} | {ref.kind for ref in compared.running.objects}
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
    count: _Counter,
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
        and (each.ref.namespace or "default") == (quota.namespace or "default")
    ]
    requests = [count.count_claim(each.manifest.get("spec")) for each in new]
    if (
        not new
        or requests.count(requests[0]) < len(new)
        or any(each.ref == quota for each in compared.changes)
    ):
        return ""
    if any(after[key] - before[key] != amount * len(new) for key, amount in requests[0].items()):
        return ""
    used = before + foreign
    for number, requested in enumerate(requests, 1):
        if refusal := describe_refusal(quota.name, limits, requested, used):
            names = join_words((str(each.ref) for each in new), most=4)
            which = names if len(new) == 1 else f"number {number} of {names} to come"
            return f"the API server answers {which} with: {refusal}"
        used += requested
    return ""


def _find_quotas(compared: Comparison) -> dict[ObjectRef, tuple[dict[str, int], dict[str, int]]]:
    """Limits before and after: of the program, and of quotas that run and are in neither program."""
    quotas = {
        ref: (
            read_hard(old.manifest) if (old := compared.base_index.objects.get(ref)) else {},
            read_hard(item.manifest),
        )
        for ref, item in compared.head_index.objects.items()
        if ref.kind == "ResourceQuota"
    }
    for ref, quota in compared.running.objects.items():
        if ref.kind == "ResourceQuota" and ref not in compared.own:
            limits = read_hard(quota)
            quotas[ObjectRef.of(quota)] = limits, limits
    return quotas


def _count_daemons(placement: Placement | None) -> Mapping[ObjectRef, int]:
    workloads = placement.workloads if placement else ()
    return {each.owner: each.replicas for each in workloads if each.owner.kind == "DaemonSet"}


def _count_rolling(compared: Comparison, count: _Counter) -> Charges:
    """Count what pods and claims use of quotas that exist beside the old ones during a rollout."""
    templates = _find_templates(compared, compared.head_index)
    charges: dict[ObjectRef, Use] = {}
    for change in compared.changes:
        if change.urn in compared.rolling and change.ref.kind == "Deployment":
            pods = compared.head_index.pods[change.ref]
            surge = count_surge(change.object.manifest, pods.replicas)
            charges[change.ref] = _count_pods(pods, surge, templates, count)
        elif (
            change.ref.kind == "ResourceClaim"
            and change.order == "create-first"
            and change.before is not None
        ):
            charges[change.ref] = count.count_claim(change.before.manifest.get("spec"))
    return Charges(charges)


def _count_program(
    compared: Comparison, program: ProgramIndex, placement: Placement | None, count: _Counter
) -> Charges:
    """Count what each claim of a program uses of quotas, and what the pods of each object use.

    Args:
        compared: Both sides.
        program: The objects of one of them.
        placement: Where their pods go: it knows how many pods a DaemonSet has, which without it count for none.
        count: Counts claims and pods.
    """
    daemons = _count_daemons(placement)
    templates = _find_templates(compared, program)
    charges: dict[ObjectRef, Use] = {
        ref: count.count_claim(item.manifest.get("spec"))
        for ref, item in program.objects.items()
        if ref.kind == "ResourceClaim"
    }
    for owner, pods in program.pods.items():
        # A PodTemplate makes no pods by itself.
        if owner.kind != "PodTemplate":
            number = daemons.get(owner, 0) if pods.replicas is None else pods.replicas
            charges[owner] = _count_pods(pods, number, templates, count)
    return Charges(charges)


def _find_templates(compared: Comparison, program: ProgramIndex) -> dict[ObjectRef, Mapping[str, Any]]:
    """Return the claim templates that pods of a program may name: those that run, of its ComputeDomains, and its own."""
    templates = {
        ref: manifest
        for ref, manifest in compared.running.objects.items()
        if ref.kind == "ResourceClaimTemplate"
    }
    for ref, item in program.objects.items():
        made = channel_template(item.manifest) if ref.kind == "ComputeDomain" else None
        if made is not None:
            templates[ObjectRef.of(made).stored] = made
    templates |= {
        ref.stored: item.manifest
        for ref, item in program.objects.items()
        if ref.kind == "ResourceClaimTemplate"
    }
    return templates


def _count_pods(
    pods: PodTemplate,
    number: int,
    templates: Mapping[ObjectRef, Mapping[str, Any]],
    count: _Counter,
) -> Use:
    """Count what so many pods use of quotas, with the claims that are made for them."""
    use: Use = Counter()
    if number <= 0:
        return use
    for entry in pods.claims:
        if entry.template_name:
            ref = ObjectRef("ResourceClaimTemplate", str(entry.template_name), pods.owner.namespace)
            template = templates.get(ref.stored)
            use += (
                count.count_claim(get_field(template, "spec.spec"))
                if template
                else Counter({QuotaKey.CLAIMS: 1})
            )
    use += count.count_pod(pods)
    return Counter({key: each * number for key, each in use.items()})
