from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dra_infra.kubernetes.api import DeviceAttribute
from dra_infra.kubernetes.cel import DeviceView, compile_expression
from dra_infra.kubernetes.cel.evaluate import Match
from dra_infra.selectors.selector import Atom, Every, Some, quote, write

A, B, C = Atom("a"), Atom("b"), Atom("c")


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        (A, "a"),
        (Every((A, B)), "a && b"),
        (Some((A, B)), "a || b"),
        (Every((A, Some((B, C)))), "a && (b || c)"),
        (Some((A, Every((B, C)))), "a || (b && c)"),
        (Every((A, Every((B, C)))), "a && b && c"),
        (Some((Some((A, B)), C)), "a || b || c"),
        (Every((A, B, A)), "a && b"),
        (Every((A, Some((B, B)))), "a && b"),
        (Some((Every((A, B)), Every((A, B)))), "a && b"),
        (Every((A,)), "a"),
    ],
)
def test_clauses_are_written_with_the_parentheses_that_readers_need(clause, text: str):
    assert write(clause) == text


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("H100", '"H100"'),
        ('say "x"', r'"say \"x\""'),
        ("a\\d", r'"a\\d"'),
        ("a\nb\t", r'"a\nb\t"'),
        ("\x7f\u2028\ufeff", r'"\u007f\u2028\ufeff"'),
        ("\U000e0001", r'"\U000e0001"'),
        ("Ärger 日本 😀", '"Ärger 日本 😀"'),
        ("{{ it's }}", '"{{ it\'s }}"'),
    ],
)
def test_texts_are_quoted_as_readably_as_they_can_be(text: str, literal: str):
    assert quote(text) == literal


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
@example('"')
@example("\\")
@example("\\u0041")
@example("\r\n\x85\u2029")
@example("//")
@example("has(device.driver)")
@example("exists_one(a, b, c)")
def test_the_parser_reads_every_text_back(text: str):
    view = DeviceView("d", {"text": DeviceAttribute(string=text)})
    program = compile_expression(f'device.attributes["d"].text == {quote(text)}')
    assert program.evaluate(view) == Match()


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800"])
def test_what_the_parser_cannot_read_is_refused(text: str):
    with pytest.raises(ValueError, match="cannot hold"):
        quote(text)
