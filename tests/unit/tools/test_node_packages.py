from __future__ import annotations

import json
import re
from pathlib import Path

from tools import node_packages

FOLDER = Path(node_packages.__file__).parent
LOCK = FOLDER.joinpath("package-lock.json").read_text()


def test_every_package_is_pinned_by_hash_and_none_by_an_address():
    packages = {name: each for name, each in json.loads(LOCK)["packages"].items() if name}
    assert len(packages) > 100
    assert [name for name, each in packages.items() if not each["integrity"].startswith("sha512-")] == []
    assert "://" not in LOCK


def test_the_packages_that_programs_import_have_exact_versions():
    wanted = json.loads(FOLDER.joinpath("package.json").read_text())["dependencies"]
    locked = json.loads(LOCK)["packages"]
    assert wanted == {name: locked[f"node_modules/{name}"]["version"] for name in wanted}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
