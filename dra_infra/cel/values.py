"""Quantities and versions as byte strings whose order is theirs, and the few functions that run in Python.

The evaluator compares bytes natively; a Python function per comparison would cost twenty times as much, and the engine
leaks the arguments of every call. So Python runs only where an expression makes a value from text that is not a
literal, and on the way to an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

from dra_infra.model.quantity import Quantity
from dra_infra.model.semver import Semver

SEMVER_TAG: Final = b"v"
QUANTITY_TAG: Final = b"q"
NUMBER_WIDTH: Final = 20
"""Decimal digits of the largest number in a version."""

_LENGTH_WIDTH: Final = 4
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")

UNDECIDED: Final = "not decided here: "
"""Starts the text of an error that stands for 'unknown', and not for an error of the server."""


class RunTimeError(Exception):
    """Carries an error text of the server, or one that starts with `UNDECIDED`, through the engine."""


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


def type_name(value: Any) -> str:
    """The CEL type of a run-time value, a tagged byte string being what it stands for."""
    if isinstance(value, bytes | bytearray):
        return "kubernetes.Semver" if value.startswith(SEMVER_TAG) else "kubernetes.Quantity"
    names = {bool: "bool", int: "int", float: "double", str: "string", list: "list", dict: "map"}
    return names.get(type(value), "dyn")


class _Panic(threading.local):
    text = ""


_PANIC: Final = _Panic()


def take_panic() -> str:
    """The text of the panic since the last call on this thread, empty if there was none."""
    text, _PANIC.text = _PANIC.text, ""
    return text


def _panic(text: str) -> Any:
    # The engine has no error that `||` lets through, so the text goes around it.
    _PANIC.text = _PANIC.text or text
    raise RunTimeError(text)


def _fail(text: str) -> Any:
    raise RunTimeError(text)


def _no_such_overload(function: str, arguments: list[Any]) -> Any:
    raise RunTimeError(f"no such overload: {function}({', '.join(map(type_name, arguments))})")


def _constructor(function: str, make: Callable[[str], bytes]) -> Callable[[Any], bytes]:
    def construct(text: Any) -> bytes:
        if not isinstance(text, str):
            _no_such_overload(function, [text])
        try:
            return make(text)
        except ValueError as error:
            raise RunTimeError(str(error)) from error

    return construct


def _tester(function: str, parse: Callable[[str], object]) -> Callable[[Any], bool]:
    def test(text: Any) -> bool:
        if not isinstance(text, str):
            _no_such_overload(function, [text])
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return test


def _leaves(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from _leaves([*value, *value.values()])
        elif isinstance(value, list):
            yield from _leaves(value)
        else:
            yield value


def _have_opaque(values: list[Any]) -> bool:
    """Whether a version or quantity is anywhere in *values*."""
    return any(isinstance(leaf, bytes | bytearray) for leaf in _leaves(values))


def _mixed(values: list[Any]) -> bool:
    """Whether versions or quantities and other values are anywhere in *values*."""
    return len({isinstance(leaf, bytes | bytearray) for leaf in _leaves(values)}) > 1


RUN_FUNCTIONS: Final[dict[str, tuple[int, Callable[..., Any]]]] = {
    "@fail": (1, _fail),
    "@panic": (1, _panic),
    "@no_such_overload": (2, _no_such_overload),
    "@have_opaque": (1, _have_opaque),
    "@mixed": (1, _mixed),
    "@quantity": (1, _constructor("quantity", lambda text: encode_quantity(Quantity.parse(text)))),
    "@semver": (1, _constructor("semver", lambda text: encode_semver(Semver.parse(text)))),
    "@semver_normalized": (
        1,
        _constructor("semver", lambda text: encode_semver(Semver.parse_normalized(text))),
    ),
    "@is_quantity": (1, _tester("isQuantity", Quantity.parse)),
    "@is_semver": (1, _tester("isSemver", Semver.parse)),
    "@is_semver_normalized": (1, _tester("isSemver", Semver.parse_normalized)),
}
"""Functions that only lowered trees call, with their number of arguments."""
