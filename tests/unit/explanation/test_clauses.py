from __future__ import annotations

import pytest

from dra_infra.explanation.clauses import clauses_of, with_clause, without_clause

PATH = 'device.attributes["d"].a'


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("true", ["true"]),
        ("a && b", ["a", "b"]),
        (f"has({PATH}) && {PATH} == 1", [f"{PATH} == 1"]),
        (f"has({PATH}) && {PATH} > 1 && {PATH} < 9", [f"{PATH} > 1", f"{PATH} < 9"]),
        (f"has({PATH})", [f"has({PATH})"]),
        (f"has({PATH}) && x", [f"has({PATH})", "x"]),
        ("a || b && c", ["a || b && c"]),
        ("(a && b) && c", ["(a && b)", "c"]),
    ],
)
def test_tests_are_told_apart_and_keep_their_guards(expression, texts):
    assert [each.text for each in clauses_of(expression)] == texts
    assert "".join(each.expression for each in clauses_of(expression)).count("has(") == expression.count(
        "has("
    )


def test_a_test_goes_with_its_guard():
    assert without_clause(f"x && has({PATH}) && {PATH} == 1", 1) == "x"


def test_a_guard_stays_where_another_test_needs_it():
    both = f"has({PATH}) && {PATH} > 1 && {PATH} < 9"
    assert without_clause(both, 0) == f"has({PATH}) && {PATH} < 9"
    assert without_clause(both, 1) == f"has({PATH}) && {PATH} > 1"


def test_without_its_only_test_a_selector_is_true():
    assert without_clause(f"has({PATH}) && {PATH} > 1", 0) == "true"


def test_another_test_keeps_the_guards():
    assert with_clause(f"has({PATH}) && {PATH} > 1", 0, f"{PATH} > 0") == f"has({PATH}) && {PATH} > 0"
