"""Where pods go on two releases: verdicts, nodes and devices of each workload, all of them at once, and growth of node pools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dra_infra.kubernetes.api import ObjectRef, Release
from dra_infra.output.wording import compress_names, count_of, join_words
from dra_infra.placement.placement import DeviceChoice, NodePlacement, Placement, WorkloadPlacement
from dra_infra.upgrades.differences import Difference, Level

_FIXED_SINCE: Final = 36
"""The first minor that tries pools in a fixed order; older ones try them in a random one."""
_VERDICTS: Final = {"fits": "fits", "does-not-fit": "does not fit", "not-decided": "not decided"}


def compare_placements(
    before: Placement, after: Placement, releases: tuple[Release, Release]
) -> Iterator[Difference]:
    """Yield what differs between two placements of the same objects.

    Codes: `upgrade-placement-differs`, `upgrade-joint-differs`.

    Args:
        before: The placement by the rules of the older release.
        after: The placement by the rules of the newer release.
        releases: Both releases.
    """
    old = {each.owner: each for each in before.workloads}
    for placed in after.workloads:
        if placed.owner in old:
            yield from _compare_workload(old[placed.owner], placed, releases)
    if before.joint.verdict != after.joint.verdict:
        order = ("always", "depends-on-order", "not-decided", "never")
        is_worse = order.index(after.joint.verdict) > order.index(before.joint.verdict)
        is_broken = after.joint.verdict == "never"
        yield Difference(
            level="breaks" if is_worse and is_broken else "changes",
            area="placement",
            code="upgrade-joint-differs",
            message="the verdict on all workloads at once differs",
            before=str(before.joint),
            after=str(after.joint),
        )
    if (
        before.growth is not None
        and after.growth is not None
        and before.growth.verdict != after.growth.verdict
    ):
        is_broken = after.growth.verdict == "never-within-limits"
        yield Difference(
            level="breaks" if is_broken else "changes",
            area="placement",
            code="upgrade-joint-differs",
            message="the growth of node pools that all workloads need differs",
            before=str(before.growth),
            after=str(after.growth),
        )


def _compare_workload(
    old: WorkloadPlacement, new: WorkloadPlacement, releases: tuple[Release, Release]
) -> Iterator[Difference]:
    if old.verdict != new.verdict:
        yield _difference(
            "breaks" if old.verdict == "fits" and new.verdict == "does-not-fit" else "changes",
            new.owner,
            f"{_VERDICTS[new.verdict]} on {releases[1].minor}",
            _describe(old),
            _describe(new),
        )
        return
    first = {each.node: each for each in old.nodes}
    second = {each.node: each for each in new.nodes}
    if set(first) != set(second):
        gone = [name for name in first if name not in second]
        come = [name for name in second if name not in first]
        changes = [
            f"{compress_names(names, of_nodes=True)} {verb}"
            for names, verb in ((gone, "can no longer take its pods"), (come, "can take its pods too"))
            if names
        ]
        why = f"; {new.reasons[0]}" if gone and new.reasons else ""
        yield _difference("changes", new.owner, join_words(changes), _describe(old), f"{_describe(new)}{why}")
    moved = [name for name in first if name in second and _devices(first[name]) != _devices(second[name])]
    if moved:
        is_fixed = all(release.number >= _FIXED_SINCE for release in releases)
        note = (
            ""
            if is_fixed
            else f"; {releases[0].minor} tries pools in a random order, and this is one of its answers"
        )
        yield _difference(
            "changes" if is_fixed else "note",
            new.owner,
            f"other devices on {count_of(len(moved), 'node')}, e.g. {moved[0]}{note}",
            _describe_devices(first[moved[0]].devices),
            _describe_devices(second[moved[0]].devices),
        )
    if old.more_pods != new.more_pods and set(first) == set(second):
        yield _difference(
            "changes",
            new.owner,
            "the room for further pods differs",
            f"{count_of(old.more_pods, 'more pod')} fit",
            f"{count_of(new.more_pods, 'more pod')} fit",
        )


def _difference(level: Level, owner: ObjectRef, message: str, before: str, after: str) -> Difference:
    return Difference(
        level=level,
        area="placement",
        code="upgrade-placement-differs",
        subject=owner,
        message=message,
        before=before,
        after=after,
    )


def _devices(placed: NodePlacement) -> list[tuple[object, ...]]:
    return sorted(
        (
            each.entry,
            each.request,
            each.driver,
            each.pool,
            each.device,
            str(each.admin),
            str(each.share),
            each.consumed,
        )
        for each in placed.devices
    )


def _describe(placed: WorkloadPlacement) -> str:
    if placed.verdict == "fits":
        names = [each.node for each in placed.nodes]
        shown = f" ({compress_names(names, of_nodes=True)})" if names else ""
        return f"fits on {count_of(len(names), 'node')}{shown}"
    why = f": {placed.reasons[0]}" if placed.reasons else ""
    return f"{_VERDICTS[placed.verdict]}{why}"


def _describe_devices(devices: Sequence[DeviceChoice]) -> str:
    return join_words((f"{each.request}: {each.pool}/{each.device}" for each in devices), most=8) or "none"
