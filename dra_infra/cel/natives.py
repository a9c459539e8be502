"""Which functions the engine evaluates with the API server's verdict, and on which types."""

from __future__ import annotations

from typing import Final

from dra_infra.cel.tree import CelType

SCALARS: Final = frozenset({"bool", "int", "uint", "double", "string", "null_type", "timestamp", "duration"})
"""Types whose values are the same in both engines."""

NATIVE: Final = frozenset(
    {
        *("!_", "_?_:_", "@not_strictly_false"),
        *("_-_", "_*_", "_/_", "_%_", "-_"),
        *("contains", "startsWith", "endsWith", "matches", "dyn"),
        *(
            "charAt",
            "join",
            "lowerAscii",
            "upperAscii",
            "replace",
            "split",
            "substring",
            "trim",
            "strings.quote",
        ),
        *("optional.of", "optional.none", "optional.ofNonZeroValue", "hasValue", "value", "or", "orValue"),
        *("first", "last", "flatten", "slice", "reverse"),
    }
)
"""Functions whose result the two engines agree about, whatever the arguments."""

PLAIN_LISTS: Final = frozenset(
    {"sets.contains", "sets.equivalent", "sets.intersects", "sort", "@sortByAssociatedKeys"}
)
"""Functions that compare elements; they agree as long as no version or quantity is among these."""

GROWING: Final = {"replace": 2, "join": 4, "strings.quote": 4}
"""How often a function may be used whose result can be many times as long as its operands.

Upstream refuses by estimated cost; here it bounds the memory that an expression can take.
"""
MAX_LOOPS: Final = 10
"""How many macros and names of cel.bind an expression may have, each of which can double what another one holds."""

TYPED: Final = frozenset(
    {
        *("quantity", "isQuantity", "sign", "isGreaterThan", "isLessThan", "compareTo"),
        *("asApproximateFloat", "asInteger", "isInteger", "add", "sub"),
        *("semver", "isSemver", "major", "minor", "patch", "includes"),
    }
)
"""Functions that take versions and quantities as such."""

USUAL_TEXTS: Final = {
    "int": r"^-?[0-9]{1,18}$|^[^0-9]*$",
    "uint": r"^[0-9]{1,18}$|^[^0-9]*$",
    "double": r"^-?[0-9]{1,15}([.][0-9]{1,15})?$",
    "bool": r"^(true|false)$",
}
"""Texts that both engines read alike, by conversion."""


def is_plain(kind: CelType) -> bool:
    """Whether no value of this type can hold a version or a quantity."""
    if kind.parameters:
        return all(map(is_plain, kind.parameters))
    return kind.name in SCALARS
