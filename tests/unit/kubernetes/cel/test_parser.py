"""How expressions are read: every spelling that the grammar has, and no other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.cel import (
    DeviceView,
    SyntaxRefusedError,
    check_expression,
    compile_expression,
    tokenize,
)
from dra_infra.kubernetes.cel.evaluate import Match
from dra_infra.kubernetes.cel.parsing.parser import parse
from dra_infra.kubernetes.cel.parsing.tokens import find_escaped
from dra_infra.kubernetes.cel.tree import Call, Const, Ident, Select

VIEW = DeviceView("a.b")


def root(text: str):
    parsed = parse(text, escapes=True, sorts=True)
    assert parsed.errors == ()
    return parsed.root


@pytest.mark.parametrize(
    "text",
    [
        r"r'\' == '\\'",
        'r"""a"b\\""" == "a\\"b\\\\"',
        r"b'\xff' == b'\377' && br'\' == b'\\'",
        "'\\u00e9' == 'é' && \"\"\"\n\"\"\" == '\\n'",
        "0x1F == 31 && -9223372036854775808 < 0 && 1u == 0x1u && .5e1 == 5.0",
        "has(device // )\n.driver) // has(device.driver)",
        "has(\tdevice\r\n. driver )",
        "device // the (driver\n  .driver == 'a.b'",
        "[1, 2,].size() == 2 && {'a': 1,}.size() == 1 && [,].size() == 0",
        "--1 == 1 && !!true && -(-1) == 1 && 2 - -1 == 3",
        "{'a-b': 1}.`a-b` == 1",
    ],
)
def test_a_spelling_of_the_grammar_is_read(text: str):
    assert compile_expression(text).evaluate(VIEW) == Match()


@pytest.mark.parametrize(
    "text",
    [
        "device.\u00a0driver == ''",
        "has(device\u00a0.driver)",
        "'\\400' == ''",
        "a.in == 1",
        "[1,,] == []",
        "size(1,) == 1",
        "!-x",
        "-!x",
        "a.?b()",
        "1 2",
        "'a\n' == ''",
    ],
)
def test_what_the_grammar_lacks_is_a_syntax_error(text: str):
    with pytest.raises(SyntaxRefusedError):
        parse(text, escapes=True, sorts=True)
    (problem, *_) = check_expression(text).errors
    assert problem.code == "cel-syntax"


def test_a_minus_belongs_to_the_number_behind_it():
    assert root("-1") == Const("int64_value", -1)
    assert root("-x") == Call("-_", (Ident("x"),))
    assert root("-1u") == Call("-_", (Const("uint64_value", 1),))
    assert root("-1.0.x") == Select(Const("double_value", -1.0), "x")


def test_operators_bind_as_in_the_grammar():
    assert root("a + b * c == d") == root("(a + (b * c)) == d")
    assert root("a - b - c") == root("(a - b) - c")
    assert root("a < b < c") == root("(a < b) < c")
    assert root("a && b || c ? d : e ? f : g") == root("((a && b) || c) ? d : (e ? f : g)")


def test_long_conjunctions_are_balanced():
    assert root("a && b && c") == root("(a && b) && c")
    assert root("a && b && c && d") == root("(a && b) && (c && d)")


@given(st.text(alphabet="ab1.?:'\"\\rb()[]{},=!&|<>+-*/%\n #`", max_size=20))
def test_no_text_is_read_in_another_way_than_as_an_expression_or_a_syntax_error(text: str):
    try:
        tokens = tokenize(text)
        parse(text, escapes=True, sorts=True)
    except SyntaxRefusedError:
        return
    assert all(text.startswith(token.text, token.start) for token in tokens)


def test_only_fields_in_backticks_are_found_in_what_is_no_expression():
    assert find_escaped("`a` .`b` + x.?`c` (") == [5, 14]
