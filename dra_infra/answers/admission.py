"""Admission policies of a scene, asked about the objects that are made: what they deny is never placed.

Policies are those of the program and of its cluster, such as `GpuGuardrails`.
"""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.advice.policies import PolicySet, ask_policies
from dra_infra.answers.scene import Scene
from dra_infra.errors import Problem


def find_denied(scene: Scene) -> Iterator[tuple[int, Problem]]:
    """Yield each problem that a policy has with an object, or with pods and claims of it, with the position of the object.

    Codes: `policy-denies`, `policy-warns` and `policy-not-decided`. Policies are not asked about deployed objects that stay the
    same. Of objects that change in place, they are asked only about the pods and claims that the change creates.

    Args:
        scene: The objects, and the cluster with its policies. An object of the cluster that the program has counts as the program
            has it, or not at all.
    """
    objects = scene.program.objects
    deployed = scene.deployed
    others = scene.running.others_than(*scene.running.programs)
    targets = dict.fromkeys(each.target for each in objects)
    # Policies hold in their own cluster, and a snapshot is of the one that a program means where it names none.
    for target in targets:
        of_cluster = others if target is None or len(targets) == 1 else ()
        of_program = (each.manifest for each in objects if each.target == target)
        policies = PolicySet.gather([*of_cluster, *of_program])
        if not policies.policies:
            continue
        made = [
            (index, each)
            for index, each in enumerate(objects)
            if each.target == target and each.urn not in deployed.same
        ]
        kept = {number for number, (_, each) in enumerate(made) if each.urn in deployed.changed}
        manifests = [each.manifest for _, each in made]
        for number, problem in ask_policies(manifests, policies, target or scene.target, kept=kept):
            index, item = made[number]
            place = scene.locate(index, problem.path) if scene.locate else None
            yield index, problem.below(str(item.ref)).at(place or item.place)
