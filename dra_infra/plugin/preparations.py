"""Prepares and releases claims, so that a crash at any step leaves nothing that the next start cannot put right.

The order of the steps, and why each is safe, is in docs/node-plugin.md.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin import failures
from dra_infra.plugin.back_end import Devices
from dra_infra.plugin.cdi import CdiFolder, device_ids, device_names
from dra_infra.plugin.checkpoint import Checkpoint
from dra_infra.plugin.claims import Claim, ClaimDevice, Record, check_uid, find_holder
from dra_infra.plugin.failures import as_plugin_error
from dra_infra.plugin.locks import PreparationLock

_CDI_NAME: Final = re.compile(r"[-0-9a-f]{36}-(?P<preparation>[0-9a-f]{8})-\d+-(?P<device>.+)")


def _never_cancelled() -> None:
    """Check of callers that never go away."""


class Preparations:
    """The claims that are prepared on this node for one driver.

    Args:
        boot_id: Of the machine (/proc/sys/kernel/random/boot_id): what an earlier boot had prepared is gone.
        notice: Is told what is found later than at the start, which `recover` returns.
    """

    def __init__(
        self,
        *,
        driver: str,
        boot_id: str,
        checkpoint: Checkpoint,
        specs: CdiFolder,
        back_end: Devices,
        lock: PreparationLock,
        notice: Callable[[Sequence[Problem]], None] = lambda _: None,
    ) -> None:
        self._driver = driver
        self._boot_id = boot_id
        self._checkpoint = checkpoint
        self._specs = specs
        self._devices = back_end
        self._lock = lock
        self._notice = notice
        self._unsure = True
        self._without_record = False
        self._problems: tuple[Problem, ...] = ()

    def recover(self) -> tuple[Problem, ...]:
        """Bring checkpoint, specs and devices together, as every first call does.

        Returns:
            What was set aside, and what could not be undone; nothing else is kept from working by it.
        """
        with self._locked(tell=False):
            return self._problems

    def undo_rest(self) -> bool:
        """Try again to undo half-prepared claims, and report what is new; True where something of it is still there.

        Raises:
            PluginError: `turn-not-had`, `plugin-folder-not-usable`.
        """
        with self._locked() as recovered:
            # Whoever has the turn is alone, so nobody is at work on it.
            if self._is_half_way() and not recovered:
                self._unsure = True
                self._found(tuple(self._recover()))
                self._unsure = False
            return self._is_half_way()

    def prepared(self) -> Mapping[str, Record]:
        """The claims that are prepared, by UID."""
        with self._locked():
            records = self._checkpoint.records
            return {uid: each for uid, each in records.items() if self._is_whole(each)}

    def not_restored(self) -> frozenset[str]:
        """Claims with a spec or a file that was set aside, and no record.

        `prepare` and `restore` bring them back, `release` ends them.
        """
        with self._locked():
            return self._lost()

    def prepare(
        self, claim: Claim, *, within: float | None = None, check: Callable[[], None] = _never_cancelled
    ) -> tuple[str, ...]:
        """Prepare a claim; one that is prepared already is answered the same.

        Args:
            claim: What to prepare.
            within: Seconds for which the caller waits for this to begin.
            check: Asked when the turn came, before anything is done: raises where that is not wanted any more. A claim that
                is prepared after its caller went may be one that was released in between.

        Returns:
            A CDI id for each of the claim's devices, in their order.

        Raises:
            PluginError: `device-held`, `claim-prepared-otherwise`, `claim-not-restored`, `claim-too-large`, `invalid-claim-uid`,
                `cdi-refused`, `plugin-folder-not-usable`, and what the back end says, as `plugin-failed` where it is nothing
                that it may raise. Nothing is prepared then.
        """
        check_uid(claim.uid)
        with self._locked(within):
            check()
            return device_ids(self._find_or_prepare(claim), self._driver)

    def restore(self, claim: Claim) -> bool:
        """Prepare a claim whose record was lost; False where it was not, or was released or prepared meanwhile.

        Raises:
            PluginError: As `prepare`.
        """
        check_uid(claim.uid)
        with self._locked():
            # Whoever asks has read claims from the API server meanwhile. The kubelet does not know one that it has had released.
            if claim.uid not in self._lost():
                return False
            self._find_or_prepare(claim)
            return True

    def release(
        self, uid: str, *, within: float | None = None, check: Callable[[], None] = _never_cancelled
    ) -> None:
        """Release a claim; one that is not prepared is no error. *within* and *check* are those of `prepare`.

        Raises:
            PluginError: `invalid-claim-uid`, `plugin-folder-not-usable`, and what the back end says; the claim's devices
                are kept back then, and the next call goes on.
        """
        check_uid(uid)
        with self._locked(within):
            check()
            record = self._checkpoint.records.get(uid)
            if record:
                self._undo(record)
            elif uid in self._lost():
                # The spec goes last: with it less is kept back than without.
                self._unsure = True
                self._devices.release(Claim(uid=uid, namespace="", name="", devices=self._devices_of(uid)))
                self._checkpoint.forget(uid)
                self._specs.remove(uid)
                self._unsure = False

    @contextmanager
    def _locked(self, within: float | None = None, *, tell: bool = True) -> Iterator[bool]:
        """Hold the lock; yields true where something was recovered first, as is done behind a failure or another process."""
        with self._lock.acquire(within=within) as others:
            recovers = others or self._unsure
            if recovers:
                self._unsure = True
                self._found(tuple(self._recover()), tell=tell)
                self._unsure = False
            yield recovers

    def _found(self, problems: tuple[Problem, ...], *, tell: bool = True) -> None:
        new = [each for each in problems if each not in self._problems]
        self._problems = problems
        if new and tell:
            self._notice(new)

    def _recover(self) -> Iterator[Problem]:
        self._specs.tidy()
        yield from self._checkpoint.load(self._boot_id)
        # Whoever has the turn is alone: what is half-way belongs to a process that died.
        for record in tuple(self._checkpoint.records.values()):
            try:
                # One claim with which nobody knows what to do keeps no other back.
                with as_plugin_error(f"recover claim {record.claim.uid}"):
                    if self._is_whole(record):
                        self._specs.write(record)
                    else:
                        self._undo(record)
            except PluginError as error:
                yield from error.problems
        # Asked here alone: looking through a folder of a thousand specs takes as long as writing one.
        self._without_record = not self._specs.uids() <= self._checkpoint.records.keys()

    def _is_whole(self, record: Record) -> bool:
        return (
            record.state == "completed"
            and record.boot_id == self._boot_id
            and record.claim.uid not in self._checkpoint.releasing
        )

    def _is_half_way(self) -> bool:
        return not all(map(self._is_whole, self._checkpoint.records.values()))

    def _find_or_prepare(self, claim: Claim) -> Record:
        """The record of a claim: the one that there is, what its spec tells, or that of a new preparation."""
        known = self._checkpoint.records.get(claim.uid) or self._restore(claim)
        if known and not self._is_whole(known):
            self._undo(known)
            known = None
        if known:
            if known.claim.devices != claim.devices:
                raise failures.prepared_otherwise(claim, known.claim)
            self._specs.write(known)
            return known
        self._refuse_held(claim)
        return self._prepare_anew(claim)

    def _prepare_anew(self, claim: Claim) -> Record:
        started = Record(
            claim=claim, state="started", preparation=secrets.token_hex(4), boot_id=self._boot_id
        )
        self._unsure = True
        try:
            with as_plugin_error(f"prepare claim {claim.uid}"):
                # On the disk before a device is touched: what hardware keeps through a boot, such as MIG mode, would be nobody's.
                # Nothing else needs to be, for another boot undoes all that it finds.
                self._checkpoint.begin(started)
                completed = replace(started, state="completed", edits=tuple(self._devices.prepare(claim)))
                self._specs.write(completed)
                self._checkpoint.complete(completed)
        except PluginError as error:
            # From here on as after a crash: what this cannot undo, the next turn tries again.
            try:
                with as_plugin_error(f"undo claim {claim.uid}"):
                    self._found(self._checkpoint.load(self._boot_id))
                    self._undo(self._checkpoint.records.get(claim.uid, started))
            except PluginError as more:
                # The log takes the traceback of a bug from the cause.
                raise PluginError([*error.problems, *more.problems]) from _bug(error) or _bug(more) or error
            raise
        self._unsure = False
        return completed

    def _undo(self, record: Record) -> None:
        uid = record.claim.uid
        self._unsure = True
        if self._is_whole(record):
            self._checkpoint.begin_release(uid)
        self._specs.remove(uid)
        self._devices.release(record.claim)
        self._checkpoint.forget(uid)
        self._unsure = False

    def _lost(self) -> frozenset[str]:
        """Claims that have something of ours on the disk, and no record."""
        if not self._without_record:
            return self._checkpoint.unreadable
        return self._checkpoint.unreadable | (self._specs.uids() - self._checkpoint.records.keys())

    def _restore(self, claim: Claim) -> Record | None:
        """The record of a claim that has none any more: names of its devices tell which preparation it was."""
        names = self._names(claim.uid) if claim.uid in self._lost() else ()
        first = _CDI_NAME.fullmatch(names[0]) if names else None
        if not first:
            return None
        record = Record(
            claim=claim, state="completed", preparation=first["preparation"], boot_id=self._boot_id
        )
        if names != device_names(record):
            raise failures.prepared_otherwise(claim, replace(claim, devices=self._devices_of(claim.uid)))
        # The back end is asked again: it may have begun to undo it.
        restored = replace(record, edits=tuple(self._devices.prepare(claim)))
        self._unsure = True
        self._specs.write(restored)
        self._checkpoint.restore(restored)
        self._unsure = False
        return restored

    def _names(self, uid: str) -> tuple[str, ...]:
        """Names for CDI of the devices of a claim without a record: those in its spec, else those that it was to get."""
        began = self._checkpoint.began(uid)
        return self._specs.names(uid) or (device_names(began) if began else ())

    def _devices_of(self, uid: str) -> tuple[ClaimDevice, ...]:
        """Devices by their names for CDI, which tell no pool."""
        found = map(_CDI_NAME.fullmatch, self._names(uid))
        return tuple(ClaimDevice(pool="", device=each["device"], request="") for each in found if each)

    def _refuse_held(self, claim: Claim) -> None:
        if held := find_holder(claim, self._checkpoint.sharing(claim)):
            device, record = held
            raise failures.held(claim, device, str(record.claim))
        alone = [each for each in claim.devices if not each.admin_access]
        lost = self._lost() if alone else frozenset()
        for uid in sorted(lost - {claim.uid}):
            names = {each.device for each in self._devices_of(uid)}
            # Of two that are lost each would wait for the other for ever. They had their devices beside each other.
            if not names and claim.uid not in lost:
                raise failures.not_restored(claim, uid)
            for device in alone:
                if device.device in names:
                    raise failures.held(
                        claim, device, f"the claim with the UID {uid}, which was not restored yet"
                    )


def _bug(error: PluginError) -> BaseException | None:
    """The unexpected exception behind an error, if there is one."""
    return error.__cause__ if any(each.code == "plugin-failed" for each in error.problems) else None
