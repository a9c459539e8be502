"""A pipe is read to its end before anything is made of what came through it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from typing import IO

import pytest

from dra_infra.program import pipe_reader
from dra_infra.program.pipe_reader import PipeReader


@pytest.fixture
def pipe() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb", buffering=0) as taken, os.fdopen(writer, "wb", buffering=0) as given:
        yield taken, given


def test_what_comes_late_is_waited_for(pipe, monkeypatch: pytest.MonkeyPatch):
    # What is there has to be read, however long the other thread is kept from it.
    monkeypatch.setattr(pipe_reader, "_QUIET", 0.0)
    taken, given = pipe
    may_read = threading.Event()
    read = []

    def slowly(source: IO[bytes]) -> None:
        assert may_read.wait(60)
        while chunk := source.read(2):
            read.append(chunk)

    given.write(b"half" * 100)
    given.close()
    reader = PipeReader(taken, slowly)
    threading.Timer(0.2, may_read.set).start()

    assert reader.wait_for_end()
    assert b"".join(read) == b"half" * 100
    assert taken.closed


def test_a_pipe_that_somebody_keeps_open_does_not_end(pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipe_reader, "_QUIET", 0.01)
    taken, given = pipe
    reader = PipeReader(taken, lambda source: source.read())

    assert not reader.wait_for_end()
    given.close()
    monkeypatch.undo()
    assert reader.wait_for_end()


def test_a_pipe_that_is_written_to_without_an_end_does_not_end(pipe, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pipe_reader, "_LONGEST", 0.05)
    taken, given = pipe
    ended = threading.Event()
    reader = PipeReader(taken, lambda _: ended.wait(60))
    given.write(b"a")

    assert not reader.wait_for_end()
    ended.set()
    monkeypatch.undo()
    assert reader.wait_for_end()


def test_a_thread_that_cannot_start_leaves_no_pipe_open(pipe, monkeypatch: pytest.MonkeyPatch):
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    taken, _ = pipe
    with pytest.raises(RuntimeError):
        PipeReader(taken, lambda _: None)
    assert taken.closed
