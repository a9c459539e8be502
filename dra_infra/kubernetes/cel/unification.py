"""Tells which types can stand for each other, and finds what stands for the types that nothing names.

A type parameter has a name that begins with `~`: those of declarations, and the checker's own `~_var0`, which stands for
the elements of an empty list. What a parameter stands for is found out on the way, and kept in a mapping.

Upstream: `checker/types.go` and `checker/mapping.go` of cel-go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from dra_infra.kubernetes.cel.tree import DYN, CelType

Bindings: TypeAlias = dict[CelType, CelType]

ANY: Final = CelType("any")
NULL: Final = CelType("null_type")
ERROR: Final = CelType("!error!")
_DYNAMIC: Final = frozenset({"dyn", "any"})
_WILD: Final = _DYNAMIC | {"!error!"}
_OPAQUE: Final = frozenset({"optional_type", "net.IP", "net.CIDR"})
_COMPOSED: Final = _OPAQUE | {"list", "map"}
_NULLABLE: Final = _OPAQUE | {"any", "duration", "timestamp", "wrapper"}


def is_parameter(kind: CelType) -> bool:
    """Checks that the type stands for another one."""
    return kind.name[0] == "~"


def is_dynamic(kind: CelType) -> bool:
    """Checks that only a device knows the type."""
    return kind.name in _DYNAMIC


def is_message(kind: CelType) -> bool:
    """Checks that the type has named fields, or would have some if it were declared."""
    return kind.name.startswith(("kubernetes.", "google.protobuf."))


def unwrap_optional(kind: CelType) -> tuple[CelType, bool]:
    """The type of an optional's value, and whether it is an optional at all."""
    if kind.name == "optional_type" and kind.parameters:
        return kind.parameters[0], True
    return kind, False


@lru_cache(maxsize=4096)
def spell(kind: CelType) -> str:
    """The type as compile errors name it."""
    if kind.name == "null_type":
        return "null"
    name = kind.name.removeprefix("~")
    return f"{name}({', '.join(map(spell, kind.parameters))})" if kind.parameters else name


@lru_cache(maxsize=4096)
def without_wrappers(kind: CelType) -> CelType:
    """The type in which a number that may be null is a number."""
    if kind.name == "wrapper":
        return kind.parameters[0]
    if not kind.parameters:
        return kind
    return CelType(kind.name, tuple(map(without_wrappers, kind.parameters)))


def is_same(left: CelType, right: CelType) -> bool:
    """Checks that the types are one but for wrappers, which have the name of what they hold."""
    return left == right or without_wrappers(left) == without_wrappers(right)


def substitute(kind: CelType, bound: Mapping[CelType, CelType], *, dynamic: bool = False) -> CelType:
    """The type with its parameters replaced; those that stand for nothing stay, or are dyn."""
    if is_parameter(kind):
        found = bound.get(kind)
        if found is not None:
            return substitute(found, bound, dynamic=dynamic)
        return DYN if dynamic else kind
    if not kind.parameters or kind.name == "wrapper":
        return kind
    parameters = tuple([substitute(each, bound, dynamic=dynamic) for each in kind.parameters])
    # Types of lists in lists are deep: comparing them whole at each level would take the square of that.
    if all(new is old for new, old in zip(parameters, kind.parameters, strict=True)):
        return kind
    return CelType(kind.name, parameters)


def assign(bound: Bindings, targets: Sequence[CelType], sources: Sequence[CelType]) -> Bindings | None:
    """Returns what parameters stand for once each of the types takes its counterpart; None when one cannot."""
    if len(targets) != len(sources):
        return None
    copy = dict(bound)
    return copy if _takes_all(copy, targets, sources) else None


def most_general(left: CelType, right: CelType) -> CelType:
    """The one of two types that says less."""
    return left if _says_less(left, right) else right


def _takes_all(bound: Bindings, targets: Sequence[CelType], sources: Sequence[CelType]) -> bool:
    return len(targets) == len(sources) and all(
        _takes(bound, target, source) for target, source in zip(targets, sources, strict=True)
    )


def _takes(bound: Bindings, target: CelType, source: CelType) -> bool:
    if is_parameter(source):
        valid, stands = _stands_for(bound, target, source)
        if valid or stands:
            return valid
    if is_parameter(target):
        return _stands_for(bound, source, target)[0]
    if target.name in _WILD or source.name in _WILD:
        return True
    if target.name == "null_type":
        return _is_nullable(source)
    if source.name == "null_type":
        return _is_nullable(target)
    if target.name == "type":
        return source.name == "type"
    if target.name in _COMPOSED:
        return target.name == source.name and _takes_all(bound, target.parameters, source.parameters)
    return is_same(target, source)


def _is_nullable(kind: CelType) -> bool:
    return kind.name in _NULLABLE or kind.name == "null_type" or is_message(kind)


def _stands_for(bound: Bindings, kind: CelType, parameter: CelType) -> tuple[bool, bool]:
    """Tells whether *parameter* can stand for *kind*, and whether it stood for something before."""
    if kind == parameter:
        return True, True
    found = bound.get(parameter)
    if found is None:
        if not _is_free_of(bound, parameter, kind):
            return False, False
        bound[parameter] = kind
        return True, False
    if is_same(kind, found):
        return True, True
    if not _takes(bound, kind, found):
        return False, True
    general = most_general(kind, found)
    if _is_free_of(bound, parameter, general):
        bound[parameter] = general
    return True, True


def _is_free_of(bound: Bindings, parameter: CelType, kind: CelType) -> bool:
    """Checks that a type does not hold the parameter, directly or by what others stand for."""
    if kind == parameter:
        return False
    if is_parameter(kind):
        found = bound.get(kind)
        return found is None or _is_free_of(bound, parameter, found)
    return all(_is_free_of(bound, parameter, each) for each in kind.parameters)


def _says_less(left: CelType, right: CelType) -> bool:
    if left.name in _DYNAMIC or is_parameter(left):
        return True
    if right.name in _DYNAMIC or is_parameter(right):
        return False
    if left.name == "type":
        return right.name == "type"
    if left.name not in _COMPOSED:
        return is_same(left, right)
    return (
        left.name == right.name
        and len(left.parameters) == len(right.parameters)
        and all(map(_says_less, left.parameters, right.parameters))
    )
