from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.errors import PluginError
from dra_infra.plugin.command.instance import InstanceLock
from dra_infra.plugin.locks import PreparationLock
from dra_infra.plugin.publishing.publisher import PublisherLock
from tests.unit.plugin.faults import codes


def take_a_turn(folder: Path) -> None:
    with PreparationLock(folder / "lock").acquire():
        pass


def publish_alone(folder: Path) -> None:
    PublisherLock(folder / "lock").acquire(threading.Event())


def be_an_instance(folder: Path) -> None:
    instances = InstanceLock(folder)
    try:
        instances.acquire()
    finally:
        instances.release()


USERS = [take_a_turn, publish_alone, be_an_instance]


@pytest.mark.parametrize("use", USERS)
def test_a_file_system_without_locks_is_told_and_holds_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], None]
) -> None:
    def refuse(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(PluginError) as caught:
        use(tmp_path)
    assert codes(caught.value) == ["plugin-folder-not-usable"]
    assert "No locks available" in caught.value.problems[0].message
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("use", USERS)
def test_a_folder_that_is_not_there_is_told(tmp_path: Path, use: Callable[[Path], None]) -> None:
    with pytest.raises(PluginError) as caught:
        use(tmp_path / "none")
    assert codes(caught.value) == ["plugin-folder-not-usable"]
