from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.advice.findings import clauses, guarded_clause, show
from dra_infra.advice.problems import explain_refusal
from dra_infra.kubernetes.cel import check_expression

MEMORY = 'device.capacity["gpu.nvidia.com"].memory'


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("a && b&&c", ("a", "b", "c")),
        ("(a && b) && c", ("(a && b)", "c")),
        ("x['a && b'] && c", ("x['a && b']", "c")),
        (r'"\" && " == a && b', (r'"\" && " == a', "b")),
        ("a && b || c", ("a && b || c",)),
        ("a ? b && c : d", ("a ? b && c : d",)),
        ("a.?b.orValue(1) == 1 && c", ("a.?b.orValue(1) == 1", "c")),
        ('a[?"b"].hasValue() && c', ('a[?"b"].hasValue()', "c")),
    ],
)
def test_clauses_are_what_and_joins(text, parts):
    assert clauses(text) == parts


@given(st.text(alphabet="ab&|?()[]{}\"'\\. ", max_size=40))
def test_any_text_has_clauses(text):
    assert "".join("".join(clauses(text)).split()) == "".join(text.replace("&&", "").split()) or "&&" in text


def test_long_clauses_are_not_quoted():
    assert guarded_clause("a && bc\n  == 1", "bc", "has(bc)") == "has(bc) && bc == 1"
    assert guarded_clause("a" * 500, "a", "has(a)") == ""


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a || b > 1", "a || g && b > 1"),
        ("g && b || b > 1 && c", "g && b || g && b > 1 && c"),
        ("a ? b > 1 : c", ""),
        ("a && (c || b)", ""),
        ("a || (c || b)", ""),
    ],
)
def test_a_guard_binds_no_looser_than_what_it_guards(text: str, written: str):
    assert guarded_clause(text, "b", "g") == written


def test_texts_are_bounded():
    assert len(show("x" * 1000)) < 90


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        (f"{MEMORY} >= 40", f'write {MEMORY}.compareTo(quantity("40Gi")) >= 0'),
        (f'{MEMORY} == "80Gi"', f'write {MEMORY}.compareTo(quantity("80Gi")) == 0'),
        (f"{MEMORY} > 42949672960", f'write {MEMORY}.compareTo(quantity("42949672960")) > 0'),
        (f'{MEMORY}.compareTo("80Gi") >= 0', f'write {MEMORY}.compareTo(quantity("80Gi")) >= 0'),
        (f'true && {MEMORY}.isGreaterThan("8Gi")', f'write {MEMORY}.isGreaterThan(quantity("8Gi"))'),
    ],
)
def test_refused_comparisons_with_a_quantity_are_shown_as_they_must_be(expression, hint):
    checked = check_expression(expression)
    assert checked.errors
    assert explain_refusal(expression, checked.detail) == hint
    assert explain_refusal(json.dumps(expression), checked.detail) == hint
    assert check_expression(hint.removeprefix("write ")).errors == ()


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("device.driver == 1", "compare values of the same type"),
        ("driver == 'a'", "quote texts"),
        ("device.capacity[", ""),
    ],
)
def test_other_refusals_have_the_hint_of_the_compiler(expression, hint):
    assert explain_refusal(expression, check_expression(expression).detail).startswith(hint)
