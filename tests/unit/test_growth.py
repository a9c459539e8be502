"""Our own measure of growth tells linear from quadratic work."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.growth import takes_linear_time


def test_linear_work_is_told_from_quadratic_work() -> None:
    def once(size: int) -> Callable[[], object]:
        return lambda: sum(range(1000 * size))

    def squared(size: int) -> Callable[[], object]:
        return lambda: [sum(range(size)) for _ in range(size)]

    assert takes_linear_time(once, 8_000)
    assert not takes_linear_time(squared, 8_000)
