"""Results of provider functions that are not called: they have the type of the result, and their fields are not known.

The direct form of a function, `aws.get_caller_identity()`, gives plain values. Each is a text that the monitor knows again, wherever
the program puts it.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Coroutine
from typing import Any

from dra_infra.program_objects import UNKNOWN_RESULT


class _UnknownValue(str):
    """A value that is no text: generated code checks the types of values that are true."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


class _UnknownItems(list[Any]):
    """A list of unknown length: every item of it is there, and a loop sees one."""

    def __init__(self, item: Any) -> None:
        super().__init__([item])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[0]] * max((index.stop or 1) - (index.start or 0), 0)
        return super().__getitem__(0)


class _UnknownFields(dict[str, Any]):
    """A mapping of unknown fields."""

    def __missing__(self, key: str) -> Any:
        return UNKNOWN_RESULT

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002  (every key is there)
        return UNKNOWN_RESULT if default is None else default


def unknown_of(type_: Any) -> Any:
    """Return a value of a type of the SDK, all of whose parts are not known."""
    from pulumi import _types

    plain = _types.unwrap_optional_type(type_) if type_ is not None else None
    if isinstance(plain, type) and _types.is_output_type(plain):
        fields = {name: unknown_of(each) for name, each in _types.output_type_types(plain).items()}
        return _types.output_type_from_dict(plain, fields)
    origin = typing.get_origin(plain) or plain
    if isinstance(origin, type) and issubclass(origin, str):
        return UNKNOWN_RESULT
    if isinstance(origin, type) and issubclass(origin, typing.Sequence):
        (item, *_) = typing.get_args(plain) or (None,)
        return _UnknownItems(unknown_of(item))
    if plain is None or plain is Any or (isinstance(origin, type) and issubclass(origin, typing.Mapping)):
        return _UnknownFields()
    return _UnknownValue(UNKNOWN_RESULT)


def filled(
    invoke: Callable[..., Coroutine[Any, Any, Any]], is_in_run: Callable[[], bool]
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return the SDK's `_invoke` whose direct forms give unknown fields in place of nothing.

    Args:
        invoke: The SDK's.
        is_in_run: Whether a program runs here; everything else in the process goes the SDK's own way.
    """

    def call(
        tok: str, props: Any, opts: Any, typ: Any, package_ref: Any, **checks: Any
    ) -> Coroutine[Any, Any, Any]:
        called = invoke(tok, props, opts, typ, package_ref, **checks)
        is_direct = not checks.get("check_dependencies")
        return _fill(called, tok, typ, is_direct=is_direct) if is_in_run() else called

    return call


async def _fill(called: Coroutine[Any, Any, Any], token: str, type_: Any, *, is_direct: bool) -> Any:
    from pulumi.runtime.settings import get_monitor

    result = await called
    if not result.is_known:
        # The SDK does not even ask for arguments that are not known.
        monitor: Any = get_monitor()
        monitor.note_unknown_result(token)
        if is_direct:
            result.value = unknown_of(type_)
    return result
