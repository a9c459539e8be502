"""Texts that stand in manifests for values that are not known here. A rule judges none of them.

Such a text is a `Placeholder`. No YAML and no JSON can spell one: the same characters in a file are an ordinary text.
Nothing of ours is loaded with this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Self


class Placeholder(str):
    """A text that stands in a manifest for a value that is not known here, or that has such a value in it.

    A placeholder equals other placeholders of the same text and class, and no ordinary text. `str(placeholder)` and copies are the
    placeholder itself. An f-string, `join` and every method of texts give an ordinary text.

    Args:
        text: How reports show it: `[unknown]`, or a longer text such as `[unknown]-0`.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Make the placeholder that reports show as *text*."""
        # `str.__str__`, for *text* may be a placeholder, whose own text is wanted.
        return super().__new__(cls, str.__str__(text))

    def __eq__(self, other: object) -> bool:
        """Compare with another placeholder: Python asks this before the method of an ordinary text."""
        return type(self) is type(other) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        """Return the opposite of `==`, which `str` would answer by the characters."""
        return not self == other

    def __hash__(self) -> int:
        """Return a hash that differs from the one of the ordinary text."""
        return hash((type(self), str.__hash__(self)))

    def __str__(self) -> str:
        """Return the placeholder itself, so that `str(value)` of a field keeps what it is."""
        return self

    def __copy__(self) -> Self:
        """Return the placeholder itself: it never changes."""
        return self

    def __deepcopy__(self, _memo: Any) -> Self:
        """Return the placeholder itself: it never changes."""
        return self

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """Return how `pickle` makes the placeholder anew."""
        return type(self), (plain_text(self),)


def plain_text(text: str) -> str:
    """Return the characters of *text* as an ordinary text, also of a placeholder."""
    # A slice of a text is an ordinary text, whatever it is a slice of.
    return text[:]


def as_placeholder(value: str, text: str) -> str:
    """Return *text*, which was made of *value*, as a placeholder of the same class where *value* is one."""
    return type(value)(text) if isinstance(value, Placeholder) else text


UNKNOWN: Final = Placeholder("[unknown]")
"""Stands in a manifest for a value that is not known."""


def is_placeholder(value: Any) -> bool:
    """Check whether *value* itself is not known here, in whole or in part."""
    return isinstance(value, Placeholder)


def holds_placeholder(value: Any, of_class: type[Placeholder] = Placeholder) -> bool:
    """Check whether a text in *value*, or a key, is not known here.

    Args:
        value: Plain JSON data.
        of_class: Count the placeholders of this class alone.
    """
    if isinstance(value, str):
        return isinstance(value, of_class)
    # As in `mapping`: most are plain ones.
    if type(value) is dict or isinstance(value, Mapping):
        for key, item in value.items():
            if holds_placeholder(key, of_class) or holds_placeholder(item, of_class):
                return True
    elif isinstance(value, (list, tuple)):
        for item in value:
            if holds_placeholder(item, of_class):
                return True
    return False
