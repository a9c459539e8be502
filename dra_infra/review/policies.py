"""Asks admission policies of a program and of its cluster, such as GpuGuardrails, about the objects that a change makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dra_infra.advice.policies import PolicySet, ask_policies
from dra_infra.errors import Problem
from dra_infra.program_objects import Locate, Program
from dra_infra.review.changes import Change
from dra_infra.review.running import NOTHING_RUNS, Running
from dra_infra.target import ClusterTarget


def find_denied(
    changes: Sequence[Change],
    base: Program,
    head: Program,
    locate: Locate | None = None,
    running: Running = NOTHING_RUNS,
) -> Iterator[Problem]:
    """A problem for each object that a policy of the head or of its cluster does not let be made, and for pods and claims of one.

    Codes: `policy-denies`, `policy-warns` and `policy-not-decided`. What is there already stays, so of an object that changes in
    place only the pods and claims that are made anew are asked about.

    Args:
        changes: What differs.
        base: The program before.
        head: The program after.
        locate: Where fields of its objects are written; None takes the places of the objects.
        running: The cluster. An object of it that the programs have counts as the head has it, or not at all.
    """
    positions = {each.urn: position for position, each in enumerate(head.objects)}
    others = running.others_than(base, head)
    targets = dict.fromkeys(each.target for each in head.objects)
    # Policies hold in their own cluster, and a snapshot is of the one that a program means where it names none.
    for target in targets:
        there = others if target is None or len(targets) == 1 else ()
        here = (each.manifest for each in head.objects if each.target == target)
        found = PolicySet.gather([*there, *here])
        if not found.policies:
            continue
        made: Sequence[Change] = [each for each in changes if each.after and each.after.target == target]
        kept = {number for number, each in enumerate(made) if each.action == "changed"}
        manifests = [each.object.manifest for each in made]
        server = target or ClusterTarget(kubernetes=head.release.minor)
        for number, problem in ask_policies(manifests, found, server, kept=kept):
            change = made[number]
            position = positions.get(change.urn)
            place = locate(position, problem.path) if locate and position is not None else None
            yield problem.below(str(change.ref)).at(place or change.place)
