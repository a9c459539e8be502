"""A review as JUnit XML: one test case for each workload and for each thing that something is said of."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.errors import Problem
from dra_infra.model.junit import TestCase, write_junit
from dra_infra.planning.reviews import Review
from dra_infra.planning.wording import show_hidden


def render_junit(review: Review) -> str:
    """One suite; ends with a line break. Its first case is called by the verdict, and passes: others say what fails.

    A workload fails its case when it has no place any more, an argument or object when it has a problem. Dangers and
    warnings are cases that pass, with what is to be known in their output.
    """
    return write_junit("dra-infra review", list(_cases(review))) + "\n"


def _cases(review: Review) -> Iterator[TestCase]:
    yield TestCase(group="verdict", name=show_hidden(review.verdict))
    by_path: dict[str, list[Problem]] = {}
    for problem in review.problems:
        by_path.setdefault(problem.path, []).append(problem)
    for workload in review.workloads:
        if workload.after is not None:
            found = by_path.pop(str(workload.owner), [])
            yield _case("placement", str(workload.owner), found, remark=workload.summary)
    for path, found in by_path.items():
        yield _case("problems", path, found)
    for danger in review.dangers:
        hint = f"\nhint: {show_hidden(danger.hint)}" if danger.hint else ""
        remark = f"{show_hidden(f'{danger} [{danger.code}]')}{hint}"
        yield TestCase(group="dangers", name=show_hidden(str(danger.who)), remarks=[remark])


def _case(group: str, name: str, found: list[Problem], *, remark: str = "") -> TestCase:
    return TestCase(
        group=group,
        name=show_hidden(name),
        failures=[(each.code, _told(each)) for each in found if each.severity == "error"],
        remarks=[
            *(f"{_told(each)} [{each.code}]" for each in found if each.severity != "error"),
            *([show_hidden(remark)] if remark else []),
        ],
    )


def _told(problem: Problem) -> str:
    where = f"{problem.place}: " if problem.place else ""
    hint = f"\nhint: {show_hidden(problem.hint)}" if problem.hint else ""
    return f"{show_hidden(f'{where}{problem.path}: {problem.message}')}{hint}"
