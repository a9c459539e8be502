"""Runs a program that was written, and finds the objects that it does not make as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dra_infra.components.kubernetes_object import FORCE
from dra_infra.errors import Problem, ProgramError
from dra_infra.kubernetes.api.manifests import SECRET, holds_marker, is_name_made_up, mapping
from dra_infra.kubernetes.api.metadata import ObjectRef
from dra_infra.program.synth import synth_function
from dra_infra.program_writing.claims import with_server_defaults
from dra_infra.program_writing.kubernetes_classes import find_misfits
from dra_infra.program_writing.program import is_typed

_SECONDS = 300.0


def is_same_object(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True for one kind of object with one spec, where a server may have filled in defaults of a claim in either."""
    one, other = with_server_defaults(one), with_server_defaults(other)
    return all(one.get(key) == other.get(key) for key in ("apiVersion", "kind", "spec"))


def check_objects(objects: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """`not-in-program` for each of *objects* that Pulumi cannot make: without apiVersion or kind, or a list where it takes none."""
    return [_problem(str(_reference(each)), why) for each in objects if (why := _why_not(each))]


def _why_not(manifest: Mapping[str, Any]) -> str:
    if not all(manifest.get(key) and isinstance(manifest[key], str) for key in ("apiVersion", "kind")):
        return "it has no apiVersion or no kind"
    paths = list(find_misfits(manifest)) if is_typed(manifest) else []
    return f"{' and '.join(paths[:3])} is of another type in the class of its kind" if paths else ""


def check_program_text(text: str, objects: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """Runs the source of a program as `synth` does: `not-in-program` for each of *objects* that it does not make.

    Args:
        text: Source of `__main__.py`.
        objects: What it has to make; claims may have the defaults that a server fills in.
    """

    def program() -> None:
        # Of literals and calls of components; no text of a manifest is code in it, which tests hold.
        exec(compile(text, "__main__.py", "exec"), {"__name__": "__main__"})  # noqa: S102

    try:
        made = synth_function(program, timeout=_SECONDS)
    except (ProgramError, SyntaxError, RecursionError, MemoryError) as error:
        why = error.problems[0].message if isinstance(error, ProgramError) else str(error)
        return [_problem("program", f"the program does not run: {why:.300}")]
    left = [_comparable(each.manifest) for each in made.objects]
    return [
        _problem(str(_reference(each)), "Pulumi would make another object of it")
        for each in _missing(objects, left)
    ]


def _missing(
    objects: Sequence[Mapping[str, Any]], made: list[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    by_name: dict[ObjectRef, list[Mapping[str, Any]]] = {}
    for each in made:
        by_name.setdefault(_reference(each), []).append(each)
    for each in objects:
        wanted = _comparable(each)
        candidates = by_name.get(_reference(wanted), [])
        found = next((other for other in candidates if _is_same(wanted, other)), None)
        if found is None:
            yield each
        else:
            candidates.remove(found)


def _comparable(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object with defaults, and without a name where its name is made up for each run."""
    result = dict(with_server_defaults(manifest))
    metadata = dict(mapping(result.get("metadata")))
    if is_name_made_up(manifest) or "generateName" in metadata:
        metadata.pop("name", None)
        metadata.pop("annotations", None)
    # A component has it on an object that it takes over.
    annotations = {key: value for key, value in mapping(metadata.get("annotations")).items() if key != FORCE}
    if annotations != metadata.get("annotations"):
        metadata.pop("annotations", None)
        metadata |= {"annotations": annotations} if annotations else {}
    result["metadata"] = metadata
    return result


def _is_same(one: Any, other: Any) -> bool:
    """True for equal data, where a secret that is not shown equals any but its own marker."""
    if other == SECRET:
        return not holds_marker(one, (SECRET,))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _reference(manifest: Mapping[str, Any]) -> ObjectRef:
    metadata = mapping(manifest.get("metadata"))
    return ObjectRef(
        str(manifest.get("kind")), str(metadata.get("name", "")), str(metadata.get("namespace", ""))
    )


def _problem(path: str, message: str) -> Problem:
    return Problem(
        path=path,
        code="not-in-program",
        message=message,
        hint="correct it; or take it out of the input, and apply it beside the program; nothing was written",
    )
