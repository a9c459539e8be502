"""Run-time values as cel-go has them, their types, and the errors that are values.

`bool`, `int`, `float`, `str`, `bytes`, `None` and `list` stand for themselves. An int is one of 64 bits with a sign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from dra_infra.cel.interpreter.amounts import Amount
from dra_infra.model.semver import Semver

Value: TypeAlias = Any

INT64: Final = range(-(2**63), 2**63)
UINT64: Final = range(2**64)
MIN_SECONDS: Final = -62135596800
"""Of a timestamp, which is in the years 1 to 9999 of UTC."""
MAX_SECONDS: Final = 253402300799
NO_SUCH_OVERLOAD: Final = "no such overload"


class UndecidedError(Exception):
    """What the server would answer is not known here."""


class PanicError(Exception):
    """A failure of the server's code that ends the evaluation, which neither `||` nor `&&` absorbs."""


class Err:
    """An error as a value: functions hand it on, `||` and `&&` may absorb it."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Err({self.text!r})"


class Uint(int):
    """An unsigned int of 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time in nanoseconds, 64 bits with a sign."""

    nanos: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Seconds since 1970 and nanoseconds within them; the offset from UTC in seconds only shows in its text."""

    seconds: int
    nanos: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, `int` or `kubernetes.Semver`."""

    name: str


class OptionalValue:
    """`optional.of(value)`; without a value it is `NONE`."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class _Nothing:
    __slots__ = ()


NOTHING: Final = _Nothing()
NONE: Final = OptionalValue(NOTHING)


class QuantityValue:
    """A quantity; what add() and sub() return is a pointer in Go, and no equal of what is not."""

    __slots__ = ("amount", "is_pointer")

    def __init__(self, amount: Amount, *, is_pointer: bool = False) -> None:
        self.amount = amount
        self.is_pointer = is_pointer


@dataclass(frozen=True, slots=True)
class IP:
    """An address of family 4 or 6 as a number."""

    family: int
    number: int


@dataclass(frozen=True, slots=True)
class CIDR:
    """An address with the length of its prefix."""

    address: IP
    bits: int


@dataclass(frozen=True, slots=True)
class Format:
    """A named format; `validate` returns one text per thing that is wrong."""

    name: str
    validate: Callable[[str], tuple[str, ...]]


class MutableList:
    """What a macro gathers its result in: adding changes it (mutableList in common/types/list.go)."""

    __slots__ = ("items",)

    def __init__(self, items: list[Value]) -> None:
        self.items = items


class ConcatList:
    """Two lists added, which unlike a plain list reports an error of comparing its elements."""

    __slots__ = ("items",)

    def __init__(self, items: list[Value]) -> None:
        self.items = items


LISTS: Final = (list, ConcatList, MutableList)


def items_of(value: Value) -> list[Value]:
    """The elements of a list of any kind."""
    return value if type(value) is list else value.items


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    ConcatList: "list",
    MutableList: "list",
    Duration: "google.protobuf.Duration",
    Timestamp: "google.protobuf.Timestamp",
    TypeValue: "type",
    OptionalValue: "optional_type",
    QuantityValue: "kubernetes.Quantity",
    Semver: "kubernetes.Semver",
    IP: "net.IP",
    CIDR: "net.CIDR",
    Format: "kubernetes.NamedFormat",
    Err: "error",
}
_GO_TYPES: Final[dict[type, str]] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    type(None): "types.Null",
    list: "*types.baseList",
    ConcatList: "*types.concatList",
    MutableList: "*types.mutableList",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    TypeValue: "*types.Type",
    OptionalValue: "*types.Optional",
    Semver: "cel.Semver",
    IP: "cel.IP",
    CIDR: "cel.CIDR",
    Format: "cel.Format",
    Err: "*types.Err",
}


def register(kind: type, name: str, go_type: str) -> None:
    """Tell the names of a type of values that another module declares."""
    _TYPE_NAMES[kind] = name
    _GO_TYPES[kind] = go_type


def type_name(value: Value) -> str:
    """The CEL type of a value."""
    return _TYPE_NAMES[type(value)]


def go_type(value: Value) -> str:
    """The type of a value in Go, as it shows in some texts."""
    if type(value) is QuantityValue:
        return "*cel.Quantity" if value.is_pointer else "cel.Quantity"
    return _GO_TYPES[type(value)]
