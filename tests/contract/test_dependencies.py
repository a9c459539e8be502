from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dra_infra.placement.integer_programs import NO_SOLVER

ROOT = Path(__file__).parents[2]


def name_of(requirement: str) -> str:
    return re.split(r"[<>=!~\[; ]", requirement, maxsplit=1)[0].lower()


def test_the_package_and_the_requirements_name_the_same_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements" / "run.in").read_text().splitlines()
    listed = {name_of(line) for line in lines if line and not line.startswith("#")}
    assert listed == {name_of(each) for each in project["dependencies"]}


@pytest.mark.parametrize("extra", ["plugin", "mcp"])
def test_an_extra_and_its_requirements_name_the_same(extra: str):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "requirements" / f"{extra}.in").read_text().splitlines()
    listed = {name_of(line) for line in lines if line and not line.startswith(("#", "-"))}
    assert listed == {name_of(each) for each in project["optional-dependencies"][extra]}


def test_extras_run_with_the_releases_that_everything_else_runs_with():
    def pins(name: str) -> dict[str, str]:
        text = (ROOT / "requirements" / name).read_text()
        return dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", text, re.MULTILINE))

    dev = pins("dev.txt")
    for extra in (pins("plugin.txt"), pins("mcp.txt")):
        assert extra == {name: dev.get(name) for name in extra}


def test_a_verdict_without_the_solver_names_the_release_of_the_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (solver,) = project["optional-dependencies"]["solver"]
    assert f"pip install '{solver}'" in NO_SOLVER


def test_every_pin_carries_hashes_and_no_address():
    for file in sorted((ROOT / "requirements").glob("*.txt")):
        text = file.read_text()
        pins = re.findall(r"^[a-z0-9][a-z0-9._-]*==", text, re.MULTILINE)
        assert pins, file.name
        assert text.count("--hash=sha256:") >= len(pins), file.name
        assert not re.search(r"https?://|index-url|find-links", text), file.name


def test_the_version_is_said_once_in_each_place():
    import dra_infra

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert dra_infra.__version__ == project["version"]
