"""Markers: what stands in the manifests of a program for values that are secret or exist after `pulumi up`.

A marker is a `Placeholder`, so no rule of Kubernetes judges it: the text that stands for a value is not the value.
Reports need to know why the value is missing. A secret is a `Secret`, and every other marker stands for a value that exists after `pulumi up`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from dra_infra.kubernetes.api import UNKNOWN, FieldPath, Placeholder, holds_placeholder, mapping, plain_text

MarkerKind = Literal["unknown", "secret"]
"""Why a value is not in a manifest: it only exists after `pulumi up`, or it is secret."""


class Secret(Placeholder):
    """A text that stands in a manifest for a secret value, or that has one in it: `postgres://[secret]@db/x`."""

    __slots__ = ()


SECRET: Final = Secret("[secret]")
"""Stands in manifests for a secret value."""

CHANGED_SECRET: Final = Secret("[secret] (changed)")
"""Stands for the new value where a secret changes."""

SHOWN: Final[Mapping[MarkerKind, str]] = {"unknown": plain_text(UNKNOWN), "secret": plain_text(SECRET)}
"""The text that every marker of a kind has in it."""

AUTONAMED: Final = "pulumi.com/autonamed"
"""The annotation of objects that Pulumi's provider names."""


def make_marker(text: str, kind: MarkerKind) -> Placeholder:
    """Return the marker of *kind* that reports show as *text*."""
    return Secret(text) if kind == "secret" else Placeholder(text)


def marker_kind(marker: Placeholder) -> MarkerKind:
    """Return why the value of *marker* is missing."""
    return "secret" if isinstance(marker, Secret) else "unknown"


def holds_secret(value: Any) -> bool:
    """Check whether a text in *value*, or a key, is a marker of a secret."""
    return holds_placeholder(value, Secret)


def find_markers(value: Any, above: FieldPath = ()) -> Iterator[tuple[FieldPath, Placeholder]]:
    """Find the markers below *value*, with their paths; a marker that is a key has the path of its value."""
    if isinstance(value, Placeholder):
        yield above, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, Placeholder):
                yield (*above, key), key
            yield from find_markers(item, (*above, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from find_markers(item, (*above, index))


def as_shown(value: Any) -> Any:
    """Return *value* with ordinary texts in the place of markers: for reports, which nothing reads back."""
    if isinstance(value, Placeholder):
        return plain_text(value)
    if isinstance(value, Mapping):
        return {as_shown(key): as_shown(item) for key, item in value.items()}
    return [as_shown(item) for item in value] if isinstance(value, (list, tuple)) else value


def is_name_made_up(manifest: Mapping[str, Any]) -> bool:
    """Check whether Pulumi names the object, so that its name stands as `train-*`."""
    metadata = mapping(manifest.get("metadata"))
    return AUTONAMED in mapping(metadata.get("annotations")) and "*" in str(metadata.get("name"))
