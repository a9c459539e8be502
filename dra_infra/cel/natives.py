"""Which functions the engine evaluates with the API server's verdict, and on which types."""

from __future__ import annotations

from typing import Final

from dra_infra.cel.tree import CelType

SCALARS: Final = frozenset({"bool", "int", "uint", "double", "string", "null_type", "timestamp", "duration"})
"""Types whose values are the same in both engines."""

NATIVE: Final = frozenset(
    {
        *("_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false"),
        *("_-_", "_*_", "_/_", "_%_", "-_"),
        *("contains", "startsWith", "endsWith", "matches", "lowerAscii", "upperAscii", "dyn"),
        *("optional.of", "optional.none", "hasValue", "value", "or", "orValue"),
    }
)
"""Functions whose result the two engines agree about, whatever the arguments."""

ARITHMETIC: Final = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_", "-_"})
"""Operators that are left to the interpreter on anything but ints and texts."""

MAX_LOOPS: Final = 10
"""How many macros and names of cel.bind the engine is given, each of which can double what another one holds."""

TYPED: Final = frozenset(
    {
        *("quantity", "isQuantity", "isGreaterThan", "isLessThan", "compareTo"),
        *("semver", "isSemver", "major", "minor", "patch", "includes"),
    }
)
"""Functions that take versions and quantities as such."""


def is_plain(kind: CelType) -> bool:
    """Whether no value of this type can hold a version or a quantity."""
    if kind.parameters:
        return all(map(is_plain, kind.parameters))
    return kind.name in SCALARS
