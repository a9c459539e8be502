"""Reads manifests of any shape, and marks values in them that are secret or not known yet.

A value that is secret, or only known after `pulumi up`, breaks no rule: the text that stands for it is not the value.
Such a text is a `Marker`. No YAML and no JSON can spell one: the same characters in a file are an ordinary text.
Nothing of ours is loaded with this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, Self

MarkerKind = Literal["unknown", "secret"]
"""Why a value is not in a manifest: it only exists after `pulumi up`, or it is secret."""


class Marker(str):
    """A text that stands in a manifest for a value which is secret or not known yet, or that has such a value in it.

    A marker equals other markers of the same text and kind, and no ordinary text. `str(marker)` and copies are the marker
    itself. An f-string, `join` and every method of texts give an ordinary text.

    Args:
        text: How reports show it: `[secret]`, or a longer text such as `postgres://[secret]@db/x`.
        kind: Why the value is not there.
    """

    __slots__ = ("kind",)

    kind: MarkerKind

    def __new__(cls, text: str, kind: MarkerKind) -> Self:
        """Make the marker of *kind* that reports show as *text*."""
        # `str.__str__`, for *text* may be a marker, whose own text is wanted.
        marker = super().__new__(cls, str.__str__(text))
        marker.kind = kind
        return marker

    def __eq__(self, other: object) -> bool:
        """Compare with another marker: Python asks this before the method of an ordinary text."""
        return isinstance(other, Marker) and self.kind == other.kind and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        """Return the opposite of `==`, which `str` would answer by the characters."""
        return not self == other

    def __hash__(self) -> int:
        """Return a hash that differs from the one of the ordinary text."""
        return hash((Marker, self.kind, str.__hash__(self)))

    def __str__(self) -> str:
        """Return the marker itself, so that `str(value)` of a field keeps what it is."""
        return self

    def __copy__(self) -> Self:
        """Return the marker itself: it never changes."""
        return self

    def __deepcopy__(self, _memo: Any) -> Self:
        """Return the marker itself: it never changes."""
        return self

    def __reduce__(self) -> tuple[type[Marker], tuple[str, MarkerKind]]:
        """Return how `pickle` makes the marker anew."""
        return Marker, (plain_text(self), self.kind)


def plain_text(text: str) -> str:
    """Return the characters of *text* as an ordinary text, also of a marker."""
    # A slice of a text is an ordinary text, whatever it is a slice of.
    return text[:]


def as_marked(value: str, text: str) -> str:
    """Return *text*, which was made of *value*, as a marker where *value* is one."""
    return Marker(text, value.kind) if isinstance(value, Marker) else text


UNKNOWN: Final = Marker("[unknown]", "unknown")
"""Stands in manifests for a value that only exists after `pulumi up`."""

SECRET: Final = Marker("[secret]", "secret")
"""Stands in manifests for a secret value."""

CHANGED_SECRET: Final = Marker("[secret] (changed)", "secret")
"""Stands for the new value where a secret changes."""

SHOWN: Final[Mapping[MarkerKind, str]] = {"unknown": plain_text(UNKNOWN), "secret": plain_text(SECRET)}
"""The text that every marker of a kind has in it."""

AUTONAMED = "pulumi.com/autonamed"
"""The annotation of objects that Pulumi's provider names."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of claims that were made from a template: what the pod calls it."""


def mapping(value: Any) -> Mapping[str, Any]:
    """*value* where it is an object, else an empty one."""
    # Nearly all are plain ones, and asking for the abstract class takes many times as long.
    return value if type(value) is dict or isinstance(value, Mapping) else {}


def value_at(value: Any, *steps: str | int) -> Any:
    """Returns what stands below *value* at these keys and positions, None where something on the way lacks them."""
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            # As in `mapping`, without a call: rules walk down every object many times.
            value = value.get(step) if type(value) is dict else mapping(value).get(step)
    return value


FieldPath = tuple[str | int, ...]
"""Keys and positions from an object down to one field."""


def find_all(value: Any, path: tuple[str, ...], above: FieldPath = ()) -> Iterator[tuple[FieldPath, Any]]:
    """Places below *value* at a path whose `*` stand for all items of a list or object, with what is there or None."""
    if not path:
        yield above, value
        return
    step, rest = path[0], path[1:]
    if step != "*":
        yield from find_all(mapping(value).get(step), rest, (*above, step))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_all(item, rest, (*above, index))
    else:
        for name in sorted(map(str, mapping(value))):
            yield from find_all(value.get(name), rest, (*above, name))


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The mappings in a list; none when *value* is no list."""
    if not isinstance(value, list):
        return []
    return [item for item in value if type(item) is dict or isinstance(item, Mapping)]


def is_marker(value: Any) -> bool:
    """Check whether *value* itself is secret or only known after `pulumi up`, in whole or in part."""
    return isinstance(value, Marker)


def holds_marker(value: Any, kind: MarkerKind | None = None) -> bool:
    """Check whether a text in *value*, or a key, is secret or only known after `pulumi up`.

    Args:
        value: Plain JSON data.
        kind: Count the markers of this kind alone; None counts all.
    """
    if isinstance(value, str):
        return isinstance(value, Marker) and kind in (None, value.kind)
    # As in `mapping`: most are plain ones.
    if type(value) is dict or isinstance(value, Mapping):
        for key, item in value.items():
            if holds_marker(key, kind) or holds_marker(item, kind):
                return True
    elif isinstance(value, (list, tuple)):
        for item in value:
            if holds_marker(item, kind):
                return True
    return False


def find_markers(value: Any, above: FieldPath = ()) -> Iterator[tuple[FieldPath, Marker]]:
    """Find the markers below *value*, with their paths; a marker that is a key has the path of its value."""
    if isinstance(value, Marker):
        yield above, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, Marker):
                yield (*above, key), key
            yield from find_markers(item, (*above, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from find_markers(item, (*above, index))


def as_shown(value: Any) -> Any:
    """Return *value* with ordinary texts in the place of markers: for reports, which nothing reads back."""
    if isinstance(value, Marker):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {as_shown(key): as_shown(item) for key, item in value.items()}
    return [as_shown(item) for item in value] if isinstance(value, (list, tuple)) else value


def name_of(manifest: Mapping[str, Any]) -> str:
    """The name of an object; `train-*` where the server makes it up, empty where it has none."""
    metadata = mapping(manifest.get("metadata"))
    start = metadata.get("generateName")
    return str(metadata.get("name") or (f"{start}*" if start else ""))


def is_name_made_up(manifest: Mapping[str, Any]) -> bool:
    """True for an object that Pulumi names, and whose name stands as `train-*`."""
    metadata = mapping(manifest.get("metadata"))
    return AUTONAMED in mapping(metadata.get("annotations")) and "*" in str(metadata.get("name"))
