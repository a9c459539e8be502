"""Keeps the node's slices on the API server as the back end has its devices, whoever deletes or changes them."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dra_infra.cluster.kinds import NODES, SLICES
from dra_infra.cluster.objects import labels_of, mapping, name_of, uid_of
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.pauses import pause_after
from dra_infra.plugin.api_server.refusals import ApiError
from dra_infra.plugin.back_end import BackEnd, Inventory
from dra_infra.plugin.observing import DeviceState, Observer
from dra_infra.plugin.publishing.pool_changes import (
    Changes,
    Written,
    find_changes,
    keep_taint_times,
    taint_times,
)
from dra_infra.plugin.publishing.pools import Spec, lay_out
from dra_infra.plugin.publishing.slice_watch import SliceWatch
from dra_infra.plugin.publishing.sole import Sole
from dra_infra.plugin.publishing.storable import Storable, dropped, unsafe_devices, without
from dra_infra.plugin.unexpected import expected

MANAGED_BY: Final = "app.kubernetes.io/managed-by"
"""Label of our slices: those of another driver with the same name do not have it."""

MANAGER: Final = "dra-infra-plugin"

_SETTLE: Final = 0.05
"""Seconds in which changes are gathered: the kubelet deletes all slices of a node one after the other."""

_QUICK: Final = 5
_WITHIN: Final = 30.0
_SLOW: Final = 5.0
"""Somebody who changes slices back each time is answered at once a few times within half a minute, and then slowly."""


class Publisher:
    """Publishes the pool of one driver on one node, in threads of its own.

    Args:
        back_end: Knows the devices; its `watch` is called by `start`.
        node: Its name, which is also the pool's.
        observer: Is told of each publishing, and of each that fails.
        lock: A file that two instances in a rolling update both see: the older one publishes until it ends.
    """

    def __init__(
        self, api: Api, *, back_end: BackEnd, node: str, observer: Observer, lock: Path | None = None
    ) -> None:
        self._api = api
        self._back_end = back_end
        self._node = node
        self._observer = observer
        self._sole = Sole(lock)
        self._storable = Storable(api)
        self._selector = f"spec.nodeName={node},spec.driver={back_end.driver}"
        self._watch = SliceWatch(api, self._selector, changed=self.publish, lost=self._server_was_away)
        self._wake = threading.Event()
        self._was_away = threading.Event()
        self._ended = threading.Event()
        self._published = threading.Event()
        self._written = Written()
        self._times: deque[float] = deque(maxlen=_QUICK)
        self._told: tuple[Problem, ...] = ()
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self) -> None:
        """Begin to publish; returns at once, for an API server that is away must not keep claims from being released."""
        self._back_end.watch(self.publish)
        self._watch.start()
        self._wake.set()
        self._thread.start()

    def publish(self) -> None:
        """Have it looked at again: something has changed, or may have."""
        self._wake.set()

    def wait(self, timeout: float) -> bool:
        """Whether everything was published once, or is within *timeout* seconds."""
        return self._published.wait(timeout)

    @property
    def stands_by(self) -> bool:
        """Whether another instance of the plugin publishes, for as long as it lives: there is nothing to do here then."""
        return self._sole.waits

    def stop(self) -> None:
        """End, and leave the slices: in a rolling update the next instance has the same devices."""
        self._ended.set()
        self._wake.set()
        self._watch.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)
        # Who still writes keeps it: the end of the process frees it.
        if not self._thread.is_alive():
            self._sole.leave()

    def withdraw(self) -> None:
        """End, and delete the slices: the node's devices are not given out any more.

        Raises:
            ApiError: Some may be left.
        """
        self.stop()
        items, _ = self._api.list(SLICES, field_selector=self._selector)
        for item in filter(_is_ours, items):
            self._api.delete(SLICES, item)

    def _run(self) -> None:
        failures = 0
        while self._wake.wait() and not self._ended.is_set():
            self._ended.wait(max(_SETTLE, self._too_quick()))
            self._wake.clear()
            try:
                with expected("publish"):
                    if not self._sole.take(self._ended):
                        return
                    if self._was_away.is_set():
                        self._was_away.clear()
                        self._forget_server()
                    slices = self._sync()
            except PluginError as error:
                failures += 1
                self._observer.published(slices=0, generation=self._written.generation, error=error)
                if not isinstance(error, ApiError) or error.status != 409:
                    self._forget_server()
                self._rest(pause_after(failures))
                continue
            failures = 0
            self._observer.published(slices=slices, generation=self._written.generation, error=None)
            self._published.set()

    def _server_was_away(self) -> None:
        """Look again. It may have been away for so short a time that no request of ours failed."""
        self._was_away.set()
        self._wake.set()

    def _forget_server(self) -> None:
        """What was not reached may be another release when it is back, or have other gates."""
        self._api.forget()
        self._storable.forget()

    def _rest(self, pause: float) -> None:
        """Wait after a failure, at most until something changes, and a moment at least."""
        self._ended.wait(min(pause, _SLOW / 5))
        self._wake.wait(pause)
        self._wake.set()

    def _too_quick(self) -> float:
        """Seconds to wait where slices were written many times just now."""
        full = len(self._times) == _QUICK and time.monotonic() - self._times[0] < _WITHIN
        return _SLOW if full else 0.0

    def _sync(self) -> int:
        """Bring the server's slices and the back end's devices together; the number of slices."""
        inventory = self._back_end.inventory()
        self._observer.devices(_by_state(inventory))
        owner = self._owner()
        items, version = self._api.list(SLICES, field_selector=self._selector)
        if foreign := [name_of(each) for each in items if not _is_ours(each)]:
            raise _taken(self._back_end.driver, self._node, foreign)
        times = taint_times([*self._written.specs, *(mapping(each.get("spec")) for each in items)])
        wanted = self._wanted(inventory, times)
        changes = find_changes(wanted, items, self._written, owner=owner)
        if changes:
            self._times.append(time.monotonic())
            self._write(changes, owner)
        self._written = Written(generation=changes.generation, specs=wanted)
        self._watch.listed(version)
        return len(wanted)

    def _wanted(
        self, inventory: Inventory, times: Mapping[tuple[str, str, str, str], str]
    ) -> tuple[Spec, ...]:
        """The specs as the server keeps them, of devices that it keeps whole enough."""
        lost: list[str] = []
        held_back: list[str] = []
        while True:
            specs = lay_out(inventory, driver=self._back_end.driver, node=self._node, minor=self._api.minor())
            specs = tuple(keep_taint_times(each, dict(times)) for each in specs)
            kept = self._storable.ask(specs)
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
        self._notice((dropped(self._back_end.driver, lost, held_back),) if lost else ())
        return tuple(stored for stored, _ in kept)

    def _notice(self, problems: tuple[Problem, ...]) -> None:
        if problems != self._told and problems:
            self._observer.noticed(problems)
        self._told = problems

    def _write(self, changes: Changes, owner: Mapping[str, Any]) -> None:
        for item in changes.first:
            self._delete(item)
        for item, spec in changes.update:
            metadata = {**mapping(item.get("metadata")), "ownerReferences": [owner]}
            self._watch.wrote(self._api.update(SLICES, {**item, "metadata": metadata, "spec": spec}))
        for index, spec in changes.create:
            metadata = {
                "generateName": f"{index:05x}-{self._back_end.driver}-{self._node}-",
                "labels": {MANAGED_BY: MANAGER},
                "ownerReferences": [owner],
            }
            self._watch.wrote(self._api.create(SLICES, {"metadata": metadata, "spec": spec}))
        for item in changes.last:
            self._delete(item)

    def _delete(self, item: Mapping[str, Any]) -> None:
        self._watch.deleting(item)
        self._api.delete(SLICES, item)

    def _owner(self) -> Mapping[str, Any]:
        """The node, whose end is also that of its slices."""
        node = self._api.get(NODES, self._node)
        if node is None:
            message = f"there is no node {self._node}"
            hint = "--node-name is the name in kubectl get nodes; the kubelet makes the node when it starts"
            problem = Problem(path="--node-name", code="node-not-known", message=message, hint=hint)
            raise PluginError([problem])
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._node,
            "uid": uid_of(node),
            "controller": True,
        }


def _is_ours(item: Mapping[str, Any]) -> bool:
    return labels_of(item).get(MANAGED_BY) == MANAGER


def _by_state(inventory: Inventory) -> Mapping[DeviceState, int]:
    states = Counter(
        inventory.health[each.name].state if each.name in inventory.health else "healthy"
        for each in inventory.devices
    )
    return {"healthy": states["healthy"], "unhealthy": states["unhealthy"], "unknown": states["unknown"]}


def _taken(driver: str, node: str, names: list[str]) -> PluginError:
    problem = Problem(
        path=f"slices of {driver}",
        code="driver-name-taken",
        message=f"another driver called {driver} publishes on node {node}: {', '.join(names[:3])}",
        hint="remove it, after which the kubelet deletes its slices, or give ours another name with --driver",
    )
    return PluginError([problem])
