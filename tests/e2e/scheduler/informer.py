"""What a control plane has of some kinds, kept up to date, to wait for what several of them say together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import httpx

from tools.cluster import Api, ApiError, Manifest, WaitTimeoutError

Found = TypeVar("Found")

_FOREVER: Final = 24 * 3600.0


class Informer:
    """Objects of some kinds in all namespaces, as a watch of each tells them.

    Args:
        api: The administrator of the control plane; whoever ends it ends the watches.
        kinds: Which to watch.
    """

    def __init__(self, api: Api, kinds: Sequence[str]) -> None:
        self._api = api
        self._objects: dict[str, list[Manifest]] = {}
        self._changed = threading.Condition()
        for kind in kinds:
            threading.Thread(target=self._watch, args=(kind,), name=f"informer {kind}", daemon=True).start()
        self.wait_for(lambda: len(self._objects) == len(kinds))

    def of(self, kind: str, namespace: str) -> list[Manifest]:
        """The objects of a kind in a namespace, by name."""
        return [each for each in self._objects[kind] if each["metadata"]["namespace"] == namespace]

    def wait_for(self, look: Callable[[], Found], *, timeout: float = 120.0) -> Found:
        """What *look* finds as soon as it finds anything; it is asked again after each change.

        Raises:
            WaitTimeoutError: After *timeout* seconds.
        """
        deadline = time.monotonic() + timeout
        with self._changed:
            while not (found := look()):
                left = deadline - time.monotonic()
                if left <= 0:
                    raise WaitTimeoutError(f"waited {timeout:g} s for objects of several kinds")
                self._changed.wait(left)
            return found

    def _watch(self, kind: str) -> None:
        def keep(objects: list[Manifest]) -> bool:
            with self._changed:
                self._objects[kind] = objects
                self._changed.notify_all()
            return False

        # The control plane ends before the process does.
        with suppress(httpx.HTTPError, ApiError, WaitTimeoutError, RuntimeError):
            self._api.wait_for(kind, keep, timeout=_FOREVER)
