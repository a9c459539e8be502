"""Tells the scheduler when devices are ready for the claims that it chose them for (KEP 5007).

A device with binding conditions is allocated first and used later: the pod waits in the scheduler until all of these
conditions of the claim's device are true, or a failure condition is, upon which the scheduler chooses anew.

Rights: list, watch of resourceclaims; patch of resourceclaims/status; from 1.36 on also `associated-node:patch` of
resourceclaims/driver for the driver's name, which a token of a pod on the node has to show.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol

from dra_infra.cluster.kinds import CLAIMS
from dra_infra.cluster.objects import mapping, mappings, name_of, namespace_of, text, uid_of
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.pauses import pause_after
from dra_infra.plugin.api_server.refusals import ApiError
from dra_infra.plugin.api_server.watch import Watching
from dra_infra.plugin.back_end import BackEnd
from dra_infra.plugin.claims import ClaimReference
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.unexpected import expected

Item = Mapping[str, Any]

_REASONS: Final = {"met": "DeviceReady", "failed": "DeviceFailed"}
_LONGEST: Final = 1024
"""Characters of a message that are written; the server takes 32,768."""


class Bound(Protocol):
    """What is known of a device for a claim."""

    @property
    def state(self) -> Literal["met", "failed"]:
        """Whether it is ready, or never will be."""
        ...

    @property
    def message(self) -> str:
        """For a person."""
        ...


class Bindings(Protocol):
    """The part of a back end that devices with binding conditions need."""

    def binding(self, claim: ClaimReference, device: str) -> Bound | None:
        """Whether a device is ready for a claim; None while that is not decided. `BackEnd.watch` tells when it may be."""
        ...


class Binder:
    """Writes conditions of this node's devices into the claims that are waited for.

    Nothing is watched before the back end has a device with binding conditions: the claims of a cluster are many.
    """

    def __init__(
        self, api: Api, *, back_end: BackEnd, bindings: Bindings, node: str, observer: Observer
    ) -> None:
        self._api = api
        self._back_end = back_end
        self._bindings = bindings
        self._node = node
        self._observer = observer
        self._manager = f"dra-infra-plugin/{back_end.driver}"[:128]
        self._ended = threading.Event()
        self._wake = threading.Event()
        self._look = threading.Event()
        self._look.set()
        self._watching: Watching | None = None
        self._claims: dict[str, Item] = {}
        self._lock = threading.Lock()
        self._since = ""
        self._threads = [
            threading.Thread(target=target, name=name, daemon=True)
            for target, name in ((self._follow, "claim-watch"), (self._work, "binder"))
        ]

    def start(self) -> None:
        """Begin; returns at once."""
        self._back_end.watch(self._changed)
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """End."""
        self._ended.set()
        self._changed()
        if self._watching is not None:
            self._watching.stop()
        for each in self._threads:
            if each.is_alive():
                each.join(timeout=5.0)

    def _changed(self) -> None:
        self._wake.set()
        self._look.set()

    def _is_needed(self) -> bool:
        return any(each.binding_conditions for each in self._back_end.inventory().devices)

    def _follow(self) -> None:
        """Keep the claims that wait for a device of this node."""
        failures = 0
        while not self._ended.is_set():
            try:
                with expected("watch claims"):
                    failures = 0 if self._follow_once() else failures + 1
            except PluginError as error:
                failures += 1
                self._since = ""
                self._observer.noticed(error.problems)
            if failures:
                self._ended.wait(pause_after(failures))

    def _follow_once(self) -> bool:
        """Whether anything came."""
        if not self._since and not self._is_needed():
            self._look.wait()
            self._look.clear()
            return True
        if not self._since:
            self._list()
        watching = self._watching = self._api.watch(CLAIMS, self._since)
        if self._ended.is_set():
            # `stop` may have looked for a watch before there was this one, which would last for minutes.
            return True
        anything = False
        for type_, item in watching:
            anything = True
            self._since = text(mapping(item.get("metadata")).get("resourceVersion")) or self._since
            if type_ != "BOOKMARK":
                self._keep(item, gone=type_ == "DELETED")
            if self._ended.is_set():
                break
        return anything

    def _list(self) -> None:
        items, since = self._api.list(CLAIMS, keep=lambda item: bool(self._results(item)))
        with self._lock:
            self._claims = {}
        for item in items:
            self._keep(item, gone=False)
        self._since = since

    def _keep(self, item: Item, *, gone: bool) -> None:
        waits = not gone and any(True for _ in self._results(item))
        with self._lock:
            if waits:
                self._claims[uid_of(item)] = item
            else:
                self._claims.pop(uid_of(item), None)
        if waits:
            self._wake.set()

    def _results(self, item: Item) -> list[Item]:
        """Devices of this node in an allocation that have conditions."""
        allocation = mapping(mapping(item.get("status")).get("allocation"))
        return [
            each
            for each in mappings(mapping(allocation.get("devices")).get("results"))
            if each.get("driver") == self._back_end.driver
            and each.get("pool") == self._node
            and each.get("bindingConditions")
        ]

    def _work(self) -> None:
        failures = 0
        while self._wake.wait() and not self._ended.is_set():
            self._wake.clear()
            with self._lock:
                claims = list(self._claims.values())
            problems: list[Problem] = []
            for item in claims:
                try:
                    with expected("write conditions of a claim"):
                        self._write(item)
                except PluginError as error:
                    # One that is gone, or another's by now, comes again as an event.
                    if not isinstance(error, ApiError) or error.status not in (404, 409):
                        problems.extend(error.problems)
            if problems:
                failures += 1
                self._observer.noticed(problems)
                self._ended.wait(pause_after(failures))
                self._wake.set()
            else:
                failures = 0

    def _write(self, item: Item) -> None:
        reference = ClaimReference(namespace=namespace_of(item), name=name_of(item), uid=uid_of(item))
        before = {_key(each): each for each in mappings(mapping(item.get("status")).get("devices"))}
        entries, changed = [], False
        for result in self._results(item):
            bound = self._bindings.binding(reference, text(result.get("device")))
            if bound is None:
                continue
            types = result.get("bindingConditions" if bound.state == "met" else "bindingFailureConditions")
            known = {
                text(each.get("type")): each
                for each in mappings(mapping(before.get(_key(result))).get("conditions"))
            }
            conditions = [
                _condition(type_, bound, known.get(type_)) for type_ in types or () if isinstance(type_, str)
            ]
            changed = changed or any(each != known.get(text(each["type"])) for each in conditions)
            keys = ("driver", "pool", "device", "shareID")
            entries.append({**{key: result[key] for key in keys if key in result}, "conditions": conditions})
        if changed:
            metadata = {"namespace": reference.namespace, "name": reference.name, "uid": reference.uid}
            manifest = {"metadata": metadata, "status": {"devices": entries}}
            written = self._api.apply_status(CLAIMS, manifest, manager=self._manager)
            with self._lock:
                if reference.uid in self._claims:
                    self._claims[reference.uid] = written


def _condition(type_: str, bound: Bound, before: Item | None) -> dict[str, Any]:
    wanted = {
        "type": type_,
        "status": "True",
        "reason": _REASONS[bound.state],
        "message": bound.message[:_LONGEST],
    }
    old = mapping(before)
    since = text(old.get("lastTransitionTime")) if old.get("status") == "True" else ""
    return {**wanted, "lastTransitionTime": since or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}


def _key(item: Item) -> tuple[str, str, str, str]:
    return (
        text(item.get("driver")),
        text(item.get("pool")),
        text(item.get("device")),
        text(item.get("shareID")),
    )
