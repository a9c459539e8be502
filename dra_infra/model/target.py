"""What a program compiles for: the Kubernetes minor, and later gates, driver and fleet."""

from __future__ import annotations

from dataclasses import dataclass

SUPPORTED_MINORS = ("1.34", "1.35", "1.36", "1.37")
"""The Kubernetes minors whose rules are known here, oldest first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterTarget:
    """The cluster that a program is meant for.

    Args:
        kubernetes: Minor version, one of `SUPPORTED_MINORS`. None checks on the oldest and the newest.
    """

    kubernetes: str | None = None

    @property
    def minors(self) -> tuple[str, ...]:
        """The minors on which everything must hold."""
        if self.kubernetes is None:
            return (SUPPORTED_MINORS[0], SUPPORTED_MINORS[-1])
        return (self.kubernetes,)
