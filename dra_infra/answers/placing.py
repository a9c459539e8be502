"""Places the accepted objects of a scene, and adds what placement alone does not know: refused objects and queues that admit nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dra_infra.advice.queues import find_held
from dra_infra.answers.checking import Checked, check
from dra_infra.answers.fragmenting import name_holders
from dra_infra.answers.scene import Scene
from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.kubernetes.scheduler import Taken
from dra_infra.placement.growth import find_growth, place_within_limits
from dra_infra.placement.placement import Growth, JointVerdict, Placement, Reason, WorkloadPlacement, by_owner
from dra_infra.placement.question import PlacementQuestion, never_late
from dra_infra.placement.scheduling import place, place_claim


def place_scene(
    scene: Scene,
    checked: Checked | None = None,
    *,
    taken: Taken | None = None,
    is_late: Callable[[], bool] = never_late,
    with_headroom: bool = False,
) -> Placement:
    """Return where the pods of a scene go on its fleet as it is, with the growth of node pools that they need.

    Args:
        scene: What is placed.
        checked: Its check; None makes it. Workloads that need an object with an error do not fit.
        taken: What is not free of the fleet; None asks what runs in the cluster.
        is_late: Asked during searches; once true, what is not answered by then is `not-decided`.
        with_headroom: Whether to count what is left per class and MIG profile.

    Raises:
        ValueError: For a scene without a fleet.
    """
    checked = checked or check(scene)
    question = question_of(scene, checked, taken=taken, is_late=is_late)
    placement = place(question, with_headroom=with_headroom)
    return _complete(scene, checked, replace(placement, growth=find_growth(question, placement)))


def place_one_claim(
    scene: Scene, claim: ObjectRef, checked: Checked | None = None, *, taken: Taken | None = None
) -> WorkloadPlacement:
    """Return where one pod can go that uses nothing but a claim or claim template of the scene.

    Taints of nodes do not count, because a claim does not say what the pods that will use it tolerate. No pod goes to a cordoned node.

    Args:
        scene: What is placed.
        checked: Its check; None makes it. A claim with an error fits nowhere, nor does one whose DeviceClass has an error.
        claim: The claim or claim template.
        taken: What is not free of the fleet; None asks what runs in the cluster.

    Raises:
        ValueError: For a scene without a fleet.
    """
    checked = checked or check(scene)
    question = question_of(scene, checked, taken=taken)
    if refusal := checked.accepted.find_refusal(claim):
        return WorkloadPlacement(owner=claim, replicas=1, verdict="does-not-fit", reasons=(refusal,))
    untainted = tuple(replace(node, taints=()) for node in question.fleet.nodes)
    return place_claim(replace(question, fleet=replace(question.fleet, nodes=untainted)), claim)


def place_scene_within_limits(scene: Scene, checked: Checked | None = None) -> Placement:
    """Return where the pods of a scene go with as many nodes of its node pools as they need, with headroom and growth.

    The rules are those of `dra_infra.placement.growth.place_within_limits`; the arguments are those of `place_scene`.

    Raises:
        ValueError: For a scene without a fleet.
    """
    checked = checked or check(scene)
    return _complete(scene, checked, place_within_limits(question_of(scene, checked)))


def question_of(
    scene: Scene,
    checked: Checked,
    *,
    taken: Taken | None = None,
    is_late: Callable[[], bool] = never_late,
) -> PlacementQuestion:
    """Return the question of where the accepted objects of a scene go on its fleet.

    Args:
        scene: What is placed.
        checked: Its check.
        taken: What is not free of the fleet; None asks what runs in the cluster.
        is_late: Asked during searches; once true, what is not answered by then is `not-decided`.

    Raises:
        ValueError: For a scene without a fleet.
    """
    fleet, accepted = _fleet_of(scene), checked.accepted.manifests
    if taken is None:
        taken = scene.running.without_evicted(accepted, fleet, scene.release)
    return PlacementQuestion(
        manifests=accepted,
        fleet=fleet,
        taken=taken,
        release=scene.release,
        kinds=scene.kinds,
        is_late=is_late,
    )


def _complete(scene: Scene, checked: Checked, placement: Placement) -> Placement:
    """Add the workloads that are left out or need refused objects, and to those that a queue never admits why it does not."""
    placement = _with_left_out(placement)
    held = {
        owner: Reason(code=problem.code, message=problem.message)
        for _, owner, problem in find_held(scene.manifests, scene.beside)
    }
    workloads = tuple(
        replace(placed, reasons=(*placed.reasons, held[placed.owner.whole]))
        if placed.owner.whole in held
        else placed
        for placed in placement.workloads
    )
    deployed = tuple(
        f"what {each.what} {each.name} deploys" for each in scene.program.not_seen if each.is_not_rendered
    )
    fragments = name_holders(placement.fragments, scene.running, placement.workloads)
    unplaced = *placement.unplaced, *deployed
    return checked.accepted.complete(
        replace(placement, workloads=workloads, unplaced=unplaced, fragments=fragments)
    )


def _with_left_out(placement: Placement) -> Placement:
    """Return the placement with the workloads that may be for nodes which the fleet does not name.

    These pods take nothing from the others. So what never fits without them never fits, and everything else is open.
    """
    if not placement.left_out:
        return placement
    first = placement.left_out[0]
    why = f"{first.owner} is not decided: {first.reasons[0]}"
    growth, at_most = placement.growth, placement.joint_at_most
    return replace(
        placement,
        workloads=tuple(sorted((*placement.workloads, *placement.left_out), key=by_owner)),
        left_out=(),
        joint=_leave_open(placement.joint, why),
        joint_at_most=at_most and _leave_open(at_most, why),
        growth=growth and _leave_growth_open(growth, why),
    )


def _leave_open(joint: JointVerdict, why: str) -> JointVerdict:
    if joint.verdict == "never":
        return joint
    return JointVerdict(verdict="not-decided", reasons=(why, f"all others: {joint}"))


def _leave_growth_open(growth: Growth, why: str) -> Growth:
    if growth.verdict in ("never-within-limits", "does-not-grow", "grows-if"):
        return growth
    joint = _leave_open(growth.joint, why)
    return replace(growth, verdict="not-decided", joint=joint, reasons=(why, f"all others: {growth}"))


def _fleet_of(scene: Scene) -> Fleet:
    if scene.fleet is None:
        raise ValueError("the scene names no fleet, so nothing can be placed")
    return scene.fleet
