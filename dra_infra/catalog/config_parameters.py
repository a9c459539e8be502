"""Checks of opaque config parameters against what a driver takes.

They find ahead what the driver would otherwise say when a pod starts on a node.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.catalog.device_configs import (
    ConfigField,
    ConfigKind,
    DriverConfigs,
    configs_of,
    drivers_with,
    is_strict,
    lines_with,
)
from dra_infra.catalog.driver_gates import gate_states, gates_of
from dra_infra.catalog.drivers import Pins
from dra_infra.errors import Severity
from dra_infra.kubernetes.api import Quantity, is_placeholder, quantity_text
from dra_infra.kubernetes.api.limits import MAX_PARAMETERS
from dra_infra.output.escaping import literal
from dra_infra.output.wording import nearest

FAILS: Final = "pods fail when they start"
"""Consequence of a config that the driver refuses, as messages tell it."""

_DEVICE_KEY: Final = re.compile(r"\+?[0-9]+|(GPU|MIG)-.+", re.ASCII)


class Fault(NamedTuple):
    """A problem of a config's parameters, before it has a path in the user's terms.

    Args:
        fields: Names of the fields down to the one that is meant; empty for the whole.
        outcome: What comes of it when a pod starts; empty where the message says it.
        value: What to write there, where that is known.
    """

    fields: tuple[str, ...]
    code: str
    message: str
    hint: str = ""
    value: Any = None
    severity: Severity = "error"
    outcome: str = ""

    @property
    def told(self) -> str:
        """Message and outcome, for those who write the config."""
        return f"{self.message}: {self.outcome}" if self.outcome else self.message


def check_number(at: tuple[str, ...], value: Any, field: ConfigField) -> Iterator[Fault]:
    """A whole number in its range. Go's decoder takes no `50.0` for one."""
    low, high = field.minimum, field.maximum
    if isinstance(value, bool) or not isinstance(value, int):
        yield Fault(
            at, "config-value", f"{literal(value)} is no whole number", f"write one{_range(low, high)}"
        )
    elif (isinstance(low, int) and value < low) or (high is not None and value > high):
        nearest = low if isinstance(low, int) and value < low else high
        yield Fault(at, "config-value", f"{value} is not{_range(low, high)}", value=nearest)


def check_amount(at: tuple[str, ...], value: Any, field: ConfigField) -> Iterator[Fault]:
    """A quantity, as text or number, that is not less than the least."""
    text = quantity_text(value)
    try:
        amount = Quantity.parse("" if text is None else text)
    except ValueError as error:
        yield Fault(at, "config-value", f"{literal(value)} is no amount: {error}", 'write one such as "10Gi"')
        return
    least = Quantity.parse(str(field.minimum))
    # The driver rounds up to whole bytes, and then down to whole MiB.
    if math.ceil(amount.value) < least.value:
        message = f"{literal(value)} is less than {least}"
        yield Fault(at, "config-value", message, value=str(least), outcome=FAILS)


def check_map(at: tuple[str, ...], value: Any, field: ConfigField) -> Iterator[Fault]:
    """Amounts by device."""
    if not isinstance(value, Mapping):
        yield Fault(at, "config-value", f"{literal(value)} is no mapping", f'write {at[-1]}: {{"0": 10Gi}}')
        return
    for key, amount in value.items():
        if not _DEVICE_KEY.fullmatch(str(key)):
            message = f"{str(key)[:80]!r} is neither the UUID of a GPU nor an index from 0 on"
            yield Fault((*at, str(key)), "config-value", message, "an index counts the devices of the config")
        if not is_placeholder(amount):
            yield from check_amount((*at, str(key)), amount, field)


def _range(low: int | str | None, high: int | None) -> str:
    if low is None:
        return ""
    return f" from {low} on" if high is None else f" from {low} to {high}"


_UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_GATED = "gpu.nvidia.com"
_TYPE_META = ("apiVersion", "kind")


class _Line(NamedTuple):
    """The release line and gates that a config's fields are checked for."""

    driver: str
    line: str
    kind: str
    entry: ConfigKind
    strict: bool
    gates: Mapping[str, bool] | None

    def __str__(self) -> str:
        return f"{self.driver} {self.line}"


def check_parameters(
    driver: str, parameters: Any, pins: Pins, gates: Mapping[str, bool] | None = None
) -> list[Fault]:
    """Checks the parameters of one config; nothing is said of the fields of a driver that is not known.

    Args:
        driver: As in `opaque.driver`.
        parameters: Plain JSON data, in which markers stand for values that are secret or not known yet.
        pins: The driver releases that are meant.
        gates: Feature gates that the driver is given; None when they are not known, and nothing is said of them.

    Returns:
        Faults with the codes `invalid-parameters`, `value-too-long`, `config-kind-not-known`,
        `config-field-not-known`, `config-value`, `config-conflict`, `config-not-applied`, `config-needs-gate` and
        `driver-gate-conflict`.
    """
    if is_placeholder(parameters):
        return []
    if not isinstance(parameters, Mapping):
        return [
            Fault((), "invalid-parameters", f"{literal(parameters)} is no JSON object", "write a mapping")
        ]
    release = pins.releases.get(driver)
    configs = configs_of(driver, release.line) if release is not None else None
    faults: list[Fault] = []
    if release is not None and configs is not None:
        faults = list(_check_known(driver, release.line, configs, parameters, gates))
    return faults or list(_check_size(parameters))


def _check_size(parameters: Mapping[str, Any]) -> Iterator[Fault]:
    try:
        text = json.dumps(parameters, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        yield Fault((), "invalid-parameters", f"this cannot be written as JSON: {error}")
        return
    size = len(text.encode(errors="surrogatepass"))
    if size > MAX_PARAMETERS:
        message = f"{size} bytes of JSON, the API server takes at most {MAX_PARAMETERS}"
        yield Fault((), "value-too-long", message, "name a file or an object instead of holding it all")


def _check_known(
    driver: str,
    line: str,
    configs: DriverConfigs,
    parameters: Mapping[str, Any],
    gates: Mapping[str, bool] | None,
) -> Iterator[Fault]:
    version, kind = (parameters.get(name) for name in _TYPE_META)
    if is_placeholder(version) or is_placeholder(kind):
        return
    said = f"{driver} {line}"
    if not configs.kinds:
        message = f"{said} takes no config"
        yield Fault((), "config-kind-not-known", message, "leave the config out", outcome=FAILS)
        return
    if version != configs.api_version:
        message = f"{said} decodes no config with {_missing_or(version, 'apiVersion')}"
        value = configs.api_version
        yield Fault(("apiVersion",), "config-kind-not-known", message, value=value, outcome=FAILS)
    entry = configs.kinds.get(kind) if isinstance(kind, str) else None
    if entry is None:
        message = f"{said} decodes no config with {_missing_or(kind, 'kind')}"
        hint = _kind_hint(driver, kind, configs)
        yield Fault(("kind",), "config-kind-not-known", message, hint, outcome=FAILS)
        return
    about = _Line(driver, line, str(kind), entry, is_strict(driver, line), gates)
    if entry.gate:
        yield from _check_gate(("kind",), about.kind, entry.gate, about)
    rest = {name: value for name, value in parameters.items() if name not in _TYPE_META}
    yield from _check_fields((), rest, entry.fields, about)


def _kind_hint(driver: str, kind: object, configs: DriverConfigs) -> str:
    name = kind if isinstance(kind, str) else ""
    known = ", ".join(configs.kinds)
    if lines := lines_with(driver, name):
        return f"{lines[0]} is the first release that has it; known here are {known}"
    if others := drivers_with(name):
        return f"it is a config of {others[0]}: write driver: {others[0]}"
    near = nearest(name, configs.kinds)
    return f"write kind: {near}" if near else f"write one of {known}"


def _check_fields(
    at: tuple[str, ...], written: Mapping[str, Any], known: Mapping[str, ConfigField], about: _Line
) -> Iterator[Fault]:
    for name, value in written.items():
        if name not in known:
            yield _unknown_field(at, str(name), known, about)
        elif value is not None and not is_placeholder(value):
            yield from _check_beside((*at, name), known[name], written)
            yield from _check_field((*at, name), value, known[name], about)
    for name, field in known.items():
        if field.required and written.get(name) in (None, ""):
            message = f"{about.kind} of {about} needs {name}"
            hint = f"it is one of {', '.join(field.values)}" if field.values else f"give {name}"
            yield Fault((*at, name), "config-value", message, hint, outcome=f"without it {FAILS}")


def _unknown_field(at: tuple[str, ...], name: str, known: Mapping[str, ConfigField], about: _Line) -> Fault:
    inside = ".".join((about.kind, *at))
    outcome = f"the driver refuses it, and {FAILS}" if about.strict else "the driver drops it silently"
    by_case = {each.lower(): each for each in known}
    near = by_case.get(name.lower()) or nearest(name, known)
    if lines := lines_with(about.driver, about.kind, *at, name):
        hint = f"{lines[0]} is the first release that has it"
    elif near:
        hint = f"did you mean {near}?"
    elif place := _place_of(name, about.entry.fields):
        hint = f"it belongs into {'.'.join(place)}"
    else:
        hint = f"its fields are {', '.join(known)}" if known else "it has none: leave it out"
    message = f"{inside} of {about} has no field {name[:80]!r}"
    severity: Severity = "error" if about.strict else "warning"
    return Fault((*at, name), "config-field-not-known", message, hint, severity=severity, outcome=outcome)


def _place_of(name: str, fields: Mapping[str, ConfigField]) -> tuple[str, ...]:
    """The object of the kind that has a field of that name."""
    for each, field in fields.items():
        if name in field.fields:
            return (each,)
        if inner := _place_of(name, field.fields):
            return (each, *inner)
    return ()


def _check_beside(at: tuple[str, ...], field: ConfigField, written: Mapping[str, Any]) -> Iterator[Fault]:
    for name, wanted in field.with_.items():
        found = written.get(name)
        if isinstance(found, str) and found and found != wanted and not is_placeholder(found):
            message = f"{at[-1]} goes with {name} {wanted}, and {name} is {found!r}"
            hint = f"leave {at[-1]} out, or write {name}: {wanted}"
            yield Fault(at, "config-conflict", message, hint, outcome=FAILS)


def _check_field(at: tuple[str, ...], value: Any, field: ConfigField, about: _Line) -> Iterator[Fault]:
    if field.type == "object":
        if isinstance(value, Mapping):
            yield from _check_fields(at, value, field.fields, about)
        else:
            yield Fault(
                at,
                "config-value",
                f"{literal(value)} is no object",
                f"its fields are {', '.join(field.fields)}",
            )
    elif field.type == "map":
        yield from check_map(at, value, field)
    elif field.type == "quantity":
        yield from check_amount(at, value, field)
    elif field.type == "string":
        yield from _check_text(at, value, field, about)
    elif field.type == "bool":
        if not isinstance(value, bool):
            yield Fault(at, "config-value", f"{literal(value)} is neither true nor false", value=True)
    else:
        yield from check_number(at, value, field)


def _check_text(at: tuple[str, ...], value: Any, field: ConfigField, about: _Line) -> Iterator[Fault]:
    if not isinstance(value, str):
        yield Fault(at, "config-value", f"{literal(value)} is no text", f"give {at[-1]} a text")
    elif value and field.values and value not in field.values:
        by_case = {each.lower(): each for each in field.values}
        near = by_case.get(value.lower()) or nearest(value, field.values) or None
        hint = "" if near else f"it is one of {', '.join(field.values)}"
        yield Fault(
            at, "config-value", f"{literal(value)} is not one of {', '.join(field.values)}", hint, near
        )
    elif field.format == "uid" and not _UID.fullmatch(value):
        message = f"{literal(value)} is no UID, which is what {at[-1]} holds"
        yield Fault(at, "config-value", message, "give metadata.uid of the object, not its name")
    elif value in field.without_effect:
        message = f"{about.driver} takes {at[-1]} {value} of a {about.kind} and does nothing"
        yield Fault(at, "config-not-applied", message, "leave the config out", severity="warning")
    if isinstance(value, str):
        if gate := field.gates.get(value):
            yield from _check_gate(at, value, gate, about)
        for gate in field.excludes.get(value, ()):
            yield from _check_exclusion(at, value, gate, about)


def _check_gate(at: tuple[str, ...], what: str, gate: str, about: _Line) -> Iterator[Fault]:
    if _is_on(gate, about) is False:
        message = f"{what} needs the feature gate {gate} of {about}, which is off"
        hint = f"give the driver featureGates: {{{gate}: true}}"
        yield Fault(at, "config-needs-gate", message, hint, outcome=FAILS)


def _check_exclusion(at: tuple[str, ...], what: str, gate: str, about: _Line) -> Iterator[Fault]:
    if _is_on(gate, about):
        message = f"{what} fails while the feature gate {gate} of {about} is on"
        hint = f"give the driver featureGates: {{{gate}: false}}, or ask for no {what}"
        yield Fault(at, "driver-gate-conflict", message, hint, outcome=FAILS)


def _is_on(gate: str, about: _Line) -> bool | None:
    """State of a gate; None where that is not known, or the line has no such gate and needs none."""
    if about.gates is None or about.driver != _GATED or gate not in gates_of(about.line):
        return None
    return gate_states(about.line, about.gates)[gate]


def _missing_or(value: object, name: str) -> str:
    return f"{name} {literal(value)}" if value else f"no {name}"
