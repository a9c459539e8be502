"""`make test` draws the same cases on every machine and in every order of tests; `make explore` finds all that draw."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

TESTS: Final = Path(__file__).parents[1]


def find_fast() -> list[Path]:
    """Return the modules of fast tests, with those of `tests/support` that they import."""
    waiting = [
        path
        for path in TESTS.rglob("*.py")
        if path.relative_to(TESTS).parts[0] not in ("e2e", "gpu", "support")
    ]
    fast = set(waiting)
    while waiting:
        for node in ast.walk(ast.parse(waiting.pop().read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests.support"):
                base = TESTS.parent.joinpath(*str(node.module).split("."))
                for path in (base.with_suffix(".py"), *(base / f"{each.name}.py" for each in node.names)):
                    if path.is_file() and path not in fast:
                        fast.add(path)
                        waiting.append(path)
    return sorted(fast)


FAST: Final = find_fast()
CHANCE: Final = frozenset(
    {
        "os.urandom",
        "uuid.uuid4",
        "random.SystemRandom",
        "secrets.token_hex",
        "secrets.randbelow",
        "secrets.choice",
    }
)
"""Calls whose result nobody can draw again."""


def drawn() -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []

    @settings(max_examples=300)
    @given(st.integers(), st.text())
    def draw(number: int, text: str) -> None:
        found.append((number, text))

    draw()
    return found


@pytest.mark.draws
def test_a_module_that_another_test_has_loaded_changes_no_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = drawn()
    path = tmp_path / "loaded_elsewhere.py"
    path.write_text(
        "".join(f"N{each} = {each}\nT{each} = 'text {each}'\n" for each in range(700_000, 700_300))
    )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)
    spec.loader.exec_module(module)
    assert drawn() == before


def test_nothing_is_left_to_chance_or_to_the_speed_of_the_machine():
    found = [
        f"{path.relative_to(TESTS)}: {text}"
        for path in FAST
        for tree in [ast.parse(path.read_text())]
        for text in (*find_chance(tree), *find_unmarked(tree))
    ]
    assert found == []


def find_chance(tree: ast.AST) -> Iterator[str]:
    """Yield calls that draw without a seed, and settings with which a slow machine fails a test."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func)
        is_unseeded = name in ("random.Random", "Random") and not call.args
        if name in CHANCE or is_unseeded:
            yield f"line {call.lineno}: {name}()"
        for option in call.keywords:
            checks = ast.unparse(option.value)
            if (
                option.arg == "suppress_health_check"
                and "too_slow" not in checks
                and checks != "list(HealthCheck)"
            ):
                yield f"line {call.lineno}: suppress_health_check without HealthCheck.too_slow"


def find_unmarked(tree: ast.Module) -> Iterator[str]:
    """Yield tests that draw, without the mark by which `make explore` finds them."""
    if "pytestmark = pytest.mark.draws" in map(ast.unparse, tree.body):
        return
    for test in tree.body:
        if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
            continue
        text = ast.unparse(test)
        draws = "draws.SEED" in text or "draws.seeds" in text or any(map(is_property, ast.walk(test)))
        decorators = [ast.unparse(each) for each in test.decorator_list]
        if draws and "pytest.mark.draws" not in decorators and not is_property(test):
            yield f"{test.name} lacks @pytest.mark.draws"


def is_property(node: ast.AST) -> bool:
    """True for a function with `@given(...)`."""
    return isinstance(node, ast.FunctionDef) and any(
        ast.unparse(each).startswith("given(") for each in node.decorator_list
    )
