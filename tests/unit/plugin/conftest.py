from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a short path: sockets have no room for that of `tmp_path`."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)
