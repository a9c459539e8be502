"""Check the types of programs as users write them: ``python -m tools.program_types``, a part of ``make typecheck``.

pyright, strict, reads the program of the README, every example, what `dra-infra init` writes, `tests/styles` and `tests/typing`, with dra-infra as an
installed package. mypy needs more than 14 GB for the vendor's typed resources in such programs, and reads `tests/typing` alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent

_PYTHON: Final = re.compile(r"^```python\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_PROJECTS: Final = {"init": "hgx-h100 x 4", "init-example": "example x 2"}
"""Folders for `dra-infra init`, with a fleet of NVIDIA's GPUs and one of another driver's."""


def main() -> int:
    """Check them, and print what is wrong; returns the exit status."""
    with tempfile.TemporaryDirectory(prefix="dra-infra-types-") as name:
        # pyright tells files by their real path.
        folder = Path(name).resolve()
        write_programs(ROOT, folder)
        (folder / "pyrightconfig.json").write_text(json.dumps(settings()), encoding="utf-8")
        checked = check(folder)
    print(checked.stdout.replace(f"{folder}/", "").strip(), flush=True)
    print(checked.stderr, file=sys.stderr, end="")
    return checked.returncode


def write_programs(root: Path, folder: Path) -> None:
    """Write the programs into *folder*, below the names that they have in *root*."""
    readme = (root / "README.md").read_text(encoding="utf-8")
    (folder / "README.py").write_text("\n".join(_PYTHON.findall(readme)), encoding="utf-8")
    for file in [
        *root.glob("examples/*/**/*.py"),
        *root.glob("tests/styles/**/*.py"),
        *root.glob("tests/typing/*.py"),
    ]:
        copy = folder / file.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    for project, fleet in _PROJECTS.items():
        subprocess.run(
            [sys.executable, "-m", "dra_infra.cli.app", "init", str(folder / project), "--fleet", fleet],
            check=True,
            stdout=subprocess.DEVNULL,
        )


def settings() -> Mapping[str, object]:
    """What pyright is told: strict, and an error where an expected error does not come."""
    environment = Path(sys.prefix)
    return {
        "include": ["."],
        # The stacks of a company find its package installed.
        "extraPaths": ["examples/20-company/acme-gpus"],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(environment.parent),
        "venv": environment.name,
        # Lines that must be wrong say so for each checker, with the rule; mypy's word is not taken for pyright's.
        "enableTypeIgnoreComments": False,
        "reportUnnecessaryTypeIgnoreComment": "error",
    }


def check(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pyright in *folder*. Its wheel and that of node hold all that it needs, and it need not ask for a newer one."""
    return subprocess.run(
        [sys.executable, "-m", "pyright", "--project", str(folder)],
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


if __name__ == "__main__":
    sys.exit(main())
