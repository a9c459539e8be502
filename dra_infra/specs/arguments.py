"""What is wrong with arguments whatever they are for: their type, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dra_infra.errors import Problem
from dra_infra.model.literals import literal

PLAIN_HINT: Final = "this decides the structure: give a plain value, not a Pulumi Output"
"""What to do about a Pulumi Output where the value must be known while the program runs."""


def wrong_type(path: str, value: object, expected: str, hint: str = "") -> Problem:
    """*value* is not *expected*; code `wrong-type`."""
    shown = "a Pulumi Output" if is_output(value) else f"{shorten(value)} ({type(value).__name__})"
    return Problem(path=path, code="wrong-type", message=f"{shown} is not {expected}", hint=hint)


def is_list(value: object) -> bool:
    """Whether *value* is a plain sequence of things."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def too_many(path: str, count: int, most: int, hint: str) -> Problem:
    """A list is longer than the API server takes; code `too-many-items`."""
    message = f"{count} items, the API server takes at most {most}"
    return Problem(path=path, code="too-many-items", message=message, hint=hint)


def is_output(value: object) -> bool:
    """Whether *value* is a Pulumi Output."""
    # By name: specs know no Pulumi, and still must tell people what they passed.
    return any(
        base.__module__.startswith("pulumi") and base.__name__ == "Output" for base in type(value).__mro__
    )


def shorten(value: object) -> str:
    """The literal of *value* in bounded length."""
    # An Output has no literal but its address, which is another one in each run.
    return "a Pulumi Output" if is_output(value) else literal(value)
