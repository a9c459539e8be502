from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_imports_point_only_downwards():
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    result = subprocess.run(
        [sys.executable, "-c", code, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


def test_the_map_of_packages_names_every_package_and_files_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z_/`, ]+`) \| .+ \| (.+) \|$", text, re.MULTILINE)
    named = {}
    for packages, first in rows:
        folders = [ROOT / "dra_infra" / each for each in re.findall(r"`([^`]+)`", packages)]
        for name in re.findall(r"`([^`]+)`", first):
            assert any((folder / name).exists() for folder in folders), f"{packages} has no {name}"
        named |= dict.fromkeys(folder.relative_to(ROOT / "dra_infra").parts[0] for folder in folders)
    assert sorted(named) == sorted(each.parent.name for each in (ROOT / "dra_infra").glob("*/__init__.py"))
