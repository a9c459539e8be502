"""A review as SARIF 2.1.0: problems and dangers at the lines that they come from."""

from __future__ import annotations

from collections.abc import Iterator

from dra_infra.model.sarif import Finding, write_sarif
from dra_infra.planning.reviews import Review
from dra_infra.planning.wording import show_hidden


def render_sarif(review: Review) -> str:
    """One log with one run; ends with a line break.

    A problem has its own severity, a danger is a warning, and what could not be known is said of the run. What has no
    line in the user's files names its object instead.
    """
    notes = [str(item) for item in review.not_known] + list(review.notes)
    return write_sarif(list(_findings(review)), notes=map(show_hidden, notes)) + "\n"


def _findings(review: Review) -> Iterator[Finding]:
    for problem in review.problems:
        told = f"{problem.path}: {problem.message}"
        yield Finding(
            code=problem.code,
            level=problem.severity,
            message=_message(told, problem.hint),
            place=problem.place,
            subject=show_hidden(problem.path),
        )
    places = {change.ref: change.place for change in review.changes}
    for danger in review.dangers:
        yield Finding(
            code=danger.code,
            level="warning",
            message=_message(str(danger), danger.hint),
            place=danger.place or places.get(danger.who),
            subject=show_hidden(str(danger.who)),
        )


def _message(told: str, hint: str) -> str:
    return show_hidden(told) + (f"\nhint: {show_hidden(hint)}" if hint else "")
