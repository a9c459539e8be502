from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from dra_infra.plugin.publishing.slice_writing import SliceWatch


class NullObserver:
    """A watch on which nothing happens until it is stopped."""

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        self.stopped.wait(600)
        return iter(())

    def stop(self) -> None:
        self.stopped.set()


class Api:
    """Lets somebody stop the watch in the moment before it begins."""

    def watch(self, *_: Any, **__: Any) -> NullObserver:
        self.stopping = threading.Thread(target=self.slices.stop)
        self.stopping.start()
        # It waits for the thread that is here, so that it has looked for the watch by then, or does later.
        self.stopping.join(0.2)
        return NullObserver()


def test_a_watch_that_is_stopped_in_the_moment_in_which_it_begins_ends_at_once() -> None:
    api = Api()
    api.slices = SliceWatch(api, "", changed=lambda: None, lost=lambda: None, on_error=lambda _: None)
    api.slices.start()
    api.slices.listed("1")
    # Less than the silence of the watch.
    thread = api.slices._informer._thread
    thread.join(120)
    assert not thread.is_alive()
    api.stopping.join(120)
