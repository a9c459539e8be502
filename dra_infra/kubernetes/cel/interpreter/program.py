"""A checked tree, planned once and evaluated on many devices.

The value of an expression becomes a verdict, or the value of a derived attribute: DeviceMatches and
valToDeviceAttribute in the `cel` package of DRA, and ConvertToNative of each type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.maps import MAPS
from dra_infra.kubernetes.cel.interpreter.planner import Planner
from dra_infra.kubernetes.cel.interpreter.scopes import Scope
from dra_infra.kubernetes.cel.interpreter.urls import URL
from dra_infra.kubernetes.cel.interpreter.values import (
    CIDR,
    IP,
    LISTS,
    NONE,
    Duration,
    Err,
    Format,
    OptionalValue,
    PanicError,
    QuantityValue,
    Timestamp,
    TypeValue,
    Uint,
    UndecidedError,
    Value,
    go_type,
    items_of,
    type_name,
)
from dra_infra.kubernetes.cel.tree import CheckedTree


def _rotate(keys: list[Value]) -> list[Value]:
    return [*keys[1:], keys[0]]


_ORDERS: Final = (lambda keys: keys[::-1], _rotate)


class Interpreter:
    """Evaluates one tree.

    Args:
        tree: What the checker made of the expression.
        minor: Minor version of the server.
    """

    __slots__ = ("_refusal", "_step")

    def __init__(self, tree: CheckedTree, minor: int) -> None:
        self._refusal = ""
        try:
            self._step = Planner(tree, minor).plan(tree.root)
        except (UndecidedError, PanicError) as error:
            # Constants are evaluated here; a server that panics over one answers with a failure of its own.
            self._refusal = str(error)

    def evaluate(self, variables: Mapping[str, Value]) -> Value:
        """The value on a device, which may be an `Err`.

        Raises:
            UndecidedError: When it is not known here, or depends on the order of a map, which is random upstream.
        """
        if self._refusal:
            raise UndecidedError(self._refusal)
        scope = Scope(variables, None)
        value = self._run(scope)
        if scope.is_unordered:
            for order in _ORDERS:
                if not _is_alike(value, self._run(Scope(variables, order))):
                    raise UndecidedError("a result that depends on the order of a map")
        return value

    def _run(self, scope: Scope) -> Value:
        try:
            return self._step(scope)
        except PanicError as error:
            return Err(str(error))
        except RecursionError as error:
            raise UndecidedError("an expression nested too deeply") from error


def _is_alike(first: Value, second: Value) -> bool:
    """Compares two results; which of two errors comes first does not matter."""
    if type(first) is not type(second):
        return False
    return True if type(first) is Err else repr(first) == repr(second)


_REASONS: Final[dict[type, str]] = {
    int: "unsupported type conversion from 'int' to bool",
    Uint: "unsupported type conversion from 'uint' to bool",
    float: "type conversion error from Double to 'bool'",
    str: "unsupported native conversion from string to 'bool'",
    bytes: "type conversion error from Bytes to 'bool'",
    type(None): "type conversion error from 'null_type' to 'bool'",
    Duration: "type conversion error from 'Duration' to 'bool'",
    Timestamp: "type conversion error from 'Timestamp' to 'bool'",
    TypeValue: "type conversion not supported for 'type'",
    Semver: "type conversion error from 'Semver' to 'bool'",
    QuantityValue: "type conversion error from 'Quantity' to 'bool'",
    IP: "type conversion error from 'IP' to 'bool'",
    CIDR: "type conversion error from 'CIDR' to 'bool'",
    URL: "type conversion error from 'URL' to 'bool'",
    Format: "type conversion error from 'Format' to 'bool'",
    **dict.fromkeys(LISTS, "type conversion error from list to 'bool'"),
    **dict.fromkeys(MAPS, "type conversion error from map to 'bool'"),
}
_SCALARS: Final[dict[type, tuple[str, str]]] = {
    bool: ("bool", "bools"),
    int: ("int", "ints"),
    str: ("string", "strings"),
    Semver: ("version", "versions"),
}
_NATIVE_TYPES: Final[dict[type, str]] = {
    Uint: "uint64",
    float: "float64",
    bytes: "[]uint8",
    type(None): "structpb.NullValue",
    Duration: "time.Duration",
    Timestamp: "time.Time",
    TypeValue: "string",
    bool: "bool",
    int: "int64",
    str: "string",
    Semver: "semver.Version",
    QuantityValue: "*resource.Quantity",
    IP: "netip.Addr",
    CIDR: "netip.Prefix",
    URL: "*url.URL",
    Format: "cel.Format",
}


def read_bool(value: Value) -> bool | str:
    """The verdict of a selector, or the text of the error."""
    if type(value) is bool:
        return value
    if type(value) is Err:
        return value.text
    inner = value
    while type(inner) is OptionalValue and inner is not NONE:
        inner = inner.value
    if type(inner) is bool:
        return inner
    reason = "optional.none() dereference" if inner is NONE else _REASONS[type(inner)]
    return f"CEL result of type {type_name(value)} could not be converted to bool: {reason}"


def read_attribute(value: Value) -> dict[str, Any] | str:
    """The value of a derived attribute as in the API, or the text of the error."""
    if type(value) is Err:
        return value.text
    inner = value
    while type(inner) is OptionalValue and inner is not NONE:
        inner = inner.value
    if type(value) in LISTS:
        return _read_list(items_of(value))
    if type(inner) is TypeValue:
        return {"string": inner.name}
    if type(inner) in _SCALARS:
        return {_SCALARS[type(inner)][0]: _plain(inner)}
    return f"unsupported CEL return type: {_native_type(inner)}"


def _read_list(items: list[Value]) -> dict[str, Any] | str:
    if not items:
        return {"strings": []}
    kind = str if type(items[0]) is TypeValue else type(items[0])
    if kind not in _SCALARS:
        return f"unsupported list element type: {_native_type(items[0])}"
    for index, item in enumerate(items):
        if type(item) is not kind and not (kind is str and type(item) is TypeValue):
            wanted = {int: "int", Semver: "semver"}.get(kind, _native_type(items[0]))
            return f"expected list element at index {index} to be {wanted}, got {_native_type(item)}"
    return {_SCALARS[kind][1]: [_plain(item) for item in items]}


def _plain(value: Value) -> Any:
    return str(value) if type(value) is Semver else value.name if type(value) is TypeValue else value


def _native_type(value: Value) -> str:
    if value is NONE:
        return "<nil>"
    return _NATIVE_TYPES.get(type(value)) or go_type(value)
