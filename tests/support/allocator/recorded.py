"""Cases with the answers of Kubernetes' own allocators, and which mutants each of them catches.

`tests/e2e/judges/test_allocation_recorded.py` asks again, and looks for cases of mutants that have none when golden
files are written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.allocator.cases import Case, from_line, to_line

PATH: Final = Path(__file__).parents[2] / "unit/kubernetes/scheduler/allocator/golden/cases.jsonl"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One case.

    Args:
        case: The case.
        theirs: By node, the different answers of the judge.
        catches: Mutants that give another answer.
    """

    case: Case
    theirs: list[list[Any]]
    catches: list[str]


def read() -> list[Recorded]:
    """All recorded cases."""
    lines = map(json.loads, PATH.read_text().splitlines())
    return [Recorded(from_line(line["case"]), line["theirs"], line["catches"]) for line in lines]


def write(recorded: Iterable[Recorded]) -> None:
    """Replace them, one case a line."""
    PATH.parent.mkdir(exist_ok=True)
    lines = (
        {"catches": each.catches, "case": to_line(each.case), "theirs": each.theirs} for each in recorded
    )
    PATH.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
