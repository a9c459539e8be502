"""What all reports in JSON have in common: the name of their schema, and the case of their keys.

A problem, a place and a reference to an object have the same keys in every report, because all of them are made here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

_WORD: Final = re.compile(r"[_ ]([a-z])")


def make_report(command: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report as JSON data, with the name of its schema.

    Args:
        command: The command, or another name that its schema has: `simulate`.
        data: All other keys.
    """
    return {"schema": f"dra-infra.{command}/v1", **data}


def to_data(value: Any) -> Any:
    """Return a record, or a collection of them, as JSON data with keys in camel case.

    Keys of mappings are names that users gave, and stay.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            camel_case(each.name): to_data(getattr(value, each.name)) for each in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [to_data(item) for item in value]
    return value


def camel_case(name: str) -> str:
    """Return the name of a field in camel case: `moreTime` for `more_time` and `more time`."""
    return _WORD.sub(lambda found: found[1].upper(), name)
