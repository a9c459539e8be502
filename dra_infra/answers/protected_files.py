"""Which files a report must not take the place of: those that a command reads, and those that git tracks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dra_infra.errors import ProblemsError
from dra_infra.output.report_marks import LONGEST_REPORT, is_report
from dra_infra.sources.git import Said, ask, open_repository


def why_kept(file: Path, inputs: Sequence[Path]) -> str:
    """Return why a report is not put in the place of *file*; empty where it may be.

    An older report may be replaced, but for one that the command reads. So may any other file that is neither in a folder
    that the command reads nor tracked.

    Args:
        file: Where the report is to go.
        inputs: Files and folders that the command reads.

    Raises:
        OSError: When it cannot be looked at.
    """
    if not file.is_file():
        return ""
    if any(each.is_file() and each.samefile(file) for each in inputs):
        return "is an input of this command"
    with file.open("rb") as stream:
        if is_report(stream.read(LONGEST_REPORT + 1)):
            return ""
    place = file.resolve()
    around = next((each for each in inputs if each.is_dir() and place.is_relative_to(each.resolve())), None)
    if around is not None:
        return f"is in {around if str(around) != '.' else 'this folder'}, which this command reads"
    return "is tracked by git" if _is_tracked(place) else ""


def _is_tracked(file: Path) -> bool:
    top = next((each for each in file.parents if (each / ".git").exists()), None)
    if top is None:
        return False
    try:
        repository = open_repository(top)
        if isinstance(repository, Said):
            return False
        return not ask(repository, "ls-files", "--error-unmatch", "--", str(file.relative_to(top))).code
    except ProblemsError:
        # Without git nothing is known to be tracked.
        return False
