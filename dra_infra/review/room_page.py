"""Room that was made, as one self-contained HTML page: the verdict, the moves, the fleet before and after, and the commands."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from dra_infra.fleet import Fleet
from dra_infra.kubernetes.api import ObjectRef
from dra_infra.placement.making_room import MadeRoom
from dra_infra.placement.placement import DeviceChoice, NodePlacement, Placement, WorkloadPlacement
from dra_infra.placement.room_commands import Step
from dra_infra.placement.running import Running
from dra_infra.review.fleet_map import FleetMap, draw_fleet
from dra_infra.review.html_report import MAX_NODE_ROWS, page_environment, page_script
from dra_infra.review.room_report import MARKS, tell_arrivals, tell_cost, tell_verdict

MAX_ROWS: Final = 500
"""Moves, and steps, that the page shows; the JSON report has all."""
_GRADES: Final = {
    "fits-now": "ok",
    "moves": "ok",
    "never": "failed",
    "not-found": "failed",
    "not-decided": "undecided",
}
_LEAD: Final = "What runs now, and where it runs after the moves with the wanted pods."


def render_room(
    made: MadeRoom, steps: Sequence[Step], *, wanted: str, running: Running, fleet: Fleet, provenance: str
) -> str:
    """Return the answer as one page. Every text in it is escaped; nothing is loaded from anywhere.

    Args:
        made: The answer.
        steps: The commands.
        wanted: What is to find room, as the user wrote it.
        running: What runs.
        fleet: The hardware.
        provenance: What the answer holds for.
    """
    script = page_script()
    fleet_map = _draw(made, running, fleet)
    groups = fleet_map.groups if fleet_map else ()
    return (
        page_environment()
        .get_template("room.html.j2")
        .render(
            made=made,
            grade=_GRADES[made.verdict],
            mark=MARKS[made.verdict],
            verdict=tell_verdict(made, wanted),
            cost=tell_cost(made.plan) if made.plan and made.plan.moves else "",
            arrivals=list(tell_arrivals(made.plan.arrivals)) if made.plan else [],
            used=_count_used(made, running),
            steps=steps,
            max_rows=MAX_ROWS,
            fleet_map=fleet_map,
            map_lead=_LEAD,
            rows=[(group.model, each) for group in groups for each in group.tiles or group.strips],
            max_node_rows=MAX_NODE_ROWS,
            provenance=provenance,
            script=Markup(script),  # noqa: S704  (our own file)
            digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _draw(made: MadeRoom, running: Running, fleet: Fleet) -> FleetMap | None:
    """The fleet before and after the plan; None where nothing has devices."""
    drivers = {
        (each.spec.pool.name, device.name): each.spec.driver
        for each in fleet.slices
        for device in each.spec.devices or ()
    }
    before = dict(_find_pods(running))
    after = dict(before)

    def place(node: str, names: Sequence[str]) -> NodePlacement:
        devices = []
        for name in names:
            pool, _, device = name.partition("/")
            devices.append(_choose(drivers.get((pool, device), ""), pool, device))
        return NodePlacement(node=node, devices=tuple(devices))

    for move in made.plan.moves if made.plan else ():
        owner, _ = after.pop(move.pod.ref, (move.pod.owner, None))
        if move.lands:
            after[move.pod.ref] = owner, place(move.lands, move.takes)
    for number, each in enumerate(made.plan.arrivals if made.plan else ()):
        after[ObjectRef("Pod", f"wanted {number}")] = each.owner, place(each.node, each.devices)
    owners = tuple(dict.fromkeys(owner for owner, _ in (*after.values(), *before.values())))
    if not owners:
        return None
    return draw_fleet(_as_placement(before, fleet), _as_placement(after, fleet), owners)


def _choose(driver: str, pool: str, device: str) -> DeviceChoice:
    return DeviceChoice(entry="", claim="", request="", driver=driver, pool=pool, device=device)


def _find_pods(running: Running) -> Iterator[tuple[ObjectRef, tuple[ObjectRef, NodePlacement]]]:
    """Every pod with devices, with what made it and its place."""
    devices: defaultdict[ObjectRef, list[DeviceChoice]] = defaultdict(list)
    for claim in running.claims:
        whole, shares = running.devices_of(claim)
        # Devices of a claim that several pods use are drawn once.
        for user in running.users_of(claim)[:1]:
            pod = ObjectRef("Pod", str(user.get("name")), claim.namespace)
            devices[pod] += [_choose(*each) for each in (*whole, *(device for device, _ in shares))]
    for ref, pod_record in running.pod_records.items():
        if ref in devices and pod_record.node:
            owner = running.owners_of(ref)[-1]
            yield ref, (owner, NodePlacement(node=pod_record.node, devices=tuple(devices[ref])))


def _as_placement(pods: Mapping[ObjectRef, tuple[ObjectRef, NodePlacement]], fleet: Fleet) -> Placement:
    by_owner: defaultdict[ObjectRef, list[NodePlacement]] = defaultdict(list)
    for owner, place in pods.values():
        by_owner[owner].append(place)
    workloads = (
        WorkloadPlacement(
            owner=owner, replicas=len(places), verdict="fits", nodes=tuple(places), pods=tuple(places)
        )
        for owner, places in by_owner.items()
    )
    return Placement(fleet=fleet, workloads=tuple(workloads))


def _count_used(made: MadeRoom, running: Running) -> list[tuple[str, str]]:
    """For each move how many devices are in use then on the node that the pod leaves, and on the one that it goes to."""
    used: defaultdict[str, int] = defaultdict(int)
    for _, place in dict(_find_pods(running)).values():
        used[place.node] += len(place.devices)
    rows: list[tuple[str, str]] = []
    for move in made.plan.moves if made.plan else ():
        start, end = used[move.pod.node], used[move.lands]
        used[move.pod.node] -= len(move.devices)
        used[move.lands] += len(move.takes)
        rows.append((f"{start} → {used[move.pod.node]}", f"{end} → {used[move.lands]}" if move.lands else ""))
    return rows
