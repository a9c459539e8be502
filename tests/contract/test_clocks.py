from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "dra_infra"

SET_BY_OTHERS = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow", "datetime.today", "date.today"}  # fmt: skip
"""Clocks that somebody can set, as code calls or names them."""

NO_LIMITS = {
    # When a rate limit ends is told as a date; what is waited for is bounded by the time that is left of 300 s.
    "forge/session.py",
    # Dates of conditions and records, which the kubelet and the API server compare with their own.
    "plugin/api_server/binding.py",
    "plugin/service/health.py",
}


def clocks_in(file: Path) -> set[str]:
    names = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Attribute))
    found = {".".join(ast.unparse(node).split(".")[-2:]) for node in names}
    return found & SET_BY_OTHERS


def test_limits_of_time_are_read_off_a_clock_that_nobody_sets():
    found = {
        str(file.relative_to(PACKAGE)): clocks
        for file in PACKAGE.rglob("*.py")
        if (clocks := clocks_in(file))
    }
    assert found.keys() == NO_LIMITS
