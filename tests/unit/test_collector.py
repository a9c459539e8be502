"""The collector starts again as it was, and what was made counts as old."""

from __future__ import annotations

import gc

from dra_infra.process import collector_paused


def test_what_was_made_counts_as_old():
    with collector_paused():
        assert not gc.isenabled()
        made = [[] for _ in range(50_000)]
    assert gc.isenabled()
    assert len(made) == 50_000
    assert gc.get_count()[0] < 10_000
    assert any(each is made for each in gc.get_objects(generation=2))


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with collector_paused():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
