"""Which cases random tests draw: the same ones each time, or those of another seed (`make explore`)."""

from __future__ import annotations

import os
from typing import Final

from hypothesis.internal.conjecture import providers

SEED: Final = int(os.environ.get("DRA_INFRA_EXPLORE") or 0)
"""The seed of `make explore`; 0 means that the cases are those of `make test`."""


def seeds(count: int) -> range:
    """Return seeds of single cases: `0` to `count - 1`, or as many others for a seed of `make explore`."""
    return range(SEED * count, (SEED + 1) * count)


def draw_no_source_constants() -> None:
    """Keep Hypothesis from drawing the constants of the modules that happen to be loaded.

    Which ones are loaded depends on the tests that the process ran before, and a changed constant would change the cases of
    every test. Then neither the same test nor the same seed would draw the same cases again.
    """
    providers._get_local_constants = providers.Constants
