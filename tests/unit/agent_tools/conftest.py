from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_tools.agent import Agent, connected_agent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the server."""
    return tmp_path_factory.mktemp("agent")


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the server copies input."""
    return tmp_path_factory.mktemp("copies")


@pytest.fixture(scope="module")
def agent(folder: Path, copies: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    """An agent that is connected to a server, one for the tests of a module."""
    log = tmp_path_factory.mktemp("log") / "server.log"
    with connected_agent(folder, log, {"TMPDIR": str(copies)}) as agent:
        yield agent
