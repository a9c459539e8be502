"""What was prepared on this node, one file per claim.

<uid>.json         the record: started, or completed
<uid>.releasing    the record of a claim that is being released
<uid>.unreadable   a damaged or newer file, set aside; it is read again at each start
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dra_infra.errors import Problem
from dra_infra.plugin.claims import Record, check_uid, is_uid
from dra_infra.plugin.disk import Folder
from dra_infra.plugin.record_format import DamagedError, NewerError, decode, encode

_RECORD: Final = ".json"
_RELEASING: Final = ".releasing"
_ASIDE: Final = ".unreadable"
_ENDS: Final = (_RECORD, _RELEASING, _ASIDE)


class Checkpoint:
    """The records in a folder, and in memory as `load` and the changes since have them.

    A change is there for every later process when its method returns; after a crash of the machine too, where it is settled. One that raises `PluginError` (`plugin-folder-not-usable`) may have
    happened or not: `load` tells.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._records: dict[str, Record] = {}
        self._releasing: set[str] = set()
        self._aside: set[str] = set()

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
        """Claims that have a file that was set aside, and no record."""
        return frozenset(self._aside - self._records.keys())

    def load(self) -> tuple[Problem, ...]:
        """Read all files anew.

        Returns:
            `checkpoint-unreadable` and `checkpoint-newer` for each file that was set aside, now or earlier.
        """
        self._records, self._releasing, self._aside = {}, set(), set()
        self._folder.remove_temporary(lambda name: _split(name) is not None)
        files = [found for found in map(_split, self._folder.names()) if found]
        problems = []
        # A record decides before one that is being released, and that before one that was set aside.
        for uid, end in sorted(files, key=lambda file: _ENDS.index(file[1])):
            if uid not in self._records and (problem := self._load(uid, end)):
                problems.append(problem)
        return tuple(problems)

    def save(self, record: Record, *, settle: bool = False) -> None:
        """Put a record in the place of the claim's earlier one."""
        uid = check_uid(record.claim.uid)
        self._folder.replace(uid + _RECORD, encode(record), settle=settle)
        self._records[uid] = record

    def begin_release(self, uid: str) -> None:
        """Note that a claim is being released, by a new name of its file: that works on a full disk too."""
        self._folder.rename(check_uid(uid) + _RECORD, uid + _RELEASING)
        self._releasing.add(uid)

    def forget(self, uid: str) -> None:
        """Take everything of a claim away, which it need not have."""
        # What was set aside goes first: alone it would keep devices back.
        self._folder.remove(*(check_uid(uid) + end for end in reversed(_ENDS)))
        self._records.pop(uid, None)
        self._releasing.discard(uid)
        self._aside.discard(uid)

    def _load(self, uid: str, end: str) -> Problem | None:
        content = self._folder.read(uid + end)
        if content is None:
            return None
        try:
            self._records[uid] = decode(content, uid=uid)
        except (DamagedError, NewerError) as error:
            if end != _ASIDE:
                self._folder.rename(uid + end, uid + _ASIDE)
            self._aside.add(uid)
            return _set_aside(str(self._folder.path / (uid + _ASIDE)), error)
        if end == _ASIDE:
            # A newer release is back, or somebody repaired the file.
            self._folder.rename(uid + _ASIDE, uid + _RECORD)
        if end == _RELEASING:
            self._releasing.add(uid)
        return None


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
