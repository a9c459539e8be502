"""What the tooling raises when a person has to do something."""

from __future__ import annotations


class ToolError(Exception):
    """A step of the tooling failed for a reason that the reader can act on.

    Args:
        message: What failed, on what, with which value.
        hint: The next step, as a line to run or write.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message
