"""Observers of the plugin's work: logs, metrics and tests listen."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from dra_infra.errors import PluginError, Problem
from dra_infra.plugin.claims import ClaimReference

DeviceState = Literal["healthy", "unhealthy", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One claim that the kubelet asks to prepare or release.

    Args:
        id: Tells it from all others in the log: the kubelet asks again for a claim where it had an error.
    """

    kind: Literal["prepare", "release"]
    claim: ClaimReference
    id: str = field(default_factory=lambda: secrets.token_hex(4))


class Observer:
    """Listener to the plugin's work, which passes over all that a subclass does not take up.

    It is called from any thread and several at once; its methods return soon and raise nothing.
    """

    def began(self, operation: Operation) -> None:
        """A claim's turn came. Its text is not checked yet: whoever reaches the socket wrote it."""

    def ended(self, operation: Operation, *, seconds: float, error: PluginError | None) -> None:
        """A claim was prepared or released, or *error* was answered.

        Where nobody expected it (code `plugin-failed`), the error's `__cause__` is the exception itself.
        """

    def registered(self, *, registered: bool, text: str) -> None:
        """The kubelet took the plugin, or not, for the reason that *text* gives."""

    def published(self, *, slices: int, generation: int, error: PluginError | None) -> None:
        """The node's slices are on the API server as the back end has them, or not yet for *error*."""

    def devices(self, by_state: Mapping[DeviceState, int]) -> None:
        """The numbers of devices in each state, which may have changed."""

    def reconciled(self, *, prepared: int, released: int, restored: int) -> None:
        """Prepared claims were compared with those of the API server.

        Args:
            prepared: Claims that are prepared now.
            released: Claims that nobody has any more, and that were therefore released.
            restored: Claims whose record was lost and is there again.
        """

    def noticed(self, problems: Sequence[Problem]) -> None:
        """Something that is no answer to a call: a file set aside, a field that the API server drops."""

    def malformed(self, *, method: str, peer: str) -> None:
        """A request to *method* was refused, because it is not the message that the method takes.

        Args:
            method: Service and method, such as `grpc.health.v1.Health/Check`.
            peer: Who sent it, in gRPC's words; those at a Unix socket have no address.
        """
