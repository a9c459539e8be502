"""What the self-test found, one thing at a time, and how it is printed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dra_infra.errors import PluginError, Problem


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that was tried.

    Args:
        what: It, in a few words.
        found: What there is, where it holds.
        problem: What does not hold; a warning where the plugin works nevertheless.
    """

    what: str
    found: str = ""
    problem: Problem | None = None

    @property
    def holds(self) -> bool:
        """Whether the plugin works with it."""
        return self.problem is None or self.problem.severity == "warning"

    def lines(self) -> Iterator[str]:
        """For a person."""
        if self.problem is None:
            yield f"✓ {self.what}: {self.found}"
            return
        mark = "!" if self.holds else "✗"
        yield f"{mark} {self.what}: {self.problem.path}: {self.problem.message} [{self.problem.code}]"
        if self.problem.hint:
            yield f"    {self.problem.hint}"

    def plain(self) -> dict[str, Any]:
        """For a program."""
        if self.problem is None:
            return {"what": self.what, "holds": True, "found": self.found}
        problem = {
            name: getattr(self.problem, name) for name in ("path", "code", "message", "hint", "severity")
        }
        return {"what": self.what, "holds": self.holds, "problem": problem}


def attempt(what: str, work: Callable[[], str]) -> Iterator[Finding]:
    """What *work* finds, or each of the problems that it raises."""
    try:
        yield Finding(what=what, found=work())
    except PluginError as error:
        for problem in error.problems:
            yield Finding(what=what, problem=problem)


def show(findings: Iterable[Finding], *, as_json: bool, write: Callable[[str], object]) -> int:
    """Print each as it comes, or all as JSON; the exit code, 1 where something does not hold."""
    seen = []
    for each in findings:
        seen.append(each)
        if not as_json:
            for line in each.lines():
                write(f"{line}\n")
    failed = sum(not each.holds for each in seen)
    if as_json:
        checks = [each.plain() for each in seen]
        write(json.dumps({"works": not failed, "checks": checks}, indent=2, sort_keys=True) + "\n")
    elif failed:
        write(f"{failed} of {len(seen)} do not hold\n")
    else:
        write(f"all {len(seen)} hold\n")
    return 1 if failed else 0
