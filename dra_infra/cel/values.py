"""Quantities and versions as byte strings whose order is theirs, for the engine, which compares bytes natively.

A Python function per comparison would cost twenty times as much, and the engine leaks the arguments of every call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

SEMVER_TAG: Final = b"v"
QUANTITY_TAG: Final = b"q"
NUMBER_WIDTH: Final = 20
"""Decimal digits of the largest number in a version."""

_LENGTH_WIDTH: Final = 4
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")


def encode_quantity(quantity: Quantity) -> bytes:
    """Bytes in the order of the values, equal where the values are.

    Number of digits and digits of the value in nano; of a negative one `-`, which sorts below all digits, and the
    complement of both.
    """
    digits = str(abs(quantity.nanos))
    body = f"{len(digits):0{_LENGTH_WIDTH}}{digits}"
    text = f"-{body.translate(_COMPLEMENT)}" if quantity.nanos < 0 else body
    return QUANTITY_TAG + text.encode()


def encode_semver(version: Semver) -> bytes:
    """Bytes in the order of semver.org section 11, equal where the precedence is.

    A release ends in `~`, above every pre-release. Each part of a pre-release starts with its kind, numbers first, and
    ends with `!`, which is below every character that a longer part could go on with.
    """
    numbers = "".join(f"{number:0{NUMBER_WIDTH}}" for number in version.numbers)
    parts = "".join(
        f"2{part}!" if isinstance(part, str) else f"1{part:0{NUMBER_WIDTH}}!" for part in version.prerelease
    )
    return SEMVER_TAG + f"{numbers}{parts or '~'}".encode()


class _Deferral(threading.local):
    is_due = False


_DEFERRAL: Final = _Deferral()


class DeferralError(Exception):
    """Ends a part of an evaluation that the engine must not decide."""


def _defer() -> Any:
    # `||` may swallow the error, so that the engine gives a verdict all the same; the mark says not to use it.
    _DEFERRAL.is_due = True
    raise DeferralError("left to the interpreter")


def take_deferral() -> bool:
    """Whether anything was left to the interpreter since the last call on this thread."""
    if not _DEFERRAL.is_due:
        return False
    _DEFERRAL.is_due = False
    return True


RUN_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Any]]]] = {"@defer": (0, _defer)}
"""Functions that only lowered trees call, with their number of arguments."""
