"""Logs the plugin's work, in lines of the log, and joins several observers to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.command.logs import log, log_error, log_problem, set_context
from dra_infra.plugin.observing import DeviceState, Observer, Operation

_DONE: Final = {"prepare": "prepared", "release": "released"}
_LONGEST: Final = 300
"""Characters of a name in a line; the kubelet's have at most 253."""


class OperationLog(Observer):
    """An observer that writes a line of each thing, where the operation's id and claim stand in all lines of it."""

    def began(self, operation: Operation) -> None:
        """As `Observer.began`."""
        set_context(_fields(operation))
        log("debug", f"{operation.kind} begins")

    def ended(self, operation: Operation, *, seconds: float, error: PluginError | None) -> None:
        """As `Observer.ended`."""
        fields = {**_fields(operation), "seconds": round(seconds, 6)}
        if error is None:
            log("info", _DONE[operation.kind], **fields)
        else:
            for problem in error.problems:
                log_problem("warning", f"{operation.kind} failed", problem, **fields)
            if error.__cause__ and any(each.code == "plugin-failed" for each in error.problems):
                log_error("error", "nobody expected this; please report it", error.__cause__, **fields)
        set_context({})

    def registered(self, *, registered: bool, text: str) -> None:
        """As `Observer.registered`."""
        if registered:
            log("info", "registered at the kubelet")
        else:
            log("error", "the kubelet did not register the plugin", reason=text[:_LONGEST])

    def published(self, *, slices: int, generation: int, error: PluginError | None) -> None:
        """As `Observer.published`."""
        fields = {"slices": slices, "generation": generation}
        if error is None:
            log("info", "published", **fields)
        else:
            log_error("warning", "not published yet", error, **fields)

    def devices(self, by_state: Mapping[DeviceState, int]) -> None:
        """As `Observer.devices`."""
        log("warning" if by_state.get("unhealthy") else "info", "devices", **dict[str, int](by_state.items()))

    def reconciled(self, *, prepared: int, released: int, restored: int) -> None:
        """As `Observer.reconciled`."""
        fields = {"prepared": prepared, "released": released, "restored": restored}
        log(
            "warning" if released or restored else "info",
            "compared with the claims of the API server",
            **fields,
        )

    def noticed(self, problems: Sequence[Problem]) -> None:
        """As `Observer.noticed`."""
        for problem in problems:
            log_problem(problem.severity, "noticed", problem)

    def malformed(self, *, method: str, peer: str) -> None:
        """As `Observer.malformed`."""
        log_malformed(method=method, peer=peer)


def log_malformed(*, method: str, peer: str) -> None:
    """Write the line of a request that was refused; some a minute, because of its `peer`."""
    log("warning", "a request is malformed", method=method, peer=peer)


def _fields(operation: Operation) -> dict[str, str]:
    claim = operation.claim
    return {
        "operation": operation.id,
        "namespace": claim.namespace[:_LONGEST],
        "claim": claim.name[:_LONGEST],
        "uid": claim.uid[:_LONGEST],
    }


class Observers(Observer):
    """Tells each of them, in their order; one that fails keeps nothing from the others, nor from the work."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def began(self, operation: Operation) -> None:
        """As `Observer.began`."""
        self._notify(lambda each: each.began(operation))

    def ended(self, operation: Operation, *, seconds: float, error: PluginError | None) -> None:
        """As `Observer.ended`."""
        self._notify(lambda each: each.ended(operation, seconds=seconds, error=error))

    def registered(self, *, registered: bool, text: str) -> None:
        """As `Observer.registered`."""
        self._notify(lambda each: each.registered(registered=registered, text=text))

    def published(self, *, slices: int, generation: int, error: PluginError | None) -> None:
        """As `Observer.published`."""
        self._notify(lambda each: each.published(slices=slices, generation=generation, error=error))

    def devices(self, by_state: Mapping[DeviceState, int]) -> None:
        """As `Observer.devices`."""
        self._notify(lambda each: each.devices(by_state))

    def reconciled(self, *, prepared: int, released: int, restored: int) -> None:
        """As `Observer.reconciled`."""
        self._notify(lambda each: each.reconciled(prepared=prepared, released=released, restored=restored))

    def noticed(self, problems: Sequence[Problem]) -> None:
        """As `Observer.noticed`."""
        self._notify(lambda each: each.noticed(problems))

    def malformed(self, *, method: str, peer: str) -> None:
        """As `Observer.malformed`."""
        self._notify(lambda each: each.malformed(method=method, peer=peer))

    def _notify(self, what: Callable[[Observer], None]) -> None:
        for each in self._observers:
            try:
                what(each)
            except Exception as error:  # noqa: BLE001  (whoever listens is not to stop the work)
                log_error("error", "an observer failed", error)
