"""Values that a run without a cluster does not know: what stands for them breaks no rule.

A program's objects hold `UNKNOWN` or `SECRET` where a value only exists after `pulumi up`. As a text it may be any
text, so findings about it are left out; as a number or a mapping it may be any of those, so the field is left out.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from dra_infra.model.markers import SECRET, UNKNOWN
from dra_infra.validation.field_errors import FieldError, quoted

_PRINTED: Final = (quoted(UNKNOWN), quoted(SECRET))
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def is_told(error: FieldError) -> bool:
    """Whether *error* is about a value that is known."""
    return error.value not in _PRINTED


def without_markers(manifest: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any] | None:
    """A copy of *manifest* without the markers at *paths*; None when a value there is no marker."""
    stripped = copy.deepcopy(dict(manifest))
    for path in paths:
        *steps, last = (
            int(index) if index else name
            for name, index in (found.groups() for found in _STEP.finditer(path))
        )
        holder: Any = stripped
        try:
            for step in steps:
                holder = holder[step]
            if holder[last] not in (UNKNOWN, SECRET):
                return None
            holder[last] = None
        except (KeyError, IndexError, TypeError):
            return None
    return stripped
