from __future__ import annotations

import pytest

from dra_infra.plugin.api_server.requests import backoff


@pytest.mark.parametrize(("failures", "window"), [(0, 0.5), (1, 1.0), (3, 4.0), (9, 10.0), (10**9, 10.0)])
def test_nodes_that_fail_together_come_back_spread_over_a_window_that_doubles(
    failures: int, window: float
) -> None:
    """A thousand nodes: in no tenth of the window are many more of them than in another one."""
    pauses = [backoff(failures) for _ in range(1000)]
    width = (window - 0.1) / 10
    tenths = [
        sum(0.1 + place * width <= each <= 0.1 + (place + 1) * width for each in pauses)
        for place in range(10)
    ]
    assert sum(tenths) == 1000
    assert min(tenths) > 50
    assert max(tenths) < 200


def test_what_a_server_asks_for_is_waited_for_first_within_bounds() -> None:
    pauses = [backoff(1, 7.0) for _ in range(100)]
    assert min(pauses) > 7.0
    assert max(pauses) <= 8.0
    assert len(set(pauses)) > 50
    assert backoff(1, 1e9) <= 61.0
