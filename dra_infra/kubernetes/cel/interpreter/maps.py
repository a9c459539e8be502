"""Maps as cel-go has them: keys of any type that Go can hash, and the maps by domain, which miss no key.

Upstream: common/types/map.go, and newStringInterfaceMapWithDefault in the `cel` package of DRA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Self, TypeAlias

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.numbers import format_general
from dra_infra.kubernetes.cel.interpreter.values import (
    CIDR,
    INT64,
    IP,
    NONE,
    UINT64,
    Duration,
    Err,
    Format,
    PanicError,
    Timestamp,
    TypeValue,
    Uint,
    UndecidedError,
    Value,
    go_type,
    register,
)

Key: TypeAlias = tuple[Any, ...]
_UNHASHABLE: Final = (bytes, Semver, Format)
_PLAIN: Final = (bool, int, Uint, str, float)
_BY_VALUE: Final = (Duration, TypeValue, IP, CIDR)


def key_of(value: Value) -> Key:
    """A Python key for a key of a map, the same for keys that are the same in Go.

    Raises:
        PanicError: When Go cannot hash the value, which ends the evaluation.
    """
    kind: Any = type(value)
    if kind in _UNHASHABLE:
        raise PanicError(f"internal error: runtime error: hash of unhashable type {go_type(value)}")
    if kind is float and math.isnan(value):
        return (kind, object())
    if kind in _PLAIN or value is None:
        return (kind, value)
    if kind is Timestamp and value.offset == 0:
        return (kind, value)
    # What is left is a pointer in Go, the same as itself only.
    return (kind, value) if kind in _BY_VALUE else (kind, id(value))


class Map:
    """A map with its entries in the order in which they came."""

    __slots__ = ("entries",)

    def __init__(self, entries: dict[Key, tuple[Value, Value]] | None = None) -> None:
        self.entries = {} if entries is None else entries

    @classmethod
    def of(cls, pairs: Iterable[tuple[Value, Value]]) -> Self:
        """A map of pairs, of which a later one wins."""
        return cls({key_of(key): (key, value) for key, value in pairs})

    def find(self, key: Value) -> tuple[Value] | None:
        """The value of a key; a number is found as a number of another type."""
        if not self.entries:
            return None
        found = self.entries.get(key_of(key))
        if found is None:
            for other in other_numbers(key):
                found = self.entries.get(key_of(other))
                if found is not None:
                    break
        return None if found is None else (found[1],)

    def contains(self, key: Value) -> bool:
        """Checks that there is an entry."""
        return self.find(key) is not None

    def get(self, key: Value) -> Value:
        """The value of a key, or an error."""
        found = self.find(key)
        return Err(f"no such key: {print_value(key)}") if found is None else found[0]

    def keys(self) -> list[Value]:
        """The keys."""
        return [key for key, _ in self.entries.values()]

    def __len__(self) -> int:
        return len(self.entries)


class MutableMap(Map):
    """A map in which a macro gathers its result: adding changes it."""

    __slots__ = ()


class NativeMap(Map):
    """A map of Go with texts for keys, in which nothing else is looked for."""

    __slots__ = ()

    def find(self, key: Value) -> tuple[Value] | None:
        """The value of a key."""
        if type(key) is not str:
            return None
        found = self.entries.get((str, key))
        return None if found is None else (found[1],)


class DomainMap(NativeMap):
    """A map by domain: looking up an unknown one finds an empty map, though nothing else sees it."""

    __slots__ = ()

    def find(self, key: Value) -> tuple[Value] | None:
        """The value of a key, an empty map if there is none."""
        return NativeMap.find(self, key) or (Map(),)

    def contains(self, key: Value) -> bool:
        """Checks that there is an entry."""
        return NativeMap.find(self, key) is not None

    def get(self, key: Value) -> Value:
        """The value of a key, or an error."""
        found = NativeMap.find(self, key)
        return Err(f"no such key: {print_value(key)}") if found is None else found[0]


class OpenMap(NativeMap):
    """A map of which not all is known here, or not yet: what is looked up is asked for, and nothing else has an answer.

    Args:
        look_up: Returns the value of a key, or None where there is none; raises UndecidedError where that is not known.
        told: Why the map as a whole has no answer.
        keys: Those that loops go over, where they go over some.
    """

    __slots__ = ("_keys", "_look_up", "_told")

    def __init__(
        self,
        look_up: Callable[[str], tuple[Value] | None],
        told: str,
        keys: Sequence[str] | None = None,
    ) -> None:
        self._look_up = look_up
        self._told = told
        self._keys = keys

    @property
    def entries(self) -> dict[Key, tuple[Value, Value]]:  # type: ignore[override]
        """All entries, which are not known.

        Raises:
            UndecidedError: Always.
        """
        raise UndecidedError(self._told)

    def find(self, key: Value) -> tuple[Value] | None:
        """The value of a key."""
        return self._look_up(key) if type(key) is str else None

    def keys(self) -> list[Value]:
        """The keys that loops go over."""
        return super().keys() if self._keys is None else list(self._keys)


MAPS: Final = (Map, MutableMap, NativeMap, DomainMap, OpenMap)
for _kind in MAPS:
    register(_kind, "map", "*types.baseMap")
register(DomainMap, "map", "cel.mapper")
register(MutableMap, "map", "*types.mutableMap")


def insert(target: Map, key: Value, value: Value) -> Value:
    """The map with one entry more, or an error if it has the key (InsertMapKeyValue)."""
    if target.find(key) is not None:
        return Err(f"insert failed: key {print_value(key)} already exists")
    if type(target) is MutableMap:
        target.entries[key_of(key)] = (key, value)
        return target
    return Map({key_of(key): (key, value), **target.entries})


def print_value(value: Value) -> str:
    """A value as `%v` of Go prints it; exact for what can be a key."""
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return format_general(value)
    if type(value) is bytes:
        return f"[{' '.join(map(str, value))}]"
    if value is NONE:
        return "optional.none()"
    return str(value)


def other_numbers(key: Value) -> list[Value]:
    """The ints and uints that equal a number of another type."""
    kind = type(key)
    if kind is float and math.isfinite(key) and key == int(key):
        whole = int(key)
        return [
            *([whole] if -(2**63) < whole < 2**63 else []),
            *([Uint(whole)] if whole in UINT64 else []),
        ]
    if kind is int:
        return [Uint(key)] if key >= 0 else []
    if kind is Uint:
        return [int(key)] if int(key) in INT64 else []
    return []
