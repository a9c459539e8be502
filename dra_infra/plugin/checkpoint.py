"""Checkpoint of the claims prepared on this node, two files per claim.

<uid>.started      the record with which its preparation began; it stays until the claim is released
<uid>.json         the record of what is prepared
<uid>.releasing    the same, of a claim that is being released
<uid>.unreadable   a damaged or newer file, set aside until there is a record again; it is read at each start

The first is on the disk before a device is touched. The others are not waited for: after a crash of the machine they
may be cut or gone, and the first has all that undoing needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import Claim, Record, check_uid, is_uid
from dra_infra.plugin.disk import LARGEST, MOST_PARTS, Folder, may_be_parsed
from dra_infra.plugin.record_format import DamagedError, NewerError, decode, encode

_STARTED: Final = ".started"
_RECORD: Final = ".json"
_RELEASING: Final = ".releasing"
_ASIDE: Final = ".unreadable"
_ENDS: Final = (_RECORD, _RELEASING, _ASIDE, _STARTED)
"""Ends of the files' names, in the order in which they decide, each over those behind it."""


class Checkpoint:
    """The records in a folder, and in memory as `load` and the changes since have them.

    A change is there for every later process when its method returns. One that raises `PluginError`
    (`plugin-folder-not-usable`) may have happened or not: `load` tells.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._clear()

    @property
    def records(self) -> Mapping[str, Record]:
        """Every readable record by its claim's UID, those that are being released as well."""
        return MappingProxyType(self._records)

    @property
    def releasing(self) -> frozenset[str]:
        """Claims of which the release began."""
        return frozenset(self._releasing)

    @property
    def unreadable(self) -> frozenset[str]:
        """Claims that have a file that was set aside or could not be read, and no record."""
        return frozenset(self._aside - self._records.keys())

    def sharing(self, claim: Claim) -> Iterator[Record]:
        """The records that have one of a claim's devices: a look at all of them would take as long as writing one."""
        for uid in {uid for each in claim.devices for uid in self._having.get((each.pool, each.device), ())}:
            yield self._records[uid]

    def load(self, boot_id: str) -> tuple[Problem, ...]:
        """Read all files anew.

        Args:
            boot_id: Of the machine. Of a claim of another boot only the first file is sure to be whole.

        Returns:
            `checkpoint-unreadable` and `checkpoint-newer` for each file that was set aside, now or earlier, and
            `plugin-folder-not-usable` for each that could not be read just now, or not be moved.
        """
        self._clear()
        self._folder.remove_temporary(lambda name: _split(name) is not None)
        files = [found for found in map(_split, self._folder.names()) if found]
        problems: list[Problem] = []
        for uid, end in sorted(files, key=lambda file: _ENDS.index(file[1])):
            try:
                problems += self._load(uid, end, boot_id)
            except PluginError as error:
                # Of this file alone. What it says is not known now, so it counts as one that was set aside: without it, what
                # the preparation began with would be taken for all that there is, and undone.
                self._aside.add(uid)
                with suppress(PluginError):
                    self._keep_beginning(uid, boot_id)
                problems += error.problems
        return tuple(problems)

    def began(self, uid: str) -> Record | None:
        """The first record of an unreadable claim's preparation, where that can be read."""
        return self._began.get(uid)

    def begin(self, record: Record) -> None:
        """Note that a preparation begins: it is on the disk when this returns, for devices are touched next."""
        self._write(record, _STARTED, settle=True)

    def complete(self, record: Record) -> None:
        """Note what is prepared. It is not waited for: another boot undoes it by what `begin` wrote."""
        self._write(record, _RECORD, settle=False)

    def restore(self, record: Record) -> None:
        """Note what was prepared by a preparation that has no readable record any more: on the disk when this returns."""
        self._write(record, _RECORD, settle=True)

    def begin_release(self, uid: str) -> None:
        """Note that a claim is being released, by a new name of its file: that works on a full disk too."""
        self._folder.rename(check_uid(uid) + _RECORD, uid + _RELEASING)
        self._releasing.add(uid)

    def forget(self, uid: str) -> None:
        """Take everything of a claim away, which it need not have."""
        # What was set aside goes first: alone it would keep devices back. What the preparation began with goes last:
        # without it the others may be cut where the machine crashes now.
        self._folder.remove(*(check_uid(uid) + end for end in (_ASIDE, _RELEASING, _RECORD, _STARTED)))
        record = self._records.pop(uid, None)
        for each in record.claim.devices if record else ():
            self._having[each.pool, each.device].discard(uid)
        self._releasing.discard(uid)
        self._aside.discard(uid)
        self._began.pop(uid, None)

    def _clear(self) -> None:
        self._records: dict[str, Record] = {}
        self._having: dict[tuple[str, str], set[str]] = {}
        self._releasing: set[str] = set()
        self._aside: set[str] = set()
        self._began: dict[str, Record] = {}

    def _keep(self, record: Record) -> None:
        uid = record.claim.uid
        self._records[uid] = record
        for each in record.claim.devices:
            self._having.setdefault((each.pool, each.device), set()).add(uid)

    def _write(self, record: Record, end: str, *, settle: bool) -> None:
        content = encode(record)
        if not may_be_parsed(content):
            # It would be called damaged when it is read again.
            raise PluginError.of(
                path=str(record.claim),
                code="claim-too-large",
                message=f"its record has {len(content)} bytes, and at most {LARGEST} with {MOST_PARTS} objects and lists are read again",
                hint="each device has all configs that are for it: give the claim fewer or shorter ones, or fewer devices",
            )
        uid = check_uid(record.claim.uid)
        self._folder.replace(uid + end, content, settle=settle)
        self._keep(record)
        if end == _RECORD and uid in self._aside:
            # They say no more than the record, and the first would be counted as a claim that is lost.
            self._folder.remove(uid + _ASIDE, uid + _RELEASING)
            self._aside.discard(uid)

    def _load(self, uid: str, end: str, boot_id: str) -> tuple[Problem, ...]:
        if end == _ASIDE and uid in self._records:
            # A crash came between the record and the end of what was set aside.
            self._folder.remove(uid + _ASIDE)
        if uid in self._records or (end in (_ASIDE, _STARTED) and uid in self._aside):
            return ()
        try:
            record = self._read(uid, end)
        except (DamagedError, NewerError) as error:
            if end != _STARTED:
                self._keep_beginning(uid, boot_id)
            return () if uid in self._records else self._put_aside(uid, end, error)
        if record is None:
            return ()
        self._keep(record)
        if end == _ASIDE:
            # A newer release is back, or somebody repaired the file.
            self._folder.rename(uid + _ASIDE, uid + _RECORD)
        if end == _RELEASING:
            self._releasing.add(uid)
        return ()

    def _put_aside(self, uid: str, end: str, why: DamagedError | NewerError) -> tuple[Problem, ...]:
        self._aside.add(uid)
        name = uid + _ASIDE
        try:
            if end != _ASIDE:
                self._folder.rename(uid + end, name)
        except PluginError as error:
            return (_set_aside(str(self._folder.path / (uid + end)), why), *error.problems)
        return (_set_aside(str(self._folder.path / name), why),)

    def _keep_beginning(self, uid: str, boot_id: str) -> None:
        """Keep the first file of a claim without a readable record: as its record, to be undone, if it is of another boot."""
        if uid in self._records:
            return
        with suppress(DamagedError, NewerError):
            if started := self._read(uid, _STARTED):
                if started.boot_id != boot_id:
                    self._keep(started)
                else:
                    self._began[uid] = started

    def _read(self, uid: str, end: str) -> Record | None:
        content = self._folder.read(uid + end)
        return None if content is None else decode(content, uid=uid)


def _split(name: str) -> tuple[str, str] | None:
    """UID and end of the name of a file of ours."""
    uid, dot, end = name.partition(".")
    return (uid, dot + end) if is_uid(uid) and dot + end in _ENDS else None


def _set_aside(path: str, error: DamagedError | NewerError) -> Problem:
    if isinstance(error, NewerError):
        hint = "run the newer release again; until then the claim's devices are kept back"
        return Problem(path=path, code="checkpoint-newer", message=str(error), hint=hint)
    hint = "the claim's devices are kept back until it is prepared again, or released"
    return Problem(path=path, code="checkpoint-unreadable", message=str(error), hint=hint)
