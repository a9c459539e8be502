"""A program's objects as YAML, in which no object that lacks a value can pass for a complete one.

Values that are secret or only known after `pulumi up` are not in the objects of a run. An object without one of its values
is written as comments: `kubectl apply` and `dra-infra validate` read the file as if the object was not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from dra_infra.documents.yaml import write_manifest
from dra_infra.errors import Problem
from dra_infra.kubernetes.api import holds_placeholder, show_steps
from dra_infra.markers import MarkerKind, as_shown, find_markers, marker_kind
from dra_infra.output.escaping import one_line
from dra_infra.output.wording import join_words
from dra_infra.program_objects import ProgramObject

_REASONS: Final[Mapping[MarkerKind, str]] = {
    "unknown": "known only after `pulumi up`",
    "secret": "secret",
}
_MOST: Final = 8
"""Fields of an object that are named."""


def write_objects(objects: Iterable[ProgramObject]) -> str:
    """Write objects as documents of YAML, and those that are not complete as comments, in the order given."""
    return "---\n".join(map(_write, objects))


def find_incomplete(objects: Iterable[ProgramObject]) -> Iterator[Problem]:
    """Report each object that lacks a value: `object-not-complete`."""
    for each in objects:
        if reasons := why_incomplete(each.manifest):
            yield Problem(
                path=str(each.ref),
                code="object-not-complete",
                message=f"it is written as comments: {' and '.join(reasons)}",
                hint="`pulumi up` deploys it; dra-infra synth --json prints the object and which of its values are missing",
                place=each.place,
            )


def _write(item: ProgramObject) -> str:
    reasons = why_incomplete(item.manifest)
    if not reasons:
        return write_manifest(item.manifest)
    header = f"{item.ref} is not complete: {' and '.join(reasons)}."
    # Some YAML parsers end a comment at line breaks other than a line feed.
    body = write_manifest(as_shown(item.manifest)).splitlines()
    return "".join(f"# {line}".rstrip() + "\n" for line in (one_line(header), *body))


def why_incomplete(manifest: Any) -> Sequence[str]:
    """Return for each reason which values of an object are missing; empty where it is complete."""
    if not holds_placeholder(manifest):
        return ()
    found: dict[MarkerKind, list[str]] = {}
    for path, marker in find_markers(manifest):
        found.setdefault(marker_kind(marker), []).append(show_steps(path))
    return [
        f"{join_words(sorted(paths), most=_MOST)} {'is' if len(paths) == 1 else 'are'} {reason}"
        for kind, reason in _REASONS.items()
        if (paths := found.get(kind))
    ]
