from __future__ import annotations

import re
from pathlib import Path

from dra_infra.codes import CODES

ROOT = Path(__file__).parents[2]
SOURCES = {path: path.read_text() for path in sorted((ROOT / "dra_infra").rglob("*.py"))}
TESTS = "\n".join(
    path.read_text() for path in sorted((ROOT / "tests").rglob("*.py")) if path.name != "test_errors.py"
)


def used_codes() -> set[str]:
    # Quoted slugs behind `code=`, and codes handed on as a first argument of a function that makes problems.
    texts = [text for path, text in SOURCES.items() if path.name != "errors.py"]
    return {code for code in CODES if any(f'"{code}"' in text for text in texts)}


def test_every_code_is_used():
    assert set(CODES) - used_codes() == set()


def test_every_code_that_the_package_writes_is_in_the_catalogue():
    written = {
        code
        for path, text in SOURCES.items()
        if path.name != "errors.py"
        for code in re.findall(r'\bcode="([a-z0-9-]+)"', text)
    }
    assert written - set(CODES) == set()


def test_every_code_is_documented_and_every_documented_code_exists():
    documented = re.findall(r"^### `([a-z0-9-]+)`$", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE)
    assert sorted(documented) == sorted(CODES)


def test_every_code_is_triggered_by_a_test():
    assert {code for code in CODES if f'"{code}"' not in TESTS} == set()
