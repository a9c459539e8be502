"""Run-time values as cel-go has them, their types, the errors that are values, and overload dispatch.

`bool`, `int`, `float`, `str`, `bytes`, `None` and `list` stand for themselves. An int is one of 64 bits with a sign.

Overloads of a function take values by their types at run time. A list counts by its first element, as upstream
(IsAssignableRuntimeType in common/types/types.go).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.numbers import Amount
from dra_infra.kubernetes.cel.tree import CelType

Value: TypeAlias = Any

INT64: Final = range(-(2**63), 2**63)
UINT64: Final = range(2**64)
MIN_SECONDS: Final = -62135596800
"""Of a timestamp, which is in the years 1 to 9999 of UTC."""
MAX_SECONDS: Final = 253402300799
NO_SUCH_OVERLOAD: Final = "no such overload"


class UndecidedError(Exception):
    """The server's answer is not known here."""


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


ABSENT: Final = _Nothing()
NONE: Final = OptionalValue(ABSENT)


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


class EmptyMessage:
    """A `google.protobuf.Empty`, the one message that stays one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "EmptyMessage()"


class MutableList:
    """A list in which a macro gathers its result: adding changes it (mutableList in common/types/list.go)."""

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


_TYPES: Final[dict[type, tuple[str, str]]] = {
    bool: ("bool", "types.Bool"),
    int: ("int", "types.Int"),
    Uint: ("uint", "types.Uint"),
    float: ("double", "types.Double"),
    str: ("string", "types.String"),
    bytes: ("bytes", "types.Bytes"),
    type(None): ("null_type", "types.Null"),
    list: ("list", "*types.baseList"),
    ConcatList: ("list", "*types.concatList"),
    MutableList: ("list", "*types.mutableList"),
    Duration: ("google.protobuf.Duration", "types.Duration"),
    Timestamp: ("google.protobuf.Timestamp", "types.Timestamp"),
    TypeValue: ("type", "*types.Type"),
    OptionalValue: ("optional_type", "*types.Optional"),
    QuantityValue: ("kubernetes.Quantity", "cel.Quantity"),
    Semver: ("kubernetes.Semver", "cel.Semver"),
    IP: ("net.IP", "cel.IP"),
    CIDR: ("net.CIDR", "cel.CIDR"),
    Format: ("kubernetes.NamedFormat", "cel.Format"),
    EmptyMessage: ("google.protobuf.Empty", "*types.protoObj"),
    Err: ("error", "*types.Err"),
}
"""Names of the types of values, in CEL and in Go."""


def register(kind: type, name: str, go_type: str) -> None:
    """Tell the names of a type of values that another module declares."""
    _TYPES[kind] = (name, go_type)


def type_name(value: Value) -> str:
    """The CEL type of a value."""
    return _TYPES[type(value)][0]


def go_type(value: Value) -> str:
    """The type of a value in Go, as it shows in some texts."""
    name = _TYPES[type(value)][1]
    return f"*{name}" if type(value) is QuantityValue and value.is_pointer else name


Implementation: TypeAlias = Callable[..., Value]
Overload: TypeAlias = tuple[tuple[str, ...], Implementation]
Overloads: TypeAlias = tuple[Overload, ...]
Matcher: TypeAlias = Callable[[Value], bool]

_STATIC_NAMES: Final = {"duration": "google.protobuf.Duration", "timestamp": "google.protobuf.Timestamp"}


@lru_cache(maxsize=256)
def matcher(parameter: str) -> Matcher:
    """Makes the test that a value is a `string`, `any`, or `list<any>`."""
    if parameter == "any":
        return lambda _value: True
    if parameter.startswith("list<"):
        element = matcher(parameter[5:-1])
        return lambda value: type(value) in LISTS and all(map(element, items_of(value)[:1]))
    return lambda value: _TYPES[type(value)][0] == parameter


def no_such_overload(function: str, arguments: list[Value]) -> Err:
    """The error that names the types of the arguments."""
    return Err(f"{NO_SUCH_OVERLOAD}: {function}({', '.join(map(type_name, arguments))})")


def dispatch(function: str, overloads: Overloads) -> Callable[[list[Value]], Value]:
    """A function that calls the first overload that takes its arguments."""
    table = [(list(map(matcher, parameters)), implementation) for parameters, implementation in overloads]

    def call(arguments: list[Any]) -> Value:
        for matchers, implementation in table:
            if len(matchers) == len(arguments):
                for fits, argument in zip(matchers, arguments):  # noqa: B905  (their lengths are equal)
                    if not fits(argument):
                        break
                else:
                    return implementation(*arguments)
        return no_such_overload(function, arguments)

    return call


def narrow(overloads: Overloads, kinds: list[CelType]) -> Overloads:
    """The overloads that the checker leaves, by the static types of the arguments; all where it leaves none."""
    left = tuple(
        overload
        for overload in overloads
        if len(overload[0]) == len(kinds)
        and all(_may_be(parameter, kind) for parameter, kind in zip(overload[0], kinds, strict=True))
    )
    return left or overloads


def _may_be(parameter: str, kind: CelType) -> bool:
    if parameter == "any" or kind.name in ("dyn", "any") or not kind.name:
        return True
    if kind.name == "wrapper":
        return _may_be(parameter, kind.parameters[0])
    if parameter.startswith("list<"):
        return kind.name == "list" and all(_may_be(parameter[5:-1], element) for element in kind.parameters)
    return parameter == _STATIC_NAMES.get(kind.name, kind.name)
