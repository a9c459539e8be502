"""ResourceSlices that the node is to have: those of its inventory, as the server would keep them.

Where the server refuses these, it is to have what is left of the last ones.

What the API server would keep of slices is asked by a dry run, before anything is written. Thus a slice that is
refused never leaves half a pool behind, fields that a server drops because a gate is off are noticed before a
scheduler sees what is left, and what is compared with the server's slices later is in the server's own spelling.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dra_infra.client.kinds import SLICES
from dra_infra.client.objects import name_of, text
from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import Device, gates_of_fields, mapping, mappings
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.refusals import ApiError
from dra_infra.plugin.back_end import Inventory
from dra_infra.plugin.observing import DeviceState, Observer
from dra_infra.plugin.publishing.pool_changes import TaintTimes, keep_taint_times
from dra_infra.plugin.publishing.pools import Spec, lay_out

_LAST: Final = re.compile(r"\.(\w+)(\[\d+\])?$")
_NAMED: Final = 3
"""Devices that a message names."""


class DryRuns:
    """Dry runs of slices at one server, whose answers are remembered until they are to be forgotten."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, tuple[Spec, tuple[str, ...]]] = {}

    def forget(self) -> None:
        """Forget all answers: the server may be another release, or have other gates, since it was away."""
        self._known = {}

    def run(self, specs: Sequence[Spec]) -> list[tuple[Spec, tuple[str, ...]]]:
        """Return each spec as the server would keep it, with the paths of the fields that it would drop.

        Raises:
            ApiError: A slice is refused, or the server is away.
        """
        known = {}
        for spec in specs:
            key = json.dumps(spec, sort_keys=True)
            known[key] = self._known.get(key) or self._run(spec, len(specs))
        # Of layouts that are past nothing is kept.
        self._known = known
        return [known[json.dumps(spec, sort_keys=True)] for spec in specs]

    def _run(self, spec: Spec, count: int) -> tuple[Spec, tuple[str, ...]]:
        whole = {**spec, "pool": {**spec["pool"], "generation": 1, "resourceSliceCount": count}}
        metadata = {"generateName": f"{spec['driver']}-"[:50]}
        answer = self._api.create(SLICES, {"metadata": metadata, "spec": whole}, dry_run=True)
        kept = dict(mapping(answer.get("spec")))
        lost = tuple(_lost(whole, kept, "spec"))
        return {**kept, "pool": spec["pool"]}, lost


def _lost(sent: object, kept: object, path: str) -> Iterator[str]:
    """Paths of what is not there any more; another spelling of an amount is no loss."""
    if sent in ("", [], {}, None):
        return
    if isinstance(sent, Mapping) and isinstance(kept, Mapping):
        for key, value in sent.items():
            yield from _lost(value, kept.get(key), f"{path}.{key}")
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for index, value in enumerate(sent):
            yield from _lost(value, kept[index], f"{path}[{index}]")
    elif kept is None or isinstance(sent, (Mapping, list)):
        yield path


def unsafe_devices(spec: Spec, kept: Spec) -> Iterator[str]:
    """Devices that would be given out wrongly without what was lost: parts of one GPU twice, and those that are to be kept away."""
    for device, stored in zip(mappings(spec.get("devices")), mappings(kept.get("devices")), strict=False):
        if (device.get("consumesCounters") and not stored.get("consumesCounters")) or (
            any(_kept_away(device)) and not stored.get("taints")
        ):
            yield text(device.get("name"))


def dropped(driver: str, paths: Iterable[str], held_back: Sequence[str]) -> Problem:
    """The server drops fields of slices, for which devices are *held_back*: `slice-fields-dropped`."""
    fields = sorted({found[1] for each in paths if (found := _LAST.search(each))})
    gates = sorted({gate for name, gate in gates_of_fields().items() if name in fields})
    message = f"the API server drops {', '.join(fields)}"
    if held_back:
        reason = "for they would be given out wrongly"
        message += f"; {len(held_back)} devices are not published, {reason}: {_first(held_back)}"
    hint = (
        f"turn on {', '.join(gates)} for the API server and the scheduler"
        if gates
        else "the server is too old for it"
    )
    return Problem(
        path=f"slices of {driver}",
        code="slice-fields-dropped",
        message=message,
        hint=hint,
        severity="error" if held_back else "warning",
    )


def without(devices: Iterable[Any], names: Iterable[str]) -> tuple[Any, ...]:
    """All *devices* but those of these names."""
    left_out = frozenset(names)
    return tuple(each for each in devices if each.name not in left_out)


Item = Mapping[str, Any]

_REFUSALS: Final = frozenset({400, 403, 413, 422})
"""Answers that are about what was sent, and stay the same however often it is sent."""

_OWN_REFUSALS: Final = frozenset({"pool-not-usable", "plugin-failed"})
"""Codes of an inventory that does not come as far as the server; `plugin-failed` where an own back end's cannot be laid out."""

_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})


class DesiredSlices:
    """Lays out the slices that are to be published, and reports once what the server would drop of them."""

    def __init__(self, api: Api, *, driver: str, node: str, observer: Observer) -> None:
        self._api = api
        self._driver = driver
        self._node = node
        self._observer = observer
        self._dry_runs = DryRuns(api)
        self._reported: tuple[Problem, ...] = ()

    def forget(self) -> None:
        """Forget all answers: the server may be another release, or have other gates."""
        self._dry_runs.forget()

    def specs(self, inventory: Inventory, times: TaintTimes) -> tuple[Spec, ...]:
        """Slices as the server keeps them, of the devices that it keeps whole enough.

        Raises:
            PluginError: `pool-not-usable`, and the codes of `Api`.
        """
        lost: list[str] = []
        held_back: list[str] = []
        while True:
            specs = lay_out(inventory, driver=self._driver, node=self._node, minor=self._api.minor())
            specs = tuple(keep_taint_times(each, times) for each in specs)
            kept = self._dry_runs.run(specs)
            lost.extend(path for _, paths in kept for path in paths)
            unsafe = [
                name
                for spec, (stored, _) in zip(specs, kept, strict=True)
                for name in unsafe_devices(spec, stored)
            ]
            if not unsafe:
                break
            held_back.extend(unsafe)
            devices = without(inventory.devices, unsafe)
            drawn = {one.counter_set for each in devices for one in each.consumes_counters or ()}
            counters = tuple(each for each in inventory.counters if each.name in drawn)
            inventory = replace(inventory, devices=devices, counters=counters)
        self._report((dropped(self._driver, lost, held_back),) if lost else ())
        return tuple(stored for stored, _ in kept)

    def remaining(
        self, last: Sequence[Spec], found: Sequence[Item], inventory: Inventory
    ) -> tuple[Spec, ...]:
        """The part of the last published slices that may still be given out while the server refuses those of *inventory*.

        Devices that are gone, and those that are to be kept away now, are taken out; the others stay as they were published.
        Kubernetes' own library removes slices that are too many, for "it's still better to remove devices that the driver no
        longer has", but leaves what is gone in all others (resourceslicecontroller.go, syncPool).

        Args:
            last: What this process has published, to its end; nothing in one that has just started.
            found: The node's slices.
            inventory: What the node has.

        Returns:
            Specs of a whole pool. Where only an unfinished one is known, of a slice without devices: nobody gets any of it
            either way, but for as long as it stays the scheduler answers no request for all devices of whatever driver.
        """
        newest = last or _whole_pool(found) or [self._nothing()] * bool(found)
        have = {each.name: each for each in inventory.devices}
        left_out: list[str] = []
        specs = []
        for spec in newest:
            devices = mappings(spec.get("devices"))
            stay = [each for each in devices if _stays(each, have.get(text(each.get("name"))))]
            left_out.extend(text(each.get("name")) for each in devices if each not in stay)
            rest = {key: value for key, value in spec.items() if key != "devices"}
            pool = {"name": text(mapping(spec.get("pool")).get("name"))}
            specs.append({**rest, "pool": pool, **({"devices": stay} if stay else {})})
        self._report((_withdrawn(self._driver, left_out),) if left_out else self._reported)
        return tuple(specs)

    def _nothing(self) -> Spec:
        return {"driver": self._driver, "nodeName": self._node, "pool": {"name": self._node}}

    def _report(self, problems: tuple[Problem, ...]) -> None:
        if problems != self._reported and problems:
            self._observer.noticed(problems)
        self._reported = problems


def count_by_state(inventory: Inventory) -> Mapping[DeviceState, int]:
    """Count the devices in each state."""
    states = Counter(
        inventory.health[each.name].state if each.name in inventory.health else "healthy"
        for each in inventory.devices
    )
    return {"healthy": states["healthy"], "unhealthy": states["unhealthy"], "unknown": states["unknown"]}


def is_refused(error: PluginError) -> bool:
    """True where the server would refuse slices however often they are tried."""
    if isinstance(error, ApiError):
        return error.status in _REFUSALS
    return any(each.code in _OWN_REFUSALS for each in error.problems)


def _whole_pool(found: Sequence[Item]) -> list[Item]:
    """Specs of the slices that a scheduler gives out devices of, in their order."""
    pools = [mapping(mapping(each.get("spec")).get("pool")) for each in found]
    highest = max((each.get("generation") or 0 for each in pools), default=0)
    newest = [
        item for item, pool in zip(found, pools, strict=True) if (pool.get("generation") or 0) == highest
    ]
    specs = [mapping(each.get("spec")) for each in sorted(newest, key=name_of)]
    whole = all(mapping(each.get("pool")).get("resourceSliceCount") == len(specs) for each in specs)
    return specs if whole else []


def _stays(published: Item, now: Device | None) -> bool:
    if now is None:
        return False
    had = set(_kept_away(published))
    return all((each.key, each.effect) in had for each in now.taints or () if each.effect in _KEEPS_AWAY)


def _kept_away(published: Item) -> Iterator[tuple[str, str]]:
    for taint in mappings(published.get("taints")):
        if taint.get("effect") in _KEEPS_AWAY:
            yield text(taint.get("key")), text(taint.get("effect"))


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")


def _withdrawn(driver: str, names: Sequence[str]) -> Problem:
    message = "the node's new devices are refused; taken out of the slices that are there"
    return Problem(
        path=f"slices of {driver}",
        code="devices-withdrawn",
        message=f"{message}: {_first(names)}",
        hint="they are gone, or unhealthy; the others stay as they were published until the new ones are taken",
        severity="warning",
    )
