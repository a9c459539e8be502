"""The base of a review borrows the virtual environment of the working tree, unless the change could have written it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

PROGRAM = """
import acme_sdk
import pulumi_kubernetes as k8s
k8s.core.v1.ConfigMap("c", metadata={"name": "c"}, data={"a": acme_sdk.NAME})
"""
PACKAGES = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"


def name_environment(tree, folder: str) -> None:
    tree.write("Pulumi.yaml", f"name: app\nruntime: {{name: python, options: {{virtualenv: {folder}}}}}\n")


@pytest.fixture
def project(tree):
    name_environment(tree, "env")
    tree.write(".gitignore", "env/\n")
    tree.write("__main__.py", PROGRAM)
    tree.commit()
    return tree


def answer_of_base(review, *arguments: str) -> str:
    """Return why the base has no answer; empty where it has one."""
    report = json.loads(review("--format", "json", *arguments).out)
    return next((each["message"] for each in report["problems"] if each["code"] == "base-not-run"), "")


def test_an_environment_that_git_ignores_is_borrowed(project, review) -> None:
    project.write(f"env/{PACKAGES}/acme_sdk.py", "NAME = 'installed'\n")
    project.write("__main__.py", f"{PROGRAM}# changed\n")
    assert answer_of_base(review) == ""


@pytest.mark.parametrize("where", ["tracked", "behind a link", "outside"])
def test_an_environment_that_the_change_brings_or_points_at_is_not_borrowed(
    project, review, tmp_path: Path, where: str
) -> None:
    outside = tmp_path / "elsewhere"
    folder = {"tracked": "packages", "behind a link": "link/inner", "outside": str(outside)}[where]
    if where == "outside":
        (outside / PACKAGES).mkdir(parents=True)
        (outside / PACKAGES / "acme_sdk.py").write_text("NAME = 'forged'\n")
    else:
        project.write(f"packages/inner/{PACKAGES}/acme_sdk.py", "NAME = 'forged'\n")
        project.write(f"packages/{PACKAGES}/acme_sdk.py", "NAME = 'forged'\n")
        (project.root / "link").symlink_to("packages")
        project.commit()
    name_environment(project, folder)
    project.write("__main__.py", PROGRAM.replace("import acme_sdk", "class acme_sdk: NAME = 'head'"))
    base = ("--base", "HEAD~1") if where != "outside" else ()
    assert "acme_sdk" in answer_of_base(review, *base)
