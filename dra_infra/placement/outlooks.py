"""Whether the autoscaler of a node pool adds nodes for the pods that need them, with what it lacks and where that is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

GrowsAnswer: TypeAlias = Literal["grows", "grows-if", "does-not-grow", "not-known"]

_HEADS: Final[dict[GrowsAnswer, str]] = {"grows": "grows", "does-not-grow": "does not grow"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolOutlook:
    """The answer for one pool and the pods of one program.

    Args:
        pool: The user's name of the pool.
        answer: `grows`; `grows-if`: with the lines; `does-not-grow`: whatever is written; `not-known`: no source says.
        autoscaler: What people call the autoscaler.
        version: Its version; empty where it is not known.
        reason: Why it does not grow, or what is not known.
        lines: What to write, each with where: `x: true in the values of the chart`.
        instead: What to do where it does not grow.
        source: Where the facts come from, with versions.
    """

    pool: str
    answer: GrowsAnswer
    autoscaler: str
    version: str = ""
    reason: str = ""
    lines: tuple[str, ...] = ()
    instead: str = ""
    source: str = ""

    def __str__(self) -> str:
        name = f"{self.autoscaler} {self.version}".rstrip()
        autoscaler = f"{name}: {self.reason}" if self.reason else name
        if self.answer == "not-known":
            text = f"it is not known whether node pool {self.pool} grows: {autoscaler}"
        elif self.lines:
            text = f"node pool {self.pool} grows if {' and '.join(self.lines)} ({autoscaler})"
        else:
            text = f"node pool {self.pool} {_HEADS[self.answer]}: {autoscaler}"
        instead = f"; what to do: {self.instead}" if self.instead else ""
        return f"{text}{instead} [{self.source}]"

    def to_data(self) -> dict[str, object]:
        """Return the answer as JSON has it."""
        return {
            "pool": self.pool,
            "answer": self.answer,
            "autoscaler": self.autoscaler,
            "version": self.version,
            "reason": self.reason,
            "lines": list(self.lines),
            "instead": self.instead,
            "source": self.source,
        }
