"""A checked tree, planned once and evaluated on many devices.

The value of an expression becomes a verdict, or the value of a derived attribute: DeviceMatches and
valToDeviceAttribute in the `cel` package of DRA, and ConvertToNative of each type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dra_infra.kubernetes.api.semver import Semver
from dra_infra.kubernetes.cel.interpreter.call_costs import CEL_GO_29
from dra_infra.kubernetes.cel.interpreter.cheapness import is_cheap
from dra_infra.kubernetes.cel.interpreter.messages import refuse_conversion
from dra_infra.kubernetes.cel.interpreter.planner import Planner
from dra_infra.kubernetes.cel.interpreter.scopes import Scope, Step, Work, counted_scope
from dra_infra.kubernetes.cel.interpreter.tracked_planner import TrackedPlanner
from dra_infra.kubernetes.cel.interpreter.urls import URL
from dra_infra.kubernetes.cel.interpreter.values import (
    CIDR,
    IP,
    LISTS,
    NONE,
    Duration,
    EmptyMessage,
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
from dra_infra.kubernetes.cel.tree import CheckedTree, call_deeply, height


class _Order:
    """Turns the keys of each map by some places; of every other map only, and backwards, when it is uneven.

    The server goes over each map in another order, even over the same map twice.
    """

    __slots__ = ("_calls", "_is_uneven", "_places")

    def __init__(self, places: int, *, is_uneven: bool) -> None:
        self._places = places
        self._is_uneven = is_uneven
        self._calls = 0

    def __call__(self, keys: list[Value]) -> list[Value]:
        self._calls += 1
        place = self._places % len(keys)
        turned = [*keys[place:], *keys[:place]]
        if not self._is_uneven:
            return turned
        return turned[::-1] if self._calls % 2 else keys


def _orders(scope: Scope) -> list[_Order]:
    """Orders in which each key comes first once, and at every other place, where a loop gathers something of them."""
    count = max(scope.most_gathered, 2)
    return [_Order(place, is_uneven=uneven) for uneven in (False, True) for place in range(1 - uneven, count)]


class Interpreter:
    """Evaluates one tree.

    Args:
        tree: What the checker made of the expression.
        minor: Minor version of the server.
    """

    __slots__ = ("_minor", "_plain", "_tracked", "_tree")

    def __init__(self, tree: CheckedTree, minor: int) -> None:
        self._tree = tree
        self._minor = minor
        self._plain: Step | str | None = None
        self._tracked: Step | str | None = None

    def evaluate(self, variables: Mapping[str, Value], *, is_small: bool = False) -> Value:
        """The value on a device, which may be an `Err`.

        Args:
            variables: What the expression reads by name.
            is_small: Whether no list, map or text of the device is larger than the API allows. The cost of an
                expression that is cheap on all such devices is not counted.

        Raises:
            UndecidedError: When it is not known here, or depends on the order of a map, which is random upstream.
        """
        step = self._plain if is_small else self._tracked
        if step is None:
            step = self._uncounted() if is_small else self._counted()
        if isinstance(step, str):
            raise UndecidedError(step)
        make_scope = counted_scope if step is self._tracked else Scope
        scope = make_scope(variables, None)
        value = _value(step, scope)
        if scope.is_unordered:
            work = Work()
            for order in _orders(scope):
                other = make_scope(variables, order)
                other.work = work
                if not _is_alike(value, _value(step, other)):
                    raise UndecidedError("a result that depends on the order of a map")
        return value

    def measure(self, variables: Mapping[str, Value]) -> int:
        """Counts what the evaluation on a device costs the server, up to its end.

        Raises:
            UndecidedError: When it is not known here, or depends on the order of a map.
        """
        step = self._counted()
        if isinstance(step, str):
            raise UndecidedError(step)
        scope = counted_scope(variables, None)
        _value(step, scope)
        costs = {scope.tracker.cost}
        for order in _orders(scope) if scope.is_unordered else ():
            other = counted_scope(variables, order)
            _value(step, other)
            costs.add(other.tracker.cost)
        if len(costs) > 1:
            raise UndecidedError("a cost that depends on the order of a map")
        return costs.pop()

    def _uncounted(self) -> Step | str:
        if self._plain is None:
            plan = Planner(self._tree, self._minor)
            is_plain = not _is_deep(self._tree) and is_cheap(self._tree) and not self._rereads()
            self._plain = _planned(plan, self._tree) if is_plain else self._counted()
        return self._plain

    def _rereads(self) -> bool:
        """Only steps that are counted go through optional values as cel-go before 0.29 does."""
        return self._minor < CEL_GO_29 and any(
            kind.name == "optional_type" for kind in self._tree.types.values()
        )

    def _counted(self) -> Step | str:
        if self._tracked is None:
            self._tracked = _planned(TrackedPlanner(self._tree, self._minor), self._tree)
        return self._tracked


_DEEP: Final = 50
"""Nodes in each other that Python's limit on calls leaves room for wherever the caller stands."""


def _is_deep(tree: CheckedTree) -> bool:
    return tree.size > _DEEP and height(tree.root) > _DEEP


def _planned(planner: Planner, tree: CheckedTree) -> Step | str:
    """The closure, or why there is none."""
    try:
        if _is_deep(tree):
            step = call_deeply(planner.plan, tree.root)
            return lambda scope: call_deeply(step, scope)
        return planner.plan(tree.root)
    except (UndecidedError, PanicError) as error:
        # Constants are evaluated here; a server that panics over one answers with a failure of its own.
        return str(error)


def _value(step: Step, scope: Scope) -> Value:
    try:
        return step(scope)
    except PanicError as error:
        return Err(str(error))
    except RecursionError as error:
        raise UndecidedError("an expression nested too deeply") from error


def _is_alike(first: Value, second: Value) -> bool:
    """Compares two results; which of two errors comes first does not matter."""
    if type(first) is not type(second):
        return False
    return True if type(first) is Err else repr(first) == repr(second)


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
    EmptyMessage: "*dynamicpb.Message",
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
    reason = "optional.none() dereference" if inner is NONE else refuse_conversion(inner, "bool")
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
    if type(value) is Semver:
        return str(value)
    return value.name if type(value) is TypeValue else value


def _native_type(value: Value) -> str:
    if value is NONE:
        return "<nil>"
    return _NATIVE_TYPES.get(type(value)) or go_type(value)
