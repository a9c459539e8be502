from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools.program_types import ROOT, check, settings, write_programs

EXPECTED_ERROR = "# type: ignore[assignment]  # pyright: ignore[reportAssignmentType]"


def checked(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "pyrightconfig.json").write_text(json.dumps(settings()))
    (folder / "program.py").write_text(program)
    return check(folder)


def test_the_programs_are_those_of_the_readme_the_examples_new_projects_and_the_tests_of_types(
    tmp_path: Path,
):
    write_programs(ROOT, tmp_path)
    written = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.py")}
    examples = {file.relative_to(ROOT).as_posix() for file in ROOT.glob("examples/*/**/*.py")}
    styles = {file.relative_to(ROOT).as_posix() for file in ROOT.glob("tests/styles/**/*.py")}
    assert min(len(examples), len(styles)) > 10
    assert written == {
        *examples,
        *styles,
        *("README.py", "tests/typing/public_api.py"),
        *("init/__main__.py", "init/tests/test_gpus.py"),
        *("init-example/__main__.py", "init-example/tests/test_gpus.py"),
    }
    assert "GpuClaimTemplate(" in (tmp_path / "README.py").read_text()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import dra_infra as dra\n\nprint(dra.gpu.memory.exists())\n", ""),
        ("import dra_infra as dra\n\nprint(dra.gpu.memory.compare('<', '1Gi'))\n", 'attribute "compare"'),
        (f"number: int = ''  {EXPECTED_ERROR}\n", ""),
        ("number: int = ''  # type: ignore[assignment]\n", "reportAssignmentType"),
        (f"number: int = 1  {EXPECTED_ERROR}\n", "reportUnnecessaryTypeIgnoreComment"),
    ],
)
def test_what_is_wrong_is_told_and_what_is_expected_must_come(tmp_path: Path, program: str, told: str):
    found = checked(tmp_path, program)
    assert (found.returncode, told in found.stdout) == (1 if told else 0, True), found.stdout
