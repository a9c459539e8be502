from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dra_infra.plugin.service.serving import Pool, Server


@pytest.fixture
def folder() -> Iterator[Path]:
    """One with a short path: sockets have no room for that of `tmp_path`."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.fixture
def shared_threads() -> Iterator[None]:
    """Threads that all servers of a process share are there before and behind a test, whoever ends in it."""
    with tempfile.TemporaryDirectory() as path:
        server = Server([Path(path) / "other.sock"], (), pool=Pool(1, "other"))
        server.start()
        yield
        assert server.stop(0)
