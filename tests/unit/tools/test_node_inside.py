"""Process 1 of a node's namespaces."""

from __future__ import annotations

import gc
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.node.inside import _Node


@pytest.fixture
def node(tmp_path: Path) -> Iterator[_Node]:
    handler = signal.getsignal(signal.SIGCHLD)
    made = _Node(str(tmp_path / "inside.sock"))
    try:
        yield made
    finally:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, handler)
        for each in (made.listener, made.deaths, made.signals):
            each.close()


def test_it_sleeps_until_a_process_ends_and_then_knows_how(
    node: _Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    gc.collect()
    assert select.select([node.deaths], [], [], 0.1)[0] == []
    node.start("three", ["sh", "-c", "exit 3"], {"PATH": "/usr/bin:/bin"})
    assert select.select([node.deaths], [], [], 10)[0] == [node.deaths]
    node.reap()
    assert node.codes == {"three": 3}
    assert select.select([node.deaths], [], [], 0.1)[0] == []
