"""The moves of a plan as kubectl commands, in order, with a check behind each. They are printed and never run here."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dra_infra.kubernetes.api import ObjectRef
from dra_infra.output.wording import count_of, join_words
from dra_infra.placement.making_room import MadeRoom, Move, RoomPlan

_ROLLED_OUT: Final = frozenset({"DaemonSet", "Deployment", "StatefulSet"})
"""Kinds of which `kubectl rollout status` knows when all pods are ready."""
_SCALED: Final = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})


OPEN: Final = "open the nodes"
"""How the title of the step begins after which the wanted pods start."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Commands that belong together.

    Args:
        title: What they do.
        before: A command to run first; what it has to print is *needs*. Empty for none.
        needs: What that prints if the step may be done.
        commands: The commands.
        check: A command to run afterwards.
        expect: What that prints if the next step may be done.
        move: The number of the move that this step is, from 0 on; None for another step.
    """

    title: str
    before: str = ""
    needs: str = ""
    commands: tuple[str, ...]
    check: str
    expect: str
    move: int | None = None


def write_steps(made: MadeRoom, *, apply: str, replicas: int) -> Iterator[Step]:
    """Yield the steps of a plan; none where nothing moves.

    Args:
        made: The answer with the plan.
        apply: The wanted object, where the user has to create it; empty where it is in the cluster, or no object is wanted.
        replicas: The pods that the wanted object is to have, for one that is scaled down meanwhile.
    """
    plan = made.plan
    if plan is None or not plan.moves:
        return
    is_scaled = bool(made.waiting) and made.wanted.kind in _SCALED
    if is_scaled:
        yield Step(
            title=f"stop {count_of(made.waiting, 'waiting pod')} of {made.wanted}, which may take a place that a moved pod needs",
            commands=(_scale(made.wanted, max(replicas - made.waiting, 0)),),
            check=_kubectl(
                "get",
                "pods",
                "-n",
                made.wanted.namespace or "default",
                "--field-selector=status.phase=Pending",
            ),
            expect=f"no pod of {made.wanted}",
        )
    if plan.cordon:
        yield Step(
            title=f"close {join_words(plan.cordon, most=5)}, so that no pod takes what becomes free",
            commands=(_kubectl("cordon", *plan.cordon),),
            check=_kubectl("get", "nodes", *plan.cordon),
            expect="SchedulingDisabled for each",
        )
    for number, move in enumerate(plan.moves):
        yield _write_move(number, move, plan)
        yield from _write_reopening(move, plan)
    yield from _finish(made, plan, _scale(made.wanted, replicas) if is_scaled else "", apply)


def _write_move(number: int, move: Move, plan: RoomPlan) -> Step:
    pod, owner = move.pod.ref, move.pod.owner
    namespace = pod.namespace or "default"
    commands: list[str] = []
    opened = [move.lands] if move.lands in plan.cordon else []
    if move.cordon:
        commands.append(_kubectl("cordon", *move.cordon))
    if opened:
        commands.append(_kubectl("uncordon", *opened))
    commands.append(_kubectl("delete", "pod", "-n", namespace, pod.name))
    budget = next(iter(move.pod.budgets), None)
    before = needs = ""
    if budget is not None:
        # kubectl delete does not ask the budget, so the reader does.
        path = "jsonpath={.status.disruptionsAllowed}"
        before, needs = _kubectl("get", "pdb", "-n", namespace, budget.name, "-o", path), "1 or more"
    if move.pod.is_bare:
        return Step(
            title=f"delete {pod}, which no controller makes anew",
            before=before,
            needs=needs,
            commands=tuple(commands),
            check=_kubectl("get", "pod", "-n", namespace, pod.name, "--ignore-not-found"),
            expect="nothing",
            move=number,
        )
    where = (
        move.lands if move.choices == 1 else f"any of {count_of(move.choices, 'node')}, such as {move.lands}"
    )
    check = _kubectl("get", "pods", "-n", namespace, "-o", "wide")
    if owner.kind in _ROLLED_OUT:
        check = f"{_kubectl('rollout', 'status', f'{owner.kind.lower()}/{owner.name}', '-n', namespace, '--timeout=10m')} && {check}"
    return Step(
        title=f"move {pod} of {owner} from {move.pod.node}",
        before=before,
        needs=needs,
        commands=tuple(commands),
        check=check,
        expect=f"a new pod of {owner} runs on {where}",
        move=number,
    )


def _write_reopening(move: Move, plan: RoomPlan) -> Iterator[Step]:
    """Yield the step that undoes what was closed or opened for one move alone."""
    commands = [_kubectl("cordon", move.lands)] if move.lands in plan.cordon else []
    commands += [_kubectl("uncordon", *move.cordon)] if move.cordon else []
    if commands:
        yield Step(
            title="close and open nodes as they were before this move",
            commands=tuple(commands),
            check=_kubectl("get", "nodes", *plan.cordon),
            expect="SchedulingDisabled for each",
        )


def _finish(made: MadeRoom, plan: RoomPlan, scale: str, apply: str) -> Iterator[Step]:
    namespace = made.wanted.namespace or "default"
    nodes = sorted({each.node for each in plan.arrivals})
    commands = [_kubectl("cordon", *plan.keep_off)] if plan.keep_off else []
    commands += [_kubectl("uncordon", *plan.cordon)] if plan.cordon else []
    if scale:
        commands.append(scale)
    yield Step(
        title=f"{OPEN}{f', and create {apply}' if apply else ''}",
        commands=tuple(commands),
        check=_kubectl("get", "pods", "-n", namespace, "-o", "wide"),
        expect=f"{count_of(made.pods, 'pod')} of {made.wanted} on {join_words(nodes, most=5)}",
    )
    if plan.keep_off:
        yield Step(
            title="open the nodes that were closed while the pods started",
            commands=(_kubectl("uncordon", *plan.keep_off),),
            check=_kubectl("get", "nodes"),
            expect="no SchedulingDisabled but where there was one before",
        )


def _scale(ref: ObjectRef, replicas: int) -> str:
    name = f"{ref.kind.lower()}/{ref.name}"
    return _kubectl("scale", name, "-n", ref.namespace or "default", f"--replicas={replicas}")


def _kubectl(*words: str) -> str:
    return shlex.join(["kubectl", *words])
