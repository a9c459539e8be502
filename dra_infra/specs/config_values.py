"""Whether the values of a config can be written as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from dra_infra.specs.arguments import is_output
from dra_infra.specs.shared_arguments import is_text

_LARGEST: Final = 2**63
"""What readers of JSON in Go hold in a whole number."""


def find_odd(value: Any, at: tuple[str, ...] = ()) -> tuple[tuple[str, ...], Any] | None:
    """The first value that JSON cannot hold, with its place; None where there is none. Outputs are not judged."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            if isinstance(key, bool) or not isinstance(key, str | int) or not is_text(str(key)):
                return (at, key)
            if found := find_odd(each, (*at, str(key))):
                return found
        return None
    if isinstance(value, list | tuple):
        return next(filter(None, (find_odd(each, at) for each in value)), None)
    if isinstance(value, str):
        return None if is_text(value) else (at, value)
    if isinstance(value, float):
        return None if math.isfinite(value) else (at, value)
    if isinstance(value, int):
        return None if abs(value) <= _LARGEST else (at, value)
    return None if value is None or is_output(value) else (at, value)
