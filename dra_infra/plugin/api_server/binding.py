"""Binding conditions: tells the scheduler when devices are ready for the claims it chose them for (KEP 5007).

A device with binding conditions is allocated first and used later: the pod waits in the scheduler until all of these
conditions of the claim's device are true, or a failure condition is, upon which the scheduler chooses anew.

Rights: get, list, watch of resourceclaims; patch of resourceclaims/status; from 1.36 on also `associated-node:patch`
of resourceclaims/driver for the driver's name, which a token of a pod on the node has to show.

Two instances of the plugin may both write the conditions of a claim's status for devices that had to be waited for.
What was said of a device stays: the scheduler acts on it once, and takes the allocation back, with all that was said,
or goes on. So two instances that think otherwise of a device do not overwrite each other for ever; the first one
counts.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal

from dra_infra.client.kinds import CLAIMS
from dra_infra.client.objects import name_of, namespace_of, text, uid_of
from dra_infra.errors import PluginError, Problem
from dra_infra.kubernetes.api import mapping, mappings
from dra_infra.plugin.api_server.client import Api, EventType
from dra_infra.plugin.api_server.informer import Informer
from dra_infra.plugin.api_server.refusals import ApiError, retry_after_of
from dra_infra.plugin.api_server.requests import backoff
from dra_infra.plugin.back_end import BackEnd, Bindings, Bound
from dra_infra.plugin.claims import ClaimReference
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.observing import Observer

Item = Mapping[str, Any]

_TYPES: Final = {"met": "bindingConditions", "failed": "bindingFailureConditions"}
_REASONS: Final = {"met": "DeviceReady", "failed": "DeviceFailed"}
_LONGEST: Final = 1024
"""Characters of a message that are written; the server takes 32,768."""

_KEYS: Final = ("driver", "pool", "device", "shareID")


def results_of(claim: Item, *, driver: str, pool: str) -> list[Item]:
    """Devices of a driver's pool in a claim's allocation that have conditions."""
    allocation = mapping(mapping(claim.get("status")).get("allocation"))
    return [
        each
        for each in mappings(mapping(allocation.get("devices")).get("results"))
        if each.get("driver") == driver and each.get("pool") == pool and each.get("bindingConditions")
    ]


def to_write(
    claim: Item, results: Sequence[Item], decided: Callable[[str], Bound | None]
) -> list[dict[str, Any]]:
    """Entries of `status.devices` with all that is said of *results*; none where nothing is new.

    What was said before is among it: in server-side apply a manager takes back what it does not repeat.
    """
    entries = {_key(each): each for each in mappings(mapping(claim.get("status")).get("devices"))}
    written = []
    new = False
    # A device that is there for two requests, once to watch it, has one entry.
    for result in {_key(each): each for each in results}.values():
        said = _said(result, mapping(entries.get(_key(result))))
        bound = decided(text(result.get("device")))
        if bound is not None and not said.keys() & _other_types(result, bound):
            for type_ in _types(result, bound.state):
                if type_ not in said:
                    said[type_] = _condition(type_, bound)
                    new = True
        if said:
            place = {key: result[key] for key in _KEYS if key in result}
            written.append({**place, "conditions": list(said.values())})
    return written if new else []


def _said(result: Item, entry: Item) -> dict[str, Item]:
    types = {*_types(result, "met"), *_types(result, "failed")}
    conditions = {text(each.get("type")): each for each in mappings(entry.get("conditions"))}
    return {key: each for key, each in conditions.items() if key in types and each.get("status") == "True"}


def _types(result: Item, state: Literal["met", "failed"]) -> list[str]:
    return [each for each in result.get(_TYPES[state]) or () if isinstance(each, str)]


def _other_types(result: Item, bound: Bound) -> set[str]:
    return set(_types(result, "failed" if bound.state == "met" else "met"))


def _condition(type_: str, bound: Bound) -> Item:
    return {
        "type": type_,
        "status": "True",
        "reason": _REASONS[bound.state],
        "message": bound.message[:_LONGEST],
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _key(item: Item) -> tuple[str, ...]:
    return tuple(text(item.get(key)) for key in _KEYS)


_NOT_FOUND: Final = 404
_CONFLICT: Final = 409


class Binder:
    """Writes conditions of this node's devices into the claims that are waited for.

    Nothing is watched before the back end has a device with binding conditions: the claims of a cluster are many.

    Args:
        back_end: Knows the devices; its `watch` is called by `start`.
        bindings: Says which of them are ready, most likely the same.
        node: Its name, which is also the pool's.
        observer: Is told what fails.
        wait: Waits for some seconds after a failure; tests pass one of their own.
    """

    def __init__(
        self,
        api: Api,
        *,
        back_end: BackEnd,
        bindings: Bindings,
        node: str,
        observer: Observer,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._api = api
        self._back_end = back_end
        self._bindings = bindings
        self._node = node
        self._observer = observer
        self._manager = f"dra-infra-plugin/{back_end.driver}"[:128]
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._wake = threading.Event()
        self._look = threading.Event()
        self._look.set()
        self._claims: dict[str, Item] = {}
        self._lock = threading.Lock()
        self._informer = Informer(
            api,
            CLAIMS,
            name="claim-watch",
            list_objects=self._list,
            on_event=self._on_event,
            wake=self._changed,
            on_error=lambda error: observer.noticed(error.problems),
        )
        self._thread = threading.Thread(target=self._work, name="binder", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._back_end.watch(self._changed)
        self._informer.start()
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._ended.set()
        self._informer.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def _changed(self) -> None:
        self._wake.set()
        self._look.set()

    def _list(self) -> str:
        """Keep the claims that wait for a device of this node."""
        if not any(each.binding_conditions for each in self._back_end.inventory().devices):
            self._look.wait()
            self._look.clear()
            return ""
        items, since = self._api.list(CLAIMS, keep=lambda item: bool(self._results(item)))
        with self._lock:
            self._claims = {}
        for item in items:
            self._keep(item)
        return since

    def _on_event(self, type_: EventType, item: Item) -> None:
        if type_ == "DELETED":
            self._forget(uid_of(item))
        elif type_ != "BOOKMARK":
            self._keep(item)

    def _keep(self, item: Item) -> None:
        if not self._results(item):
            self._forget(uid_of(item))
            return
        with self._lock:
            self._claims[uid_of(item)] = item
        self._wake.set()

    def _forget(self, uid: str) -> None:
        with self._lock:
            self._claims.pop(uid, None)

    def _results(self, item: Item) -> list[Item]:
        return results_of(item, driver=self._back_end.driver, pool=self._node)

    def _work(self) -> None:
        failures = 0
        while self._wake.wait():
            self._wake.clear()
            # Only now: `stop` says that it has ended before it wakes.
            if self._ended.is_set():
                return
            with self._lock:
                claims = list(self._claims.values())
            problems: list[Problem] = []
            again, retry_after = False, 0.0
            for item in claims:
                try:
                    with as_plugin_error("write conditions of a claim"):
                        again = not self._write(item) or again
                except PluginError as error:
                    problems.extend(error.problems)
                    again = True
                    retry_after = max(retry_after, retry_after_of(error))
            if problems:
                self._observer.noticed(problems)
            failures = failures + 1 if again else 0
            if again:
                self._wait(backoff(failures, retry_after))
                self._wake.set()

    def _write(self, item: Item) -> bool:
        """Write the conditions of a claim; false where somebody had changed it, and it was read again."""
        reference = ClaimReference(namespace=namespace_of(item), name=name_of(item), uid=uid_of(item))
        results = self._results(item)
        entries = to_write(item, results, lambda device: self._bindings.binding(reference, device))
        if not entries:
            return True
        metadata = {
            "namespace": reference.namespace,
            "name": reference.name,
            "uid": reference.uid,
            # An older instance in a rolling update is the same manager: what it said since would be taken back.
            "resourceVersion": text(mapping(item.get("metadata")).get("resourceVersion")),
        }
        manifest = {"metadata": metadata, "status": {"devices": entries}}
        try:
            written = self._api.apply_status(CLAIMS, manifest, manager=self._manager)
        except ApiError as error:
            if error.status not in (_NOT_FOUND, _CONFLICT):
                raise
            # Not left to the watch: it may have told this change before, or be lost.
            written = self._api.get(CLAIMS, reference.name, reference.namespace) or {}
            if uid_of(written) != reference.uid:
                self._forget(reference.uid)
                return True
            self._replace(item, written)
            return False
        self._replace(item, written)
        return True

    def _replace(self, item: Item, written: Item) -> None:
        """Keep what was written or read in the place of *item*; not of what the watch told meanwhile, which is newer."""
        with self._lock:
            if self._claims.get(uid_of(item)) is item:
                self._claims[uid_of(item)] = written
