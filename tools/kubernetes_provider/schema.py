"""The schema that the provider serves: programs in YAML are checked against it, and programs in Python need none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]


def read_schema(version: str) -> str:
    """Return the schema as JSON, which `sdk_schema.py` reads from the vendor's SDK.

    Args:
        version: Of the provider.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"{__package__}.sdk_schema", version],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout
