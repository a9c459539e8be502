"""The front door of `dra_infra.kubernetes`: its public names, their lines in the documentation, and what importing it loads."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "dra_infra" / "kubernetes"
PAGE = ROOT / "docs" / "kubernetes-api.md"
DOORS = ("api", "cel", "apiserver", "scheduler", "scheduler.allocator")
MODULES = ("problems", "api.limits", "api.names", "api.pod_security", "api.v1beta1", "cel.tree")
"""Public as a whole."""
LINE = 111
"""Characters of a line that ruff leaves as it is, with its end."""

NAMES = [(door, name) for door in DOORS for name in import_module(f"dra_infra.kubernetes.{door}").__all__]


def path_of(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def home_of(door: str, name: str) -> str:
    return f"{door}.{import_module(f'dra_infra.kubernetes.{door}')._HOMES[name]}"


def documented(module: str) -> dict[str, str]:
    """The first paragraph of the docstring of each name that a module defines; empty for none."""
    body = ast.parse(path_of(module).read_text()).body
    texts: dict[str, str] = {}
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            texts[node.name] = ast.get_docstring(node) or ""
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(target, ast.Name):
                texts[target.id] = str(text.value) if isinstance(text, ast.Constant) else ""
    return {name: " ".join(text.strip().split("\n\n")[0].split()) for name, text in texts.items()}


def imports_outside() -> Iterator[tuple[str, str]]:
    """Module below `dra_infra.kubernetes` and name of each import in the rest of the product."""
    for file in (ROOT / "dra_infra").rglob("*.py"):
        if PACKAGE in file.parents:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dra_infra.kubernetes."):
                module = (node.module or "").removeprefix("dra_infra.kubernetes.")
                yield from ((module, each.name) for each in node.names)


def make_import(home: str, name: str) -> str:
    line = f"    from dra_infra.kubernetes.{home} import {name} as {name}\n"
    if len(line) <= LINE:
        return line
    return f"    from dra_infra.kubernetes.{home} import (\n        {name} as {name},\n    )\n"


def make_table(door: str) -> str:
    rows = []
    for name in (name for at, name in NAMES if at == door):
        text = documented(home_of(door, name))[name].replace("|", r"\|").replace("*", r"\*")
        rows.append(f"| `{name}` | {text} |")
    title = (ast.get_docstring(ast.parse(path_of(door).read_text())) or "").split("\n\n")[0]
    return "\n".join([f"## `{door}`", "", title, "", "| Name | What it is |", "| --- | --- |", *rows])


@pytest.mark.parametrize("door", DOORS)
def test_type_checkers_get_the_names_of_the_table(door: str):
    path = path_of(door)
    source = path.read_text()
    homes = sorted(
        ((home_of(door, name), name) for at, name in NAMES if at == door),
        # As ruff sorts them: constants, classes, functions.
        key=lambda pair: (pair[0], not pair[1].isupper(), not pair[1][0].isupper(), pair[1]),
    )
    imports = "".join(make_import(home, name) for home, name in homes)
    now = re.sub(
        r"(?s)(?<=^if TYPE_CHECKING:\n).*?(?=\n# The source)", imports, source, count=1, flags=re.MULTILINE
    )
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        path.write_text(now)
    assert path.read_text() == now, "run `make golden TESTS=tests/contract/test_kubernetes_names.py`"


@pytest.mark.parametrize(("door", "name"), NAMES)
def test_every_public_name_is_what_its_module_defines_with_a_documented_line(door: str, name: str):
    home = home_of(door, name)
    package = import_module(f"dra_infra.kubernetes.{door}")
    assert getattr(package, name) is getattr(import_module(f"dra_infra.kubernetes.{home}"), name)
    assert documented(home).get(name), f"{name} of {home} has no docstring"


@pytest.mark.parametrize("door", DOORS)
def test_no_module_has_the_name_of_a_public_name(door: str):
    modules = {each.stem for each in path_of(door).parent.iterdir()}
    assert not modules & {name for at, name in NAMES if at == door}


@pytest.mark.parametrize("door", DOORS)
def test_importing_a_door_loads_no_module_behind_it(door: str):
    code = (
        f"import sys, dra_infra.kubernetes.{door}\n"
        "print(sorted(each for each in sys.modules if each.startswith('dra_infra.kubernetes.')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    parts = door.split(".")
    packages = [".".join(["dra_infra.kubernetes", *parts[: number + 1]]) for number in range(len(parts))]
    assert ast.literal_eval(loaded) == sorted([*packages, "dra_infra.kubernetes.front_door"])


def test_the_product_uses_every_public_name():
    assert sorted(set(NAMES) - set(imports_outside())) == []


def test_an_unknown_name_is_refused_as_python_does():
    package = import_module("dra_infra.kubernetes.api")
    with pytest.raises(
        AttributeError, match=r"module 'dra_infra\.kubernetes\.api' has no attribute 'Nothing'"
    ):
        _ = package.Nothing


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_says_what_it_is(module: str):
    assert ast.get_docstring(ast.parse(path_of(module).read_text()))


def test_the_page_has_a_line_for_every_public_name():
    text = PAGE.read_text(encoding="utf-8")
    tables = "\n\n".join(map(make_table, DOORS))
    now = re.sub(
        r"(?s)(<!-- names -->\n).*(\n<!-- end -->)", lambda match: f"{match[1]}\n{tables}\n{match[2]}", text
    )
    if os.environ.get("DRA_INFRA_UPDATE_GOLDEN") == "1":
        PAGE.write_text(now, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == now, (
        "run `make golden TESTS=tests/contract/test_kubernetes_names.py`"
    )
