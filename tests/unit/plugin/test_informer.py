from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from dra_infra.client.kinds import SLICES
from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.api_server.informer import Informer
from dra_infra.plugin.api_server.refusals import ApiError


def failure(status: int, retry_after: float = 0.0) -> ApiError:
    problem = Problem(path="watch resourceslices", code="api-refused", message="no")
    return ApiError(problem, status=status, retry_after=retry_after)


class Script:
    """A server whose watches are scripted: events by version, which end or fail. It waits for nothing."""

    def __init__(self, *watches: list[int] | Exception, lists: list[str | Exception] | None = None) -> None:
        self.watches = list(watches)
        self.lists = lists or [str(number) for number in range(1000, 9000, 1000)]
        self.calls: list[str] = []
        self.pauses: list[float] = []
        self.told: list[PluginError] = []
        self._done = threading.Event()
        self._woken = threading.Event()
        self._informer = Informer(
            self,  # type: ignore[arg-type]  (the part of it that is used)
            SLICES,
            name="script",
            list_objects=self._begin,
            on_event=lambda type_, item: self.calls.append(f"{type_} {item['metadata']['resourceVersion']}"),
            wake=self._woken.set,
            on_resume=lambda: self.calls.append("resumed"),
            on_error=self.told.append,
            wait=self._wait,
        )

    def watch(self, _kind: Any, since: str, *, field_selector: str) -> Script:
        assert field_selector == ""
        self.calls.append(f"watch {since}")
        return self

    def __iter__(self) -> Iterator[Any]:
        step = self.watches.pop(0)
        if isinstance(step, Exception):
            raise step
        for version in step:
            yield "MODIFIED", {"metadata": {"resourceVersion": str(version)}}

    def stop(self) -> None:
        pass

    def _begin(self) -> str:
        found = self.lists.pop(0)
        if isinstance(found, Exception):
            raise found
        self.calls.append(f"list {found}")
        return found

    def _wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        if not self.watches:
            self._done.set()
            self._woken.wait(600)
        return False

    def run(self) -> Script:
        self._informer.start()
        assert self._done.wait(300)
        self._informer.stop()
        self._informer._thread.join(300)
        assert not self._informer._thread.is_alive()
        return self


def test_a_watch_that_ends_goes_on_where_it_was_without_a_list() -> None:
    script = Script([1001, 1002], [], [1003]).run()
    assert script.calls == [
        *("list 1000", "watch 1000", "MODIFIED 1001", "MODIFIED 1002"),
        *("resumed", "watch 1002"),
        *("resumed", "watch 1002", "MODIFIED 1003"),
    ]
    assert script.told == []


def test_what_is_too_old_is_listed_again_and_is_no_failure_to_tell() -> None:
    script = Script([1001], failure(410), [2001]).run()
    assert script.calls[-3:] == ["list 2000", "watch 2000", "MODIFIED 2001"]
    assert script.told == []


@pytest.mark.parametrize("error", [failure(0), failure(503), ValueError("a bug")])
def test_every_other_failure_is_told_and_listed_again(error: Exception) -> None:
    script = Script([1001], error, [2001]).run()
    assert script.calls[-3:] == ["list 2000", "watch 2000", "MODIFIED 2001"]
    assert len(script.told) == 1


def test_a_list_that_fails_or_is_not_needed_is_made_again() -> None:
    script = Script([], lists=[failure(503), "", "1000"]).run()
    assert script.calls == ["list ", "list 1000", "watch 1000"]
    assert len(script.told) == 1


def test_pauses_grow_while_nothing_comes_and_begin_anew_when_something_does() -> None:
    script = Script(*[failure(0)] * 6, [7001], []).run()
    for number, pause in enumerate(script.pauses[:6], start=1):
        assert 0.1 <= pause <= min(10.0, 0.5 * 2**number)
    # Also behind a watch that only ended: the server may have been stopped, and all nodes come back.
    assert [0.1 <= each <= most for each, most in zip(script.pauses[6:], (0.5, 1.0), strict=True)] == [
        True
    ] * 2
    assert max(max(Script(*[failure(0)] * 8).run().pauses[5:]) for _ in range(20)) > 5.0


def test_a_server_gets_the_time_that_it_asks_for() -> None:
    script = Script(failure(429, 20.0), failure(503, 10**6), lists=["1", "2"]).run()
    assert 20.1 <= script.pauses[0] <= 21.0
    assert 60.1 <= script.pauses[1] <= 62.0
