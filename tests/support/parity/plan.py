"""How many objects are generated for which server."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.support.parity.gate_sets import ALL, DEFAULT, NONE

VARIABLE = "DRA_INFRA_PARITY_N"
"""Environment variable with the number of generated objects for each server with its default gates."""

REPEAT_EVERY = 8
"""In tests, of which questions the second form is asked where it can change nothing; `make parity` asks both always."""

SWEEP_EVERY = 2
"""In tests, which part of the systematic faults is asked; `make parity` asks all. Half of them misses no rule."""

_USUAL = 1500


def counts(number: int | None = None) -> Mapping[str, int]:
    """Generated objects by gate set; *number* is for the default gates, the others get a part of it."""
    given = number or int(os.environ.get(VARIABLE, _USUAL))
    return {DEFAULT: given, ALL: given // 3, NONE: given // 6}
