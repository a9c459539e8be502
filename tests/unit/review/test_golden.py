"""One realistic review in every form, byte for byte. `DRA_INFRA_UPDATE_GOLDEN=1 pytest` writes the files anew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.review import (
    render_html,
    render_json,
    render_junit,
    render_markdown,
    render_sarif,
    render_text,
)

GOLDEN = Path(__file__).parent / "golden"
FORMS = {
    "review.txt": render_text,
    "review.md": render_markdown,
    "review.json": render_json,
    "review.html": render_html,
    "review.sarif": render_sarif,
    "review.xml": render_junit,
}


@pytest.mark.parametrize("name", FORMS)
def test_the_report_is_the_golden_one(sample, name):
    text = FORMS[name](sample)
    path = GOLDEN / name
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name} is missing: run with DRA_INFRA_UPDATE_GOLDEN=1"
    assert path.read_text(encoding="utf-8") == text


@pytest.mark.parametrize("seed", ["1", "2"])
def test_reports_do_not_depend_on_the_hash_seed_or_the_environment(seed):
    program = (
        "import importlib.util, sys\n"
        f"spec = importlib.util.spec_from_file_location('sample', {str(Path(__file__).with_name('conftest.py'))!r})\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "from dra_infra import review as reports\n"
        "review = module.a_sample()\n"
        f"forms = {[form.__name__ for form in FORMS.values()]!r}\n"
        "sys.stdout.buffer.write(''.join(getattr(reports, form)(review) for form in forms).encode())\n"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": seed, "COLUMNS": "40", "FORCE_COLOR": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=False)
    assert done.stderr == b""
    assert done.stdout.decode() == "".join((GOLDEN / name).read_text(encoding="utf-8") for name in FORMS)
