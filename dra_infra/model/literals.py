"""Values of users as messages show them."""

from __future__ import annotations


def literal(value: object) -> str:
    """The literal of *value* in bounded length."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
