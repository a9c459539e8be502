"""What devices have where an expression looks, in few words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from dra_infra.simulation.allocation.attributes import scalar, static_attribute, values
from dra_infra.simulation.allocation.identity import Published
from dra_infra.simulation.dependencies import find_dependencies

_SHOWN_TEXT: Final = 160
_SHOWN_VALUES: Final = 3


def shorten(text: str, most: int = _SHOWN_TEXT) -> str:
    """In one line, cut where it is long."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def describe_values(expression: str, devices: Iterable[Published]) -> str:
    """A few distinct values of each attribute and capacity that *expression* reads."""
    seen = list(devices)
    shown = []
    for source, domain, identifier in sorted(find_dependencies(expression) or ()):
        if identifier:
            found = sorted({show_value(device, source, domain, identifier) for device in seen})
            shown.append(f"{identifier} is {join_values(found)}")
    return "; ".join(shown)


def join_values(found: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(found) - _SHOWN_VALUES} more" if len(found) > _SHOWN_VALUES else ""
    return f"{', '.join(found[:_SHOWN_VALUES])}{more}"


def show_value(published: Published, source: str, domain: str, identifier: str) -> str:
    """One value as a person writes it; `absent` where the device has none."""
    name = f"{domain}/{identifier}"
    if source == "capacity":
        capacity = published.device.capacity or {}
        found = capacity.get(name)
        if found is None and domain == published.id.driver:
            found = capacity.get(identifier)
        return "absent" if found is None else found.value
    attribute = static_attribute(published, name)
    if attribute is None:
        return "absent"
    single = scalar(attribute)
    if single is not None:
        return _quoted(*single)
    several = values(attribute)
    if several is None:
        return "empty"
    return f"[{', '.join(sorted(_quoted(several[0], each) for each in several[1]))}]"


def _quoted(kind: str, value: object) -> str:
    return f'"{value}"' if kind in ("string", "version") else str(value).lower()
