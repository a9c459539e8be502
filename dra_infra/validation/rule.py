"""What a rule of the API server is."""

from __future__ import annotations

from typing import NamedTuple


class Rule(NamedTuple):
    """One rule of the API server.

    Args:
        code: The stable code of its problems.
        text: What must hold.
        needs: Gate without which the field that it looks at never gets this far.
        since: First minor that has it, as a number.
        until: Last minor that has it, as a number.
    """

    code: str
    text: str
    needs: str = ""
    since: int = 34
    until: int = 37
