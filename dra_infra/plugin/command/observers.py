"""Several observers as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.logs import tell_error
from dra_infra.plugin.observing import DeviceState, Observer, Operation


class Observers:
    """Tells each of them, in their order; one that fails keeps nothing from the others, nor from the work."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def began(self, operation: Operation) -> None:
        """As `Observer.began`."""
        self._tell(lambda each: each.began(operation))

    def ended(self, operation: Operation, *, seconds: float, error: PluginError | None) -> None:
        """As `Observer.ended`."""
        self._tell(lambda each: each.ended(operation, seconds=seconds, error=error))

    def registered(self, *, registered: bool, text: str) -> None:
        """As `Observer.registered`."""
        self._tell(lambda each: each.registered(registered=registered, text=text))

    def published(self, *, slices: int, generation: int, error: PluginError | None) -> None:
        """As `Observer.published`."""
        self._tell(lambda each: each.published(slices=slices, generation=generation, error=error))

    def devices(self, by_state: Mapping[DeviceState, int]) -> None:
        """As `Observer.devices`."""
        self._tell(lambda each: each.devices(by_state))

    def reconciled(self, *, prepared: int, released: int, restored: int) -> None:
        """As `Observer.reconciled`."""
        self._tell(lambda each: each.reconciled(prepared=prepared, released=released, restored=restored))

    def noticed(self, problems: Sequence[Problem]) -> None:
        """As `Observer.noticed`."""
        self._tell(lambda each: each.noticed(problems))

    def _tell(self, what: Callable[[Observer], None]) -> None:
        for each in self._observers:
            try:
                what(each)
            except Exception as error:  # noqa: BLE001  (whoever listens is not to stop the work)
                tell_error("error", "an observer failed", error)
