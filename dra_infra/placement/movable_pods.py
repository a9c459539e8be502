"""Running pods, and which of them may be moved so that others find room: whose they are, what they lose, and why some stay."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from dra_infra.kubernetes.api import (
    LabelSelector,
    ObjectRef,
    PodRecord,
    by_namespace,
    mapping,
    value_at,
)
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.running import Running

_OF_NODE: Final = frozenset({"DaemonSet", "Node"})
"""Controllers whose pods belong to their node: DaemonSets, and the kubelet's mirrors of static pods."""
_BACKOFF_LIMIT: Final = 6
"""`spec.backoffLimit` of a Job that names none: SetDefaults_Job in pkg/apis/batch/v1/defaults.go."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveRules:
    """Which pods may be moved, and what it costs.

    Args:
        bare_pods: Whether pods without a controller may be evicted, which nothing replaces.
        above_priority: Whether pods with a higher priority than the wanted pods may be moved.
        run_times: Hours of work that a pod loses when it starts anew, by `namespace/pod` or `namespace/kind/name` of its owner.
    """

    bare_pods: bool = False
    above_priority: bool = False
    run_times: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A PodDisruptionBudget.

    Args:
        ref: Its name.
        allowed: How many of its pods may be evicted at once.
        pods: The running pods that it guards.
    """

    ref: ObjectRef
    allowed: int
    pods: frozenset[ObjectRef] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningPod:
    """A pod on a node.

    Args:
        ref: Its name.
        node: Its node.
        owner: The object that a person would look for: the Deployment of a ReplicaSet's pod, or the pod itself where nothing made it.
        claims: Allocated claims that it alone uses. They are released when it is gone.
        why_stays: Why it is not moved; empty for a pod that may be.
        is_bare: Whether no controller replaces it.
        loses_work: Whether it is a Job's pod, whose work since its start may be lost.
        budgets: The PodDisruptionBudgets that guard it.
        hours: Hours of work that it loses, as the user says; 0 where the user says nothing.
    """

    ref: ObjectRef
    node: str
    owner: ObjectRef
    claims: tuple[ObjectRef, ...] = ()
    why_stays: str = ""
    is_bare: bool = False
    loses_work: bool = False
    budgets: tuple[ObjectRef, ...] = ()
    hours: float = 0.0


def find_running_pods(
    running: Running, wanted: ObjectRef, priority: int | None, rules: MoveRules
) -> tuple[list[RunningPod], list[Budget]]:
    """Return every pod that has a node and is not done, and the budgets that guard some.

    Args:
        running: What runs.
        wanted: The object whose pods are to find room; its own pods stay.
        priority: The priority of these; None where it is not known, and then no pod stays for its priority.
        rules: Which pods may be moved.
    """
    budgets = list(_find_budgets(running))
    claims, shared = _find_claims(running)
    guards: defaultdict[ObjectRef, list[Budget]] = defaultdict(list)
    for budget in budgets:
        for guarded_pod in budget.pods:
            guards[guarded_pod].append(budget)
    movable = []
    for ref, pod in running.pod_records.items():
        if not pod.node or pod.is_done:
            continue
        makers = running.owners_of(ref)[1:]
        owner = makers[-1] if makers else ref
        guarded = guards.get(ref, [])
        why = (
            _find_why_it_stays(running, pod, makers, rules)
            or _compare_priority(pod, priority, rules)
            or (f"uses {shared[ref]}, as other pods do" if ref in shared else "")
            or _find_guard(guarded)
            or ("is a pod of what is wanted" if wanted.whole.stored in (ref, *makers) else "")
        )
        movable.append(
            RunningPod(
                ref=ref,
                node=pod.node,
                owner=owner,
                claims=tuple(claims.get(ref, ())),
                why_stays=why,
                is_bare=not makers,
                loses_work=any(each.kind.endswith("Job") for each in makers),
                budgets=tuple(each.ref for each in guarded),
                hours=_find_hours(ref, (owner, *makers), rules),
            )
        )
    return movable, budgets


def count_stays(pods: Iterable[RunningPod]) -> list[str]:
    """Return why pods stay, each reason once with the number of pods and some of their names."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for each in pods:
        if each.why_stays:
            reasons[each.why_stays].append(f"{each.ref.namespace}/{each.ref.name}")
    return [
        f"{count_of(len(names), 'pod')} not moved: {why} ({join_words(names, most=3)})"
        for why, names in sorted(reasons.items(), key=lambda each: (-len(each[1]), each[0]))
    ]


def _find_why_it_stays(
    running: Running, pod: PodRecord, makers: tuple[ObjectRef, ...], rules: MoveRules
) -> str:
    if pod.is_deleted:
        return "is being deleted"
    if makers and makers[0].kind in _OF_NODE:
        return "belongs to its node" if makers[0].kind == "Node" else "a DaemonSet replaces it on its node"
    if not makers:
        return "" if rules.bare_pods else "no controller replaces it"
    for maker in makers:
        manifest = running.objects.get(maker, {})
        if maker.kind != "Job" or not manifest:
            continue
        # isPodFailed in pkg/controller/job/job_controller.go: a pod that is deleted while it runs counts as failed.
        limit = value_at(manifest, "spec", "backoffLimit")
        failed = value_at(manifest, "status", "failed")
        limit = limit if isinstance(limit, int) else _BACKOFF_LIMIT
        if limit <= (failed if isinstance(failed, int) else 0):
            return f"its Job fails with one more failed pod (backoffLimit {limit})"
    return ""


def _compare_priority(pod: PodRecord, priority: int | None, rules: MoveRules) -> str:
    own = pod.spec.get("priority")
    own = own if isinstance(own, int) else 0
    if priority is None or rules.above_priority or own <= priority:
        return ""
    return f"has a higher priority than the wanted pods ({own:,}, they have {priority:,})"


def _find_guard(budgets: list[Budget]) -> str:
    if len(budgets) > 1:
        # Create in pkg/registry/core/pod/storage/eviction.go refuses such an eviction.
        names = join_words(str(each.ref) for each in budgets)
        return f"several budgets guard it, so it cannot be evicted: {names}"
    return next((f"{each.ref} allows no eviction" for each in budgets if each.allowed < 1), "")


def _find_hours(pod: ObjectRef, owners: tuple[ObjectRef, ...], rules: MoveRules) -> float:
    names = [f"{pod.namespace}/{pod.name}"]
    names += [f"{each.namespace}/{each.kind.lower()}/{each.name}" for each in owners]
    return next((rules.run_times[name] for name in names if name in rules.run_times), 0.0)


def _find_claims(running: Running) -> tuple[dict[ObjectRef, list[ObjectRef]], dict[ObjectRef, ObjectRef]]:
    """Return the allocated claims that a pod alone uses, and for each pod that shares a claim this claim."""
    own: defaultdict[ObjectRef, list[ObjectRef]] = defaultdict(list)
    shared: dict[ObjectRef, ObjectRef] = {}
    for claim in running.claims:
        users = [ObjectRef("Pod", str(each.get("name")), claim.namespace) for each in running.users_of(claim)]
        for user in users:
            if len(users) > 1:
                shared[user] = claim
            else:
                own[user].append(claim)
    return dict(own), shared


def _find_budgets(running: Running) -> Iterator[Budget]:
    """Yield the budgets of policy/v1, with how many evictions each allows now.

    What the disruption controller wrote counts (`status.disruptionsAllowed`). Without it the number follows from the spec as in
    getExpectedPodCount of pkg/controller/disruption/disruption.go, and a pod that runs counts as healthy.
    """
    for ref in running.refs_of_kind("PodDisruptionBudget"):
        manifest = running.objects[ref]
        spec = mapping(manifest.get("spec"))
        selector = LabelSelector.read(spec.get("selector"))
        pods = frozenset(
            pod
            for pod, record in running.pod_records.items()
            if pod.namespace == ref.namespace and not record.is_done and selector.matches(record.labels)
        )
        allowed = value_at(manifest, "status", "disruptionsAllowed")
        if not isinstance(allowed, int):
            allowed = _count_allowed(running, spec, pods)
        yield Budget(ref=ref, allowed=allowed, pods=pods)


def _count_allowed(running: Running, spec: Mapping[str, object], pods: frozenset[ObjectRef]) -> int:
    healthy = sum(
        running.pod_records[pod].phase == "Running" and not running.pod_records[pod].is_deleted
        for pod in pods
    )
    expected = 0
    numbers = Counter(running.owners_of(pod)[-1] for pod in sorted(pods, key=by_namespace))
    for owner, number in numbers.items():
        scale = value_at(running.objects.get(owner, {}), "spec", "replicas")
        expected += scale if isinstance(scale, int) else number
    if "maxUnavailable" in spec:
        needed = expected - _resolve(spec["maxUnavailable"], expected)
    else:
        needed = _resolve(spec.get("minAvailable", 1), expected)
    return max(healthy - needed, 0)


def _resolve(value: object, number: int) -> int:
    """A number of pods, or a share of them in percent, rounded up: GetScaledValueFromIntOrPercent."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%") if isinstance(value, str) else ""
    # What cannot be read allows nothing.
    return (int(digits) * number + 99) // 100 if digits.isdecimal() else number
