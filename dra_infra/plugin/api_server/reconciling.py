"""Compares what is prepared on the node with the claims of the API server: at the start, and now and then.

The kubelet owns release: it alone knows whether containers still run, also of pods that are gone from the API server.
So this releases only what the kubelet cannot, restores what the plugin itself has lost, and tries again to undo what
is half-way.

The claims that the kubelet of the node knows are read from the file in which it keeps them. It writes a claim there
before it asks a driver to prepare it, and takes it away when all drivers have released it, so what is not in it is
nobody's to release (pkg/kubelet/cm/dra of Kubernetes 1.34 to 1.37: manager.go, state/checkpoint.go).
"""

from __future__ import annotations

import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dra_infra.client.kinds import CLAIMS
from dra_infra.client.objects import name_of, namespace_of, uid_of
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.api_server.claim_reading import ClaimReader
from dra_infra.plugin.api_server.client import Api
from dra_infra.plugin.api_server.refusals import retry_after_of
from dra_infra.plugin.api_server.requests import backoff
from dra_infra.plugin.claims import ClaimReference
from dra_infra.plugin.disk import open_plain
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.observing import Observer
from dra_infra.plugin.preparations import Preparations

NAME: Final = "dra_manager_state"
"""Name of the kubelet's file of claims, in its folder."""

_LARGEST: Final = 64 * 1024 * 1024


def claims_of_kubelet(path: Path) -> frozenset[str] | None:
    """UIDs of the claims that the kubelet has; None where the file cannot be read, or is not as it is known here."""
    try:
        # Through links too: the folder is the kubelet's, and whoever set it up may have moved the file.
        with open_plain(path, follow=True) as file:
            # The kubelet puts a new file in its place: one that is mounted by itself stays the old one, with no name left.
            if file is None or not os.fstat(file.fileno()).st_nlink:
                return None
            content = file.read(_LARGEST + 1)
        outer = json.loads(content)
        data = outer["Data"]
        if len(content) > _LARGEST or zlib.crc32(data.encode()) != outer["Checksum"]:
            return None
        inner = json.loads(data)
        if inner["kind"] != "DRACheckpoint":
            return None
        uids = [each["ClaimUID"] for each in inner["ClaimInfoStateList"] or ()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return frozenset(uids) if all(isinstance(uid, str) for uid in uids) else None


PERIOD: Final = 600.0
"""Seconds between two looks, as NVIDIA's driver tidies up (nvidia driver, gpu-kubelet-plugin cleanup)."""

GRACE_SECONDS: Final = 120.0
"""Seconds for which nobody may have a claim before it is released here: the kubelet tidies up each minute (reconcilePeriod)."""

_NOBODYS: Final = frozenset(
    {
        "claim-without-allocation",
        "claim-not-reserved",
        "claim-no-device",
        "claim-other-node",
    }
)


class _KnownError(Exception):
    """A claim is the kubelet's to release."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reconciled:
    """Result of one comparison.

    Args:
        restored: Claims whose record was lost and is there again.
        released: Claims that nobody had any more.
        left_over: Claims that nobody has, and that are not for us to release, or not yet.
    """

    restored: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    left_over: tuple[str, ...] = ()


class Reconciler:
    """Looks at the start, and each ten minutes, in a thread of its own.

    Args:
        reader: Reads claims as the service does.
        kubelet_state: The kubelet's file of claims; without it what is completed is left to the kubelet for ever.
        clock: Seconds; tests pass one of their own.
    """

    def __init__(
        self,
        api: Api,
        *,
        reader: ClaimReader,
        preparations: Preparations,
        observer: Observer,
        kubelet_state: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._reader = reader
        self._preparations = preparations
        self._observer = observer
        self._kubelet_state = kubelet_state
        self._clock = clock
        self._nobodys: dict[str, float] = {}
        self._half_way = False
        self._undo_from = 0.0
        self._reported: frozenset[str] = frozenset()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reconciler", daemon=True)

    def start(self) -> None:
        """Begin; returns at once, for an API server that is away must not keep claims from being released."""
        self._thread.start()

    def stop(self) -> None:
        """End."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def look(self) -> Reconciled:
        """Look once.

        Raises:
            PluginError: The codes of `Api`, and `plugin-folder-not-usable`; what was not looked at is the next time.
        """
        now = self._clock()
        # Not at each look: while the API server is away these follow each other quickly.
        if now >= self._undo_from:
            self._undo_from = now + GRACE_SECONDS
            self._half_way = self._preparations.undo_rest()
        lost = self._preparations.not_restored()
        restored, lost_and_gone, idle = self._restore(lost)
        nobodys = lost_and_gone | idle | self._gone()
        self._nobodys = {uid: self._nobodys.get(uid, now) for uid in nobodys}
        ripe = {uid for uid, since in self._nobodys.items() if now - since >= GRACE_SECONDS}
        released = tuple(
            sorted(uid for uid in ripe if self._release(uid, without_asking=uid in lost_and_gone))
        )
        for uid in released:
            del self._nobodys[uid]
        left_over = tuple(sorted(ripe - set(released)))
        found = Reconciled(restored=restored, released=released, left_over=left_over)
        self._report(found)
        return found

    def _run(self) -> None:
        failures = 0
        pause = 0.0
        while not self._ended.wait(pause):
            try:
                with as_plugin_error("compare what is prepared with the API server"):
                    self.look()
            except PluginError as error:
                failures += 1
                pause = backoff(failures, retry_after_of(error))
                if failures == 1:
                    self._observer.noticed(error.problems)
            else:
                failures = 0
                # Whoever seems to be nobody's is looked at again as soon as that counts; and what could not be undone.
                pause = GRACE_SECONDS if self._nobodys or self._half_way else PERIOD

    def _restore(self, lost: frozenset[str]) -> tuple[tuple[str, ...], set[str], set[str]]:
        """Prepare lost claims that a pod of this node has; those of the others that are gone, and that nobody has now."""
        if not lost:
            return (), set(), set()
        # Only their UIDs are known, so all are asked for; it takes a damaged disk to get here.
        items, _ = self._api.list(CLAIMS, keep=lambda item: uid_of(item) in lost)
        living = {uid_of(item): item for item in items}
        restored = []
        gone = set()
        idle = set()
        for uid in sorted(lost):
            item: Mapping[str, Any] | None = living.get(uid)
            if item is None:
                gone.add(uid)
                continue
            reference = ClaimReference(namespace=namespace_of(item), name=name_of(item), uid=uid)
            try:
                if self._preparations.restore(self._reader.claim_of(item, reference)):
                    restored.append(uid)
            except PluginError as error:
                if error.problems[0].code in _NOBODYS:
                    idle.add(uid)
                else:
                    # Such as other devices than it had: the kubelet releases it first.
                    self._observer.noticed(error.problems)
        return tuple(restored), gone, idle

    def _gone(self) -> set[str]:
        """Claims that are prepared, and that are no more; those that nobody has just now are the kubelet's to release."""
        gone = set()
        for uid, record in self._preparations.prepared().items():
            if self._ended.is_set():
                break
            found = self._api.read(CLAIMS, record.claim.name, record.claim.namespace, take=uid_of)
            if found != uid:
                gone.add(uid)
        return gone

    def _release(self, uid: str, *, without_asking: bool) -> bool:
        """Release a claim that the kubelet will not; whether it was.

        Args:
            uid: The claim.
            without_asking: Whether that is so where the kubelet's file cannot be seen. It is of a claim that is gone for
                ever and was lost here: the kubelet has had its turn, and nobody else would end it. One that is only idle
                may be used again.
        """

        def check() -> None:
            known = claims_of_kubelet(self._kubelet_state) if self._kubelet_state else None
            if not (without_asking if known is None else uid not in known):
                raise _KnownError

        try:
            # Asked when the turn came: the kubelet may have had the claim prepared while this waited for it.
            self._preparations.release(uid, check=check)
        except _KnownError:
            return False
        return True

    def _report(self, found: Reconciled) -> None:
        self._observer.reconciled(
            prepared=len(self._preparations.prepared()),
            released=len(found.released),
            restored=len(found.restored),
        )
        new = frozenset(found.left_over) - self._reported
        self._reported = frozenset(found.left_over)
        if new:
            self._observer.noticed([_left_over(uid) for uid in sorted(new)])


def _left_over(uid: str) -> Problem:
    return Problem(
        path=f"ResourceClaim with the UID {uid}",
        code="claim-left-over",
        message="is prepared here, and is not on the API server any more",
        hint="the kubelet releases it when its pods have ended; if this stays, see whether the kubelet runs",
        severity="warning",
    )
