"""Values with the Python that makes each: what is compiled and what is written are made by one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from dra_infra.program_writing.python_text import Call, plain


class CannotSayError(Exception):
    """A component cannot say what an object says; the text is why, for people."""


class Said(NamedTuple):
    """A value, and the Python that makes it."""

    value: Any
    code: Any


def make(kind: Callable[..., Any], *name: Any, **keywords: Said) -> Said:
    """A record of the package, by a call of its type."""
    value = kind(*name, **{key: each.value for key, each in keywords.items()})
    return Said(
        value, Call(f"dra.{type(value).__name__}", name, {key: each.code for key, each in keywords.items()})
    )


def same(value: Any) -> Said:
    """Plain data, which is written as it is."""
    return Said(value, plain(value))


def listed(items: Sequence[Said]) -> Said:
    """Several as a list."""
    return Said([each.value for each in items], [each.code for each in items])


def check_fields(held: Mapping[str, Any], known: Sequence[str], path: str) -> None:
    """Checks that there are no other fields.

    Raises:
        CannotSayError: When there are.
    """
    for each in held:
        if each not in known:
            where = f"{path}." if path else ""
            raise CannotSayError(f"no argument says {where}{each!s:.80}")


def texts_of(value: Any) -> list[str]:
    """The texts of a list; what else is in it, the object that is compared has and the component has not."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
