"""What the surfaces say of one scene, and where two of them say different things."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from dra_infra import testing
from dra_infra.answers.explaining import Explained, explain
from dra_infra.answers.reviewing import compare
from dra_infra.answers.simulating import DOES_NOT_FIT, FITS, Simulation
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import CLAIM_KINDS, SUPPORTED_MINORS, ObjectRef
from dra_infra.placement.placement import REFUSED, Growth, Placement
from dra_infra.review import Review
from tests.contract.scenes import NAMESPACE, DrawnScene

ALIASES: Final = {
    "Deployment": ("deployment", "deploy", "deployments"),
    "DaemonSet": ("daemonset", "ds", "daemonsets"),
    "StatefulSet": ("statefulset", "sts", "statefulsets"),
    "Pod": ("pod", "po", "pods"),
    "Job": ("job", "jobs"),
    "CronJob": ("cronjob", "cj", "cronjobs"),
    "ResourceClaim": ("claim", "resourceclaim", "claims"),
    "ResourceClaimTemplate": ("template", "resourceclaimtemplate", "resourceclaimtemplates"),
}
"""Words for the kinds in names that `explain` is given."""


def find_disagreements(drawn: DrawnScene, simulated: Simulation) -> Iterator[str]:
    """Yield a line for each surface that answers a question otherwise than `simulate`.

    Args:
        drawn: The scene.
        simulated: What `simulate` answers.
    """
    placement = simulated.placement
    assert placement is not None
    nothing = drawn.program_of([])
    anew = compare(nothing, drawn.program, base_label="main", fleet=drawn.fleet, snapshot=drawn.snapshot)
    yield from (f"review of new objects: {each}" for each in _compare_review(simulated, placement, anew))
    is_blocked = anew.is_blocked("undecided")
    # Where a review asks more than `simulate` does, it may be blocked alone.
    is_expected = is_blocked if any(_asks_more(drawn, each) for each in anew.problems) else False
    if is_blocked != (simulated.exit_code != FITS or is_expected):
        yield f"review is blocked: {is_blocked}, simulate ends with {simulated.exit_code}"
    # The rarer questions are asked of every third scene.
    # Of what is deployed already no policy is asked, so a review of no change says nothing of what they deny.
    is_denied = any(each.code == "policy-denies" for each in simulated.checked.problems)
    if len(drawn.manifests) % 3 == 0 and not is_denied:
        again = compare(
            drawn.program, drawn.program, base_label="main", fleet=drawn.fleet, snapshot=drawn.snapshot
        )
        yield from (f"review of no change: {each}" for each in _compare_review(simulated, placement, again))
    if drawn.running is None:
        yield from _compare_tests(drawn, placement)
    asked = [ObjectRef.of(each) for each in drawn.manifests if each["kind"] in ALIASES]
    for ref in asked:
        yield from _compare_explanation(drawn, ref, simulated, placement)
    if len(drawn.manifests) % 3 == 1:
        yield from _compare_names(drawn, asked[-1 - len(drawn.manifests) // 3 % len(asked)])


def _asks_more(drawn: DrawnScene, problem: Problem) -> bool:
    """Whether an error is of the oldest minor, where the user names none: only reviews ask it."""
    is_of_oldest = drawn.kubernetes is None and f"Kubernetes {SUPPORTED_MINORS[0]}" in problem.message
    return problem.severity == "error" and is_of_oldest


def _compare_review(simulated: Simulation, placement: Placement, reviewed: Review) -> Iterator[str]:
    after = reviewed.after
    assert after is not None
    if not _same_growth(after.growth, placement.growth):
        yield f"growth {after.growth}, simulate: {placement.growth}"
    joint = placement.growth.joint if placement.growth is not None else placement.joint
    if after.joint != joint:
        yield f"joint verdict {after.joint}, simulate: {joint}"
    if placement.growth is None:
        told = {
            each.owner: (each.after.verdict, each.after.reasons) for each in reviewed.workloads if each.after
        }
        expected = {each.owner: (each.verdict, each.reasons) for each in placement.workloads}
        if told != expected:
            yield f"workloads {told}, simulate: {expected}"
    elif placement.growth.fits and any(
        each.after and each.after.verdict != "fits" for each in reviewed.workloads
    ):
        yield "a workload does not fit where growth fits"
    if simulated.checked.has_errors and not reviewed.failed:
        yield "is not failed where an object has an error"


def _same_growth(one: Growth | None, other: Growth | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.verdict, one.added, one.reasons) == (other.verdict, other.added, other.reasons)


def _compare_tests(drawn: DrawnScene, placement: Placement) -> Iterator[str]:
    program = testing.SynthesizedProgram(drawn.program)
    together = program.fits_all(drawn.fleet)
    if together.joint != placement.joint or not _same_growth(together.growth, placement.growth):
        yield f"dra.testing: {together}, simulate: {placement.joint}"
    for workload in placement.workloads[:1]:
        tested = program.fits(drawn.fleet, str(workload.owner)).placement
        if (tested.verdict, tested.reasons) != (workload.verdict, workload.reasons):
            yield f"dra.testing of {workload.owner}: {tested.verdict}, simulate: {workload.verdict}"


def _compare_names(drawn: DrawnScene, ref: ObjectRef) -> Iterator[str]:
    """Ask about one object by each word for its kind, and by its name alone."""
    names = [f"{word}/{ref.name}" for word in ALIASES[ref.kind]]
    asked = [*((name, None) for name in names), (ref.name, NAMESPACE)]
    first, *others = (
        (name, _told(explain(drawn.scene, name, namespace=namespace))) for name, namespace in asked
    )
    for name, told in others:
        if told != first[1]:
            yield f"explain {name}: {told}, {first[0]}: {first[1]}"


def _compare_explanation(
    drawn: DrawnScene, ref: ObjectRef, simulated: Simulation, placement: Placement
) -> Iterator[str]:
    explained = explain(drawn.scene, f"{ref.kind}/{ref.name}", namespace=NAMESPACE)
    if ref.kind in CLAIM_KINDS:
        yield from _compare_claim(drawn, ref, explained)
        return
    if explained.joint != placement.joint or not _same_growth(explained.growth, placement.growth):
        yield f"explain {ref}: joint {explained.joint}, simulate: {placement.joint}"
    placed = next((each for each in placement.workloads if each.owner.whole == ref), None)
    # Pods without devices are listed only where they do not fit, or where that is not decided.
    expected = placed.verdict if placed is not None else "fits"
    if explained.verdict != expected:
        reasons = placed.reasons if placed else ()
        yield f"explain {ref}: {explained.verdict} {explained.causes}, simulate: {expected} {reasons}"
    if explained.exit_code == FITS and simulated.exit_code != FITS:
        yield f"explain {ref} ends with 0, simulate with {simulated.exit_code}"
    if explained.exit_code != FITS and simulated.exit_code == FITS:
        yield f"explain {ref} ends with {explained.exit_code}, simulate with 0"
    refused = placed is not None and any(each.code == REFUSED for each in placed.reasons)
    if refused and (simulated.exit_code, placement.joint.verdict) != (DOES_NOT_FIT, "never"):
        yield f"{ref} needs an object with an error, and simulate ends with {simulated.exit_code}"


def _compare_claim(drawn: DrawnScene, ref: ObjectRef, explained: Explained) -> Iterator[str]:
    if drawn.running is not None:
        return
    tested = testing.SynthesizedProgram(drawn.program).claim(ref.name).fits(drawn.fleet).placement
    if tested.verdict != explained.verdict:
        yield f"dra.testing of {ref}: {tested.verdict} {tested.reasons}, explain: {explained.verdict} {explained.causes}"


def _told(explained: Explained) -> Mapping[str, object]:
    return {
        "verdict": explained.verdict,
        "causes": explained.causes,
        "undecided": explained.undecided,
        "joint": explained.joint,
        "exit code": explained.exit_code,
    }
