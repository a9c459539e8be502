"""Components under `pulumi.runtime.set_mocks`, where all tests of a process are one run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.pages.documents import ROOT, blocks_of

# Futures of the SDK that failed and that nobody awaits are logged when they are collected. If that happens while pytest parses the
# source of a failure, Pythons before 3.11.9 end with a SystemError (gh-106905).
PRELUDE = """
import gc

gc.disable()

import pulumi
import dra_infra as dra


class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args):
        return [f"{args.name}_id", args.inputs]

    def call(self, args):
        return {}


pulumi.runtime.set_mocks(Mocks(), preview=False)


def claim(name, count):
    return dra.GpuClaimTemplate(name, device_class="gpu.nvidia.com", count=count, namespace="ml")

"""


def run_tests(folder: Path, tests: str) -> str:
    """Run the tests of a user in a process of their own, and return what pytest printed."""
    (folder / "test_users.py").write_text(PRELUDE + tests)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "test_users.py",
    ]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    ).stdout


def test_each_test_with_problems_fails_with_its_own(tmp_path: Path) -> None:
    printed = run_tests(
        tmp_path,
        """
@pulumi.runtime.test
def test_first():
    claim("one", 99)

@pulumi.runtime.test
def test_second():
    claim("two", 98)
    claim("three", 97)

@pulumi.runtime.test
def test_third_uses_what_it_makes():
    return claim("four", 96).object_name

@pulumi.runtime.test
def test_fourth_is_right():
    claim("five", 1)
""",
    )
    assert "3 failed, 1 passed" in printed
    errors = [line for line in printed.splitlines() if line.startswith("E ")]
    assert [sum(f"{count} devices" in line for line in errors) for count in (99, 98, 97, 96)] == [1, 1, 1, 1]
    assert sum("2 problems:" in line for line in errors) == 1


def test_a_program_that_python_runs_by_itself_says_so(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import dra_infra as dra\n"
        'for name in ("a", "b"):\n'
        '    dra.GpuClaimTemplate(name, device_class="gpu.nvidia.com")\n'
    )
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == ""
    assert done.stderr.count("train.py: nothing was deployed") == 1
    assert "`pulumi up` deploys it" in done.stderr


def test_a_test_that_runs_no_loop_fails_for_its_components_too_and_no_other_does(tmp_path: Path) -> None:
    printed = run_tests(
        tmp_path,
        """
def test_plain():
    claim("one", 99)

@pulumi.runtime.test
def test_after_it():
    claim("two", 1)

def test_with_the_fixture(dra_problems):
    claim("three", 97)
    assert [each.code for each in dra_problems] == ["too-many-devices"]

def test_that_fails_by_itself():
    claim("four", 96)
    assert False, "on its own"

def test_last():
    claim("five", 2)
""",
    )
    assert "2 failed, 3 passed" in printed
    errors = [line for line in printed.splitlines() if line.startswith("E ")]
    assert [sum(f"{count} devices" in line for line in errors) for count in (99, 97, 96)] == [1, 0, 0]
    assert any("on its own" in line for line in errors)


def test_a_count_that_is_known_later_fails_its_test_too(tmp_path: Path) -> None:
    printed = run_tests(
        tmp_path,
        """
@pulumi.runtime.test
def test_first():
    claim("one", pulumi.Output.from_input(99))

@pulumi.runtime.test
def test_second():
    claim("two", pulumi.Output.from_input(2))
""",
    )
    assert "1 failed, 1 passed" in printed
    assert "99 devices" in printed


def test_a_test_collects_problems_and_does_not_fail_for_them(tmp_path: Path) -> None:
    printed = run_tests(
        tmp_path,
        """
@pulumi.runtime.test
def test_too_many():
    with dra.testing.problems() as problems:
        broken = claim("one", 99)
        broken.attach({"containers": [{"name": "main", "image": "registry.example/main:1"}]})
    assert [(each.code, each.place.file) for each in problems] == [("too-many-devices", "test_users.py")]

@pulumi.runtime.test
def test_after_it():
    claim("two", 98)
""",
    )
    assert "1 failed, 1 passed" in printed
    assert "1 problem:" in printed
    assert "98 devices" in printed


def test_the_test_of_the_guide_passes(tmp_path: Path) -> None:
    (block,) = [
        each
        for each in blocks_of(ROOT / "docs" / "pulumi.md")
        if each.markers.get("made by", "").endswith("test_the_test_of_the_guide_passes")
    ]
    assert "1 passed" in run_tests(tmp_path, block.text)
