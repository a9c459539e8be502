"""Runs a program that was written, and finds the objects that it does not make as they are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dra_infra.advice.made_up_names import WrittenNames
from dra_infra.advice.program import check_program
from dra_infra.components.kubernetes_object import FORCE
from dra_infra.errors import Problem, ProgramError
from dra_infra.kubernetes.api import ObjectRef, mapping
from dra_infra.markers import AUTONAMED, Secret, holds_secret, is_name_made_up
from dra_infra.program.synth import synth_function
from dra_infra.program_writing.claims import with_server_defaults
from dra_infra.program_writing.kubernetes_classes import find_misfits, is_typed, stem_of
from dra_infra.target import ClusterTarget

_SECONDS = 300.0


def is_same_object(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True for one kind of object with one spec, where a server may have filled in defaults of a claim in either."""
    one, other = with_server_defaults(one), with_server_defaults(other)
    return all(one.get(key) == other.get(key) for key in ("apiVersion", "kind", "spec"))


def check_objects(objects: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """`not-in-program` for each of *objects* that Pulumi cannot make: without apiVersion or kind, or a list where it takes none."""
    return [_problem(str(_as_written(each)), why) for each in objects if (why := _why_not(each))]


def _why_not(manifest: Mapping[str, Any]) -> str:
    if not all(manifest.get(key) and isinstance(manifest[key], str) for key in ("apiVersion", "kind")):
        return "it has no apiVersion or no kind"
    paths = list(find_misfits(manifest)) if is_typed(manifest) else []
    return f"{' and '.join(paths[:3])} is of another type in the class of its kind" if paths else ""


def check_program_text(
    text: str, objects: Sequence[Mapping[str, Any]], target: ClusterTarget | None = None
) -> list[Problem]:
    """Runs the source of a program as `synth` does: `not-in-program` for each of *objects* that it does not make or refuses.

    Args:
        text: Source of `__main__.py`.
        objects: What it has to make; claims may have the defaults that a server fills in.
        target: The cluster whose rules `synth` checks; None checks none.
    """

    def program() -> None:
        # Of literals and calls of components; no text of a manifest is code in it, which tests hold.
        exec(compile(text, "__main__.py", "exec"), {"__name__": "__main__"})  # noqa: S102

    if problems := list(_find_left_names(text, objects)):
        return problems
    try:
        made = synth_function(program, timeout=_SECONDS)
    except (ProgramError, SyntaxError, RecursionError, MemoryError) as error:
        why = error.problems[0].message if isinstance(error, ProgramError) else str(error)
        return [_problem("program", f"the program does not run: {why:.300}")]
    judged = check_program(made, target=target) if target is not None else ()
    if errors := [each for each in judged if each.severity == "error"]:
        # Of a program that `synth` refuses `pulumi up` makes a part.
        return [_problem(each.path, f"`dra-infra synth` refuses it: {each.message}") for each in errors]
    names = _made_up_names([each.manifest for each in made.objects])
    left = [_comparable(each.manifest, names) for each in made.objects]
    return [
        _problem(
            str(_as_written(each)),
            f"Pulumi would make another object of it{f': {path:.200} would differ' if path else ''}",
        )
        for each, path in _missing(objects, _made_up_names(objects), left)
    ]


def _find_left_names(text: str, objects: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Objects whose names Pulumi makes up, and which a text in the program has all the same."""
    why = "Pulumi makes its name up, and a text has it in a way that no reference says; give it metadata.name"
    for each, written in zip(objects, WrittenNames(objects).manifests, strict=True):
        if is_name_made_up(each) and str(mapping(written["metadata"])["name"]) in text:
            yield _problem(str(_as_written(each)), why)


def _missing(
    objects: Sequence[Mapping[str, Any]], names: Collection[str], made: list[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Objects that are not made, each with the first field that the one of its name has in another way."""
    by_name: dict[ObjectRef, list[Mapping[str, Any]]] = {}
    for each in made:
        by_name.setdefault(_as_written(each), []).append(each)
    for each in objects:
        wanted = _comparable(each, names)
        candidates = by_name.get(_as_written(wanted), [])
        found = next((other for other in candidates if _is_same(wanted, other)), None)
        if found is None:
            yield each, next((_find_difference(wanted, other) for other in candidates), "")
        else:
            candidates.remove(found)


def _made_up_names(objects: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(str(each["metadata"]["name"]) for each in objects if is_name_made_up(each))


def _comparable(manifest: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    """The object with defaults, with one word for *names* that are made up for each run, and as Pulumi names what a server would name."""
    result: dict[str, Any] = _with_one_name(with_server_defaults(manifest), names)
    metadata = dict(mapping(result.get("metadata")))
    if stem_of(manifest) and "generateName" in metadata:
        del metadata["generateName"]
        metadata |= {"name": "*", "annotations": {**mapping(metadata.get("annotations")), AUTONAMED: "true"}}
    # A component has it on an object that it takes over.
    annotations = {key: value for key, value in mapping(metadata.get("annotations")).items() if key != FORCE}
    if annotations != metadata.get("annotations"):
        metadata.pop("annotations", None)
        metadata |= {"annotations": annotations} if annotations else {}
    result["metadata"] = metadata
    return result


def _with_one_name(value: Any, names: Collection[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _with_one_name(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_one_name(each, names) for each in value]
    return "*" if isinstance(value, str) and value in names else value


def _is_same(one: Any, other: Any) -> bool:
    """True for equal data, where a secret that is not shown equals any but its own marker."""
    if isinstance(other, Secret):
        return not holds_secret(one)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _find_difference(one: Any, other: Any, path: str = "") -> str:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = [key for key in {**one, **other} if not _is_same(one.get(key), other.get(key))]
        return (
            _find_difference(one.get(keys[0]), other.get(keys[0]), f"{path}.{keys[0]}") if keys else path[1:]
        )
    if isinstance(one, list) and isinstance(other, list):
        for index, (each, its) in enumerate(zip(one, other, strict=False)):
            if not _is_same(each, its):
                return _find_difference(each, its, f"{path}[{index}]")
    return path[1:]


def _as_written(manifest: Mapping[str, Any]) -> ObjectRef:
    """Return the object as it is written: its kind without a group, and an empty name where it has none."""
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
