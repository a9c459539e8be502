"""Keeps the node's slices on the API server as the back end has its devices, whoever deletes or changes them.

There is one publisher at a time on a node, also while two instances of the plugin are alive in a rolling update. Two
that publish other things would overwrite each other for as long as both are there. The one that was there first goes
on until it ends; the kernel then frees the file, and the other one takes over.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dra_infra.errors import PluginError
from dra_infra.kubernetes.api import mapping
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.refusals import ApiError, joined, retry_after_of
from dra_infra.plugin.api_server.requests import backoff
from dra_infra.plugin.back_end import BackEnd, Inventory
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.locks import open_lock, try_lock
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.publishing.desired_slices import DesiredSlices, count_by_state, is_refused
from dra_infra.plugin.publishing.pool_changes import TaintTimes, Written, find_changes, taint_times
from dra_infra.plugin.publishing.pools import Spec
from dra_infra.plugin.publishing.slice_writing import NAME_TAKEN, SliceWatch, SliceWriter, selector

_AGAIN: Final = 0.5
"""Seconds between two looks at the file."""


class PublisherLock:
    """Lock file of the one instance that publishes, until it ends.

    Args:
        path: On a file system that both instances see; without one nobody else is looked for.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._handle: int | None = None
        self.waited = False
        """True where another instance has the lock, or had it before."""

    def acquire(self, ended: threading.Event) -> bool:
        """Wait for the lock, or until *ended*; True where it is ours.

        Raises:
            PluginError: `plugin-folder-not-usable`.
        """
        if self._path is None or self._handle is not None:
            return not ended.is_set()
        handle = open_lock(self._path)
        try:
            while not ended.is_set():
                if try_lock(handle, self._path):
                    self._handle = handle
                    return True
                self.waited = True
                ended.wait(_AGAIN)
            return False
        finally:
            if self._handle is None:
                os.close(handle)

    def release(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


Item = Mapping[str, Any]

_SETTLE: Final = 0.05
"""Seconds in which changes are gathered: the kubelet deletes all slices of a node one after the other."""

_QUICK: Final = 5
_WITHIN: Final = 30.0
_ASIDE: Final = 120.0
"""Seconds for which another driver's slices are waited out. The kubelet deletes those of one that went after 30; whoever has
them there for longer is no driver of this node, and what we prepared in an earlier life has to be released."""

_SLOW: Final = 5.0
"""Somebody who changes slices back each time is answered at once a few times within half a minute, and then slowly."""


class Publisher:
    """Publishes the pool of one driver on one node, in threads of its own.

    Args:
        back_end: Knows the devices; its `watch` is called by `start`.
        node: Its name, which is also the pool's.
        observer: Is told of each publishing, and of each that fails.
        lock: A file that two instances in a rolling update both see: the older one publishes until it ends.
        wait: Waits for some seconds after a failure; tests pass one of their own.
        aside: Seconds for which `start` says that the name is taken.
    """

    def __init__(
        self,
        api: Api,
        *,
        back_end: BackEnd,
        node: str,
        observer: Observer,
        lock: Path | None = None,
        wait: Callable[[float], bool] | None = None,
        aside: float = _ASIDE,
    ) -> None:
        self._api = api
        self._back_end = back_end
        self._observer = observer
        self._publisher_lock = PublisherLock(lock)
        self._desired = DesiredSlices(api, driver=back_end.driver, node=node, observer=observer)
        self._watch = SliceWatch(
            api,
            selector(back_end.driver, node),
            changed=self.publish,
            lost=self._server_was_away,
            on_error=lambda error: observer.noticed(error.problems),
        )
        self._writer = SliceWriter(api, self._watch, driver=back_end.driver, node=node)
        self._wake = threading.Event()
        self._was_away = threading.Event()
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._published = threading.Event()
        self._on_name_taken: Callable[[bool], None] | None = None
        self._taken_since: float | None = None
        self._aside = aside
        self._written = Written()
        self._tainted: TaintTimes = {}
        self._times: deque[float] = deque(maxlen=_QUICK)
        self._thread = threading.Thread(target=self._run, name="publisher", daemon=True)

    def start(self, *, on_name_taken: Callable[[bool], None] | None = None) -> None:
        """Begin to publish; returns at once, for an API server that is away must not keep claims from being released.

        Args:
            on_name_taken: Is told, from another thread, whether another driver of the name has slices on the node, until it has none,
                or has kept them for too long. May raise `PluginError`, and is told again then.
        """
        self._on_name_taken = on_name_taken
        self._back_end.watch(self.publish)
        self._watch.start()
        self._wake.set()
        self._thread.start()

    def publish(self) -> None:
        """Ask for another publishing: something has changed, or may have."""
        self._wake.set()

    def wait(self, timeout: float) -> bool:
        """Wait up to *timeout* seconds until everything was published once; returns whether it was."""
        return self._published.wait(timeout)

    @property
    def is_successor(self) -> bool:
        """True where another instance publishes, or published until it ended: its slices stay until ours take their place."""
        return self._publisher_lock.waited

    def stop(self) -> None:
        """End, and leave the slices: in a rolling update the next instance has the same devices."""
        self._ended.set()
        self._wake.set()
        self._watch.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)
        # Who still writes keeps it: the end of the process frees it.
        if not self._thread.is_alive():
            self._publisher_lock.release()

    def _run(self) -> None:
        failures = 0
        while self._wake.wait():
            self._ended.wait(max(_SETTLE, self._too_quick()))
            self._wake.clear()
            # Only now: `stop` says that it has ended before it wakes.
            if self._ended.is_set():
                return
            try:
                with as_plugin_error("publish"):
                    if not self._publisher_lock.acquire(self._ended):
                        return
                    if self._was_away.is_set():
                        self._was_away.clear()
                        self._forget_server()
                    slices = self._sync()
            except PluginError as error:
                failures += 1
                self._observer.published(slices=0, generation=self._written.generation, error=error)
                self._report_conflict(error)
                if not isinstance(error, ApiError) or error.status != 409:
                    self._forget_server()
                self._rest(failures, retry_after_of(error))
                continue
            failures = 0
            self._observer.published(slices=slices, generation=self._written.generation, error=None)
            self._published.set()

    def _report_conflict(self, error: PluginError) -> None:
        """Report that another driver has the name, for as long as standing aside helps; what fails is tried again."""
        if self._on_name_taken is None:
            return
        now = time.monotonic()
        is_taken = any(each.code == NAME_TAKEN for each in error.problems)
        if is_taken and self._taken_since is None:
            self._taken_since = now
        try:
            # Also while nobody answers: it is known no better how long they stay.
            if self._taken_since is not None and now - self._taken_since >= self._aside:
                self._report_free()
            elif is_taken:
                self._on_name_taken(True)  # noqa: FBT003  (an answer)
        except PluginError as more:
            self._observer.noticed(more.problems)

    def _report_free(self) -> None:
        """Report, once and for all, that the name is free: later on the kubelet has to find us to have claims released."""
        if self._on_name_taken is not None:
            self._on_name_taken(False)  # noqa: FBT003  (an answer)
            self._on_name_taken = None

    def _server_was_away(self) -> None:
        """Look again. It may have been away for so short a time that no request of ours failed."""
        self._was_away.set()
        self._wake.set()

    def _forget_server(self) -> None:
        """Forget the server's version and gates: it may have others when it is back."""
        self._api.forget()
        self._desired.forget()

    def _rest(self, failures: int, retry_after: float) -> None:
        """Wait after a failure, at most until something changes, and a moment at least, or what the server asked for."""
        pause = backoff(failures, retry_after)
        self._wait(pause if retry_after else min(pause, _SLOW / 5))
        self._wake.wait(0.0 if retry_after else pause)
        self._wake.set()

    def _too_quick(self) -> float:
        """Seconds to wait where slices were written many times just now."""
        full = len(self._times) == _QUICK and time.monotonic() - self._times[0] < _WITHIN
        return _SLOW if full else 0.0

    def _sync(self) -> int:
        """Bring the server's slices and the back end's devices together; the number of slices."""
        inventory = self._back_end.inventory()
        self._observer.devices(count_by_state(inventory))
        owner = self._writer.owner()
        (items, version) = self._writer.find()
        self._report_free()
        # Those of devices that were taken out of the slices stay known until all is published again.
        self._tainted |= taint_times([*self._written.specs, *(mapping(each.get("spec")) for each in items)])
        last = self._written.specs
        try:
            with as_plugin_error("lay out the node's devices"):
                wanted = self._desired.specs(inventory, self._tainted)
            self._bring(wanted, items, owner)
        except PluginError as error:
            if is_refused(error):
                self._keep_what_remains(last, inventory, owner, error)
            raise
        self._tainted = taint_times(wanted)
        self._watch.listed(version)
        return len(wanted)

    def _keep_what_remains(
        self, last: Sequence[Spec], inventory: Inventory, owner: Item, refusal: PluginError
    ) -> None:
        """Nobody is to get a device that is gone for as long as the new ones are refused."""
        try:
            # Anew: some may have been written before one was refused.
            items, _ = self._writer.find()
            if remaining := self._desired.remaining(last, items, inventory):
                self._bring(remaining, items, owner)
        except ApiError as error:
            raise joined(refusal, error) from refusal

    def _bring(self, wanted: Sequence[Spec], items: Sequence[Item], owner: Item) -> None:
        """Write the slices *wanted* in the place of *items*."""
        changes = find_changes(wanted, items, self._written, owner=owner)
        if changes:
            self._times.append(time.monotonic())
            self._writer.write(changes, owner)
        self._written = Written(generation=changes.generation, specs=tuple(wanted))
