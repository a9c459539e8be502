"""docs/security.md: each promise names the attack that holds it, all of them exist, and each file of attacks is named."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text()
ATTACKS = ROOT / "tests" / "e2e" / "attacks"
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.partition("## Promises")[2].partition("## What reads secrets")[0].splitlines()
    if line.startswith("| ") and not line.startswith(("| Promise |", "| --- |"))
]


def named() -> set[tuple[Path, str]]:
    found = set()
    for _, attacks, *_ in ROWS:
        for each in re.findall(r"`([^`]+)`", attacks):
            file, _, test = each.partition("::")
            found.add((ROOT / file if "/" in file else ATTACKS / file, test))
    return found


def test_every_promise_names_its_attack_and_what_is_not_promised():
    assert len(ROWS) > 40
    assert all(len(row) in (2, 3) and re.search(r"`[^`]*test_[a-z_]+\.py", row[1]) for row in ROWS)


def test_every_attack_that_is_named_exists():
    missing = [
        (file.name, test)
        for file, test in sorted(named())
        if not file.is_file() or (test and f"def {test}(" not in file.read_text())
    ]
    assert missing == []


def test_every_file_of_attacks_is_named():
    files = {file for file, _ in named()}
    assert set(ATTACKS.glob("test_*.py")) <= files
