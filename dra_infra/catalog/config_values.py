"""Whether single values of a config are what its driver takes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from dra_infra.catalog.device_configs import ConfigField
from dra_infra.errors import Severity
from dra_infra.model.literals import literal
from dra_infra.model.markers import SECRET, UNKNOWN
from dra_infra.model.quantity import Quantity, quantity_text

FAILS: Final = "pods fail when they start"
"""What comes of a config that the driver refuses."""

_DEVICE_KEY: Final = re.compile(r"\+?[0-9]+|(GPU|MIG)-.+", re.ASCII)


class Fault(NamedTuple):
    """What is wrong with the parameters of a config, before it has a path in the user's terms.

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
        if amount not in (UNKNOWN, SECRET):
            yield from check_amount((*at, str(key)), amount, field)


def _range(low: int | str | None, high: int | None) -> str:
    return "" if low is None else f" from {low} on" if high is None else f" from {low} to {high}"
