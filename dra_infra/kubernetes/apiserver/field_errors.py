"""Field errors of the API server, in its own kinds and words, and size and uniqueness of lists.

Upstream: k8s.io/apimachinery/pkg/util/validation/field/errors.go. `FieldError.message` is the text of one cause in
the server's answer (`status.details.causes[].message`), `FieldError.kind` its reason. Both of the server's engines
check the size and uniqueness of lists as it is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from dra_infra.kubernetes.api.device_class import DeviceClass
from dra_infra.kubernetes.api.device_taints import DeviceTaintRule
from dra_infra.kubernetes.api.dropping import Dropped
from dra_infra.kubernetes.api.gates import Release
from dra_infra.kubernetes.api.go_text import go_json, quoted
from dra_infra.kubernetes.api.limits import MAX_ITEMS
from dra_infra.kubernetes.api.placeholders import as_placeholder, holds_placeholder
from dra_infra.kubernetes.api.resource_claim import ResourceClaim, ResourceClaimTemplate
from dra_infra.kubernetes.api.resource_slice import ResourceSlice

Judged: TypeAlias = DeviceClass | ResourceClaim | ResourceClaimTemplate | ResourceSlice | DeviceTaintRule
"""Objects that there are rules for."""


class ErrorKind(StrEnum):
    """The server's kinds of field errors; the value is the machine-readable reason of the cause."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"


_TITLES: Final = {
    ErrorKind.REQUIRED: "Required value",
    ErrorKind.INVALID: "Invalid value",
    ErrorKind.FORBIDDEN: "Forbidden",
    ErrorKind.TOO_LONG: "Too long",
    ErrorKind.TOO_MANY: "Too many",
    ErrorKind.DUPLICATE: "Duplicate value",
    ErrorKind.NOT_SUPPORTED: "Unsupported value",
    ErrorKind.NOT_FOUND: "Not found",
    ErrorKind.INTERNAL: "Internal error",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One reason why the server refuses an object.

    Args:
        rule: Key of the rule in `rules.RULES`.
        path: Field path as the server writes it.
        kind: The server's kind.
        value: The bad value as the server prints it, a placeholder where it is one; empty for kinds that print none.
        detail: The server's text behind it; may be empty.
        origin: What the server's two engines (hand-written and generated rules) know the rule by, when both have it.
        covered: Whether the generated engine's finding of the same kind, path and origin replaces this one.
    """

    rule: str
    path: str
    kind: ErrorKind
    value: str = ""
    detail: str = ""
    origin: str = field(default="", compare=False)
    covered: bool = field(default=False, compare=False)

    @property
    def message(self) -> str:
        """The text of the cause in the server's answer."""
        return ": ".join(part for part in (_TITLES[self.kind], self.value, self.detail) if part)


class Outcome(NamedTuple):
    """One server's answer to one object that it could decode.

    Args:
        record: The object as it would be stored.
        dropped: Fields that were cleared.
        errors: Why it is refused.
        warnings: (path, text) of what is accepted with a warning.
    """

    record: Judged
    dropped: tuple[Dropped, ...]
    errors: tuple[FieldError, ...]
    warnings: tuple[tuple[str, str], ...] = ()


def required(rule: str, path: str, detail: str = "", **engine: Any) -> FieldError:
    """A value is missing or empty."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.REQUIRED, detail=detail, **engine)


def invalid(rule: str, path: str, value: object, detail: str, **engine: Any) -> FieldError:
    """A value breaks a rule."""
    return FieldError(
        rule=rule, path=path, kind=ErrorKind.INVALID, value=printed(value), detail=detail, **engine
    )


def malformed(
    rule: str, path: str, value: object, texts: Iterable[str], **engine: Any
) -> Iterator[FieldError]:
    """A value has not the format that it must have; one error for each text of `names` about it."""
    for told in texts:
        yield invalid(rule, path, value, told, **engine)


def forbidden(rule: str, path: str, detail: str) -> FieldError:
    """A value may not be set here."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.FORBIDDEN, detail=detail)


def internal(rule: str, path: str, detail: str) -> FieldError:
    """The server fails over a value."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.INTERNAL, detail=detail)


def not_found(rule: str, path: str, value: object, detail: str = "") -> FieldError:
    """A value names what is not there."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.NOT_FOUND, value=printed(value), detail=detail)


def too_long(rule: str, path: str, limit: int, *, unit: str = "bytes", **engine: Any) -> FieldError:
    """A text has more than *limit* bytes (or characters)."""
    detail = f"may not be more than {limit} {unit}"
    return FieldError(rule=rule, path=path, kind=ErrorKind.TOO_LONG, detail=detail, **engine)


def too_many(rule: str, path: str, count: int, limit: int, **engine: Any) -> FieldError:
    """A list has *count* items, more than *limit*."""
    return FieldError(
        rule=rule,
        path=path,
        kind=ErrorKind.TOO_MANY,
        value=str(count),
        detail=f"must have at most {limit} items",
        **engine,
    )


def duplicate(rule: str, path: str, value: object, **engine: Any) -> FieldError:
    """An item is there twice; reported at the later one."""
    return FieldError(rule=rule, path=path, kind=ErrorKind.DUPLICATE, value=printed(value), **engine)


def not_supported(rule: str, path: str, value: str, supported: Sequence[str], **engine: Any) -> FieldError:
    """A text is not one of *supported*, in the order in which the server lists them; it is printed as JSON."""
    detail = "supported values: " + ", ".join(map(quoted, supported))
    return FieldError(
        rule=rule,
        path=path,
        kind=ErrorKind.NOT_SUPPORTED,
        value=as_placeholder(value, go_json(value)),
        detail=detail,
        **engine,
    )


class Printed(NamedTuple):
    """A bad value that is already in the server's spelling."""

    text: str


def printed(value: object) -> str:
    """A bad value as the server prints it: texts quoted as Go does, numbers and booleans bare, the rest as JSON."""
    if isinstance(value, Printed):
        return value.text
    return as_placeholder(value, quoted(value)) if isinstance(value, str) else go_json(value)


def label_wording(release: Release) -> tuple[str, str]:
    """The noun of a release for a label key, and the unit of its lengths."""
    return ("a qualified name", "characters") if release.number < 35 else ("a valid label key", "bytes")


def taint_effects(release: Release) -> tuple[str, ...]:
    """Effects that a taint or toleration may have, in the server's order."""
    return ("NoExecute", "NoSchedule") if release.number < 35 else ("NoExecute", "NoSchedule", "None")


Item = TypeVar("Item")


def check_items(
    items: Sequence[Item] | None,
    path: str,
    check: Callable[[Item, str], Iterable[FieldError]] | None,
    *,
    size_rule: str,
    limit: int = MAX_ITEMS,
    checks_all: bool = False,
    covered: bool = True,
) -> Iterator[FieldError]:
    """Check a list: too many items, else each item.

    Args:
        items: The list; None and empty are alike.
        path: Its path.
        check: What to check of an item at its path; None when only the size is looked at.
        size_rule: Rule of the list's size.
        limit: Most items; below zero for none.
        checks_all: Whether items of a list that is too long are checked too, as up to 1.34.
        covered: Whether the generated rules know the size as well.
    """
    items = items or ()
    if 0 <= limit < len(items):
        yield too_many(size_rule, path, len(items), limit, origin="maxItems", covered=covered)
        if not checks_all:
            return
    if check is not None:
        for index, item in enumerate(items):
            yield from check(item, f"{path}[{index}]")


def check_keyed_items(
    items: Sequence[Item] | None,
    path: str,
    check: Callable[[Item, str], Iterable[FieldError]] | None,
    key: Callable[[Item], Hashable],
    *,
    size_rule: str,
    unique_rule: str,
    limit: int = MAX_ITEMS,
    checks_all: bool = False,
    below: str = "",
    shown: Callable[[Item], Any] | None = None,
    covered: bool = True,
) -> Iterator[FieldError]:
    """Check a list as `check_items` does, and then, unless it is too long, that no *key* is there twice."""
    yield from check_items(
        items, path, check, size_rule=size_rule, limit=limit, checks_all=checks_all, covered=covered
    )
    if checks_all or not 0 <= limit < len(items or ()):
        yield from check_unique(items, path, key, rule=unique_rule, below=below, shown=shown, covered=covered)


def itself(item: Item) -> Item:
    """The key of a list whose items are there once."""
    return item


def check_unique(
    items: Sequence[Item] | None,
    path: str,
    key: Callable[[Item], Hashable],
    *,
    rule: str,
    below: str = "",
    shown: Callable[[Item], Any] | None = None,
    covered: bool = True,
) -> Iterator[FieldError]:
    """Report every item whose key an earlier item has.

    Args:
        items: The list.
        path: Its path.
        key: What must be unique.
        rule: Rule of the uniqueness.
        below: Field below the item that the finding is reported at.
        shown: What is printed as bad value, the key when None.
        covered: Whether the generated rules know it as well.
    """
    seen: set[Hashable] = set()
    for index, item in enumerate(items or ()):
        found = key(item)
        # Two values that are not known need not be equal.
        if found in seen and not holds_placeholder(found):
            yield duplicate(rule, f"{path}[{index}]{below}", (shown or key)(item), covered=covered)
        seen.add(found)


MAX_KEY = 96
"""Bytes of a name of an attribute or capacity: a domain, a slash and an identifier."""


def keyed(key: str, limit: int = MAX_KEY) -> str:
    """*key* of a map as paths have it: a long one is cut in the middle (truncateIfTooLong)."""
    encoded = key.encode("utf-8", "surrogatepass")
    if len(encoded) <= limit:
        return key
    left = limit - len("...")
    return (encoded[: (left + 1) // 2] + b"..." + encoded[len(encoded) - left // 2 :]).decode(
        "utf-8", "replace"
    )
