"""Fields that servers of the target clear or ignore: said by the checks as warnings, and here by object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dra_infra.errors import Problem
from dra_infra.model.metadata import ObjectRef
from dra_infra.model.program import Program
from dra_infra.planning.dangers.record import Danger

_CODES = ("field-dropped", "field-ignored")


def is_told_as_danger(problem: Problem) -> bool:
    """Whether a review tells a problem among its dangers, and then not among its problems."""
    return problem.severity == "warning" and problem.code in _CODES


def find_dropped_fields(head: Program) -> Iterator[Danger]:
    """`field-dropped` and `field-ignored`, once for each field whatever the number of minors."""
    owners = {each.component or str(each.ref): each.ref for each in reversed(head.objects)}
    told: dict[tuple[ObjectRef, str, str], list[Problem]] = {}
    for problem in filter(is_told_as_danger, head.problems):
        owner, path = _split(problem.path, owners)
        told.setdefault((owner, path, problem.code), []).append(problem)
    for (owner, path, code), problems in told.items():
        first = problems[0]
        verb = "loses" if code == "field-dropped" else "has no use of"
        yield Danger(
            who=owner,
            code=code,
            message=f"{verb} {path}: {'; '.join(dict.fromkeys(each.message for each in problems))}",
            hint=first.hint,
            place=first.place,
        )


def _split(path: str, owners: Mapping[str, ObjectRef]) -> tuple[ObjectRef, str]:
    """The object that a path belongs to, and the rest of the path."""
    best = max((name for name in owners if path.startswith(f"{name}.")), key=len, default="")
    if best:
        return owners[best], path[len(best) + 1 :]
    kind, _, rest = path.partition(" ")
    return ObjectRef(kind=kind, name=rest), "a field"
