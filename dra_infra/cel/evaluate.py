"""Programs, the devices that they are evaluated on, and the three verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_infra.cel.check import check_expression
from dra_infra.cel.declare import run_environment
from dra_infra.cel.lower import lower
from dra_infra.cel.lowering import DOMAIN_MAPS
from dra_infra.cel.messages import translate
from dra_infra.cel.values import UNDECIDED, encode_quantity, encode_semver, take_panic, type_name
from dra_infra.cel.wire import encode_parsed
from dra_infra.errors import InvalidSpecError
from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

if TYPE_CHECKING:
    # Selectors are written where no record is, and pydantic takes longer to load than all of this package.
    from dra_infra.model.resource_slice import DeviceAttribute, DeviceCapacity


@dataclass(frozen=True, slots=True)
class Match:
    """The device passes the selector."""


@dataclass(frozen=True, slots=True)
class NoMatch:
    """The device does not pass the selector."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The expression has no result on the device, which ends the scheduling of the whole pod.

    Args:
        text: The error as the scheduler reports it, `no such key: nope`; the wording is exact where it is known.
        decided: False when the engine here cannot tell what the server would say (code `cel-not-decided-here`).
    """

    text: str
    decided: bool = True


Verdict: TypeAlias = Match | NoMatch | Failed

MATCH: Final = Match()
NO_MATCH: Final = NoMatch()
_INT64: Final = range(-(2**63), 2**63)


class DeviceView:
    """One device as selectors see it, ready to be evaluated on many times.

    Args:
        driver: Name of the driver; attribute and capacity names without a domain belong to it.
        attributes: By qualified name.
        capacity: By qualified name.
        allow_multiple_allocations: Whether several claims may share the device.
    """

    __slots__ = ("_activation", "_bound", "_data", "failure")

    def __init__(
        self,
        driver: str,
        attributes: Mapping[str, DeviceAttribute] | None = None,
        capacity: Mapping[str, DeviceCapacity] | None = None,
        allow_multiple_allocations: bool = False,  # noqa: FBT001, FBT002  (the field's name and order in the API)
    ) -> None:
        self.failure: Failed | None = None
        self._data: dict[str, Any] = {
            "device.driver": driver,
            "device.allowMultipleAllocations": allow_multiple_allocations,
            "device.attributes": self._group(driver, attributes or {}, _attribute_value),
            "device.capacity": self._group(driver, capacity or {}, _capacity_value),
        }
        if not _is_text(driver):
            self.failure = Failed(f"the driver name {driver!r} holds NUL or half a character", decided=False)
        for name, prefix in DOMAIN_MAPS.items():
            for domain, values in self._data[name].items():
                self._data[prefix + domain] = values
        self._bound = frozenset(self._data)
        self._activation: Any = None

    def activation(self, variables: frozenset[str]) -> Any:
        """The engine's view of the device, in which at least *variables* are bound."""
        if not variables <= self._bound:
            for variable in variables - self._bound:
                self._data[variable] = {}
            self._bound |= variables
            self._activation = None
        if self._activation is None:
            self._activation = run_environment().Activation(self._data)
        return self._activation

    def _group(self, driver: str, named: Mapping[str, Any], convert: Any) -> dict[str, dict[str, Any]]:
        domains: dict[str, dict[str, Any]] = {}
        for name in sorted(named):
            domain, slash, identifier = name.partition("/")
            if not slash:
                domain, identifier = driver, name
            try:
                value = convert(name, named[name])
            except _ConversionError as error:
                self.failure = self.failure or Failed(str(error), decided=error.decided)
                continue
            group = domains.setdefault(domain, {})
            if identifier in group and group[identifier] != value:
                # Upstream goes over a Go map here, and the later spelling wins.
                text = f"{domain}/{identifier} is given twice, and which value counts is random upstream"
                self.failure = self.failure or Failed(text, decided=False)
            group[identifier] = value
        return domains


class Program:
    """An expression that compiled; made by `compile_expression`."""

    __slots__ = ("_expression", "_may_be_undecided", "_panics", "_refusal", "_variables", "expression")

    def __init__(self, expression: str) -> None:
        checked = check_expression(expression)
        if checked.errors:
            raise InvalidSpecError(checked.errors)
        self.expression = expression
        self._refusal: Failed | None = None
        self._variables: frozenset[str] = frozenset()
        self._may_be_undecided = False
        self._panics = False
        self._expression: Any = None
        if checked.tree is None:
            self._refusal = Failed(checked.undecided, decided=False)
            return
        lowered = lower(checked.tree)
        self._variables = lowered.variables
        self._may_be_undecided = lowered.undecided
        self._panics = lowered.panics
        self._expression = run_environment().deserialize(encode_parsed(lowered.root))

    def __repr__(self) -> str:
        return f"Program({self.expression!r})"

    def evaluate(self, view: DeviceView) -> Verdict:
        """The verdict on one device; never raises for what an expression or a device holds."""
        refusal = self._refusal or view.failure
        if refusal is not None:
            return refusal
        try:
            value = self._expression.eval(view.activation(self._variables))
        except (RuntimeError, ValueError, MemoryError) as error:
            # The engine raises for its own limits of depth, iterations and memory only; upstream has others.
            return Failed(f"the engine gave up: {error}", decided=False)
        if self._panics and (panic := take_panic()):
            return _failed(panic, decided=True)
        # The type comes first: reading a null result releases a None that the engine does not own.
        kind = value.type().name()
        if kind == "BOOL":
            return MATCH if value.value() else NO_MATCH
        if kind == "ERROR":
            # Of two errors one survives `||`; where the other stands for 'unknown', it could have been the answer.
            return _failed(translate(str(value.value())), decided=not self._may_be_undecided)
        if self._may_be_undecided:
            return Failed(f"result of type {kind.lower()}", decided=False)
        return Failed(_result_text(kind, value))


@lru_cache(maxsize=4096)
def compile_expression(text: str) -> Program:
    """Compile a selector expression; compiled programs are kept.

    Raises:
        InvalidSpecError: With the problems of `check_expression`, when the expression does not compile.
    """
    return Program(text)


def _failed(text: str, *, decided: bool) -> Failed:
    if text.startswith(UNDECIDED):
        return Failed(text.removeprefix(UNDECIDED), decided=False)
    return Failed(text, decided=decided)


class _ConversionError(Exception):
    def __init__(self, text: str, *, decided: bool) -> None:
        super().__init__(text)
        self.decided = decided


def _attribute_value(name: str, attribute: DeviceAttribute) -> Any:
    """The one value that is set, in the order in which upstream looks (getAttributeValue in cel/compile.go)."""
    for values in (attribute.ints, attribute.bools, attribute.strings):
        if values is not None:
            for item in values:
                _refuse_unreadable(name, item)
            return values
    if attribute.versions is not None:
        return [_version(name, item) for item in attribute.versions]
    for value in (attribute.int_, attribute.bool_, attribute.string):
        if value is not None:
            _refuse_unreadable(name, value)
            return value
    if attribute.version is not None:
        return _version(name, attribute.version)
    raise _ConversionError(f"attribute {name}: unsupported attribute value", decided=True)


def _refuse_unreadable(name: str, value: str | int) -> None:
    if isinstance(value, str) and not _is_text(value):
        raise _ConversionError(f"attribute {name}: holds NUL or half a character", decided=False)
    if isinstance(value, int) and value not in _INT64:
        raise _ConversionError(f"attribute {name}: {value} is beyond 64 bits", decided=False)


def _version(name: str, text: str) -> bytes:
    try:
        return encode_semver(Semver.parse(text))
    except ValueError as error:
        raise _ConversionError(f"attribute {name}: parse semantic version: {error}", decided=True) from error


def _capacity_value(name: str, capacity: DeviceCapacity) -> Any:
    try:
        return encode_quantity(Quantity.parse(capacity.value))
    except ValueError as error:
        raise _ConversionError(f"capacity {name}: {error}", decided=False) from error


def _is_text(text: str) -> bool:
    """Whether the engine takes the whole of *text*: it stops at NUL and refuses lone surrogates."""
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


_RESULT_REASONS: Final = {
    "string": "unsupported native conversion from string to 'bool'",
    "int": "unsupported type conversion from 'int' to bool",
    "uint": "unsupported type conversion from 'uint' to bool",
    "double": "type conversion error from Double to 'bool'",
    "null_type": "type conversion error from 'null_type' to 'bool'",
    "list": "type conversion error from list to 'bool'",
    "map": "type conversion error from map to 'bool'",
    "type": "type conversion not supported for 'type'",
    "kubernetes.Semver": "type conversion error from 'Semver' to 'bool'",
    "kubernetes.Quantity": "type conversion error from 'Quantity' to 'bool'",
}


def _result_text(kind: str, value: Any) -> str:
    """Why a result is not a bool, as ConvertToNative of cel-go's and of Kubernetes' types says it."""
    name = kind.lower().partition("<")[0]
    name = {"null": "null_type"}.get(name, name)
    if name == "bytes":
        name = type_name(value.value())
    reason = _RESULT_REASONS.get(name, f"unsupported type conversion from '{name}' to bool")
    return f"CEL result of type {name} could not be converted to bool: {reason}"
