"""A conjunction is checked by its clauses; the truth is the compilation of the whole."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.api import DeviceAttribute
from dra_infra.kubernetes.cel import (
    DeviceView,
    Environment,
    check,
    check_expression,
    compile_expression,
    split_conjunction,
)
from dra_infra.kubernetes.cel.environment import DEFAULT
from dra_infra.kubernetes.cel.tree import Node, walk

DOMAIN = 'device.attributes["a.b"]'
CLAUSES = [
    'device.driver == "a.b"',
    f"has({DOMAIN}.x)",
    f"!has({DOMAIN}.x)",
    f"{DOMAIN}.x == 1",
    f'{DOMAIN}.y.contains("&&")',
    f"{DOMAIN}.y in ['a', \"b\"]",
    f"{DOMAIN}.?z.orValue(false)",
    f"{DOMAIN}[?'z'].orValue(false)",
    f"{DOMAIN}.z",
    "has(device.driver)",
    "has(device.attributes)",
    f"[1, 2].exists(n, n == {DOMAIN}.x && n > 0)",
    f"cel.bind(d, {DOMAIN}, has(d.x) && d.x == 1)",
    '{"a": 1}.all(k, v, k == "a" && v == 1)',
    'semver("1.2.3") == semver("1.2.3")',
    "(true || false)",
    "true ? true : false",
    "true || false",
    "[] == []",
    "1 + 1",
    "dyn(true)",
    '"a" == r"a"',
    "'it''s' == ''",
    '"""a && b""" == \'a && b\'',
    "'\\'' == '&&'",
    "true // && nothing",
    "`a` == 1",
    "nothing",
    "",
    "(",
    ")",
    "'",
    "1 == 'a'",
    "quantity('1') == 1",
    "'x'.matches('[')",
    "duration('x') == duration('1s')",
    "[1, 'a'].size() == 2",
    f"{DOMAIN}.l.all(a, {DOMAIN}.l.all(b, {DOMAIN}.l.all(c, a == b && b == c)))",
]
ENVIRONMENTS = [
    DEFAULT,
    Environment(minor=34, stored=False),
    Environment(minor=36, stored=True, list_attributes=True, consumable_capacity=True),
]
JOINTS = st.sampled_from([" && ", "&&", "\n&& ", " &&\n"])
CONJUNCTIONS = st.lists(st.sampled_from(CLAUSES), min_size=1, max_size=5).flatmap(
    lambda parts: JOINTS.map(lambda joint: joint.join(parts))
)


def shape(node: Node, types: dict[int, object]) -> list[object]:
    return [(each.__class__, types.get(each.id)) for each in walk(node)]


@settings(deadline=None, max_examples=400)
@example(" && ".join([CLAUSES[0]] * 7), DEFAULT)
@example(" && ".join(CLAUSES[:9]), DEFAULT)
@given(CONJUNCTIONS, st.sampled_from(ENVIRONMENTS))
def test_the_clauses_say_what_the_whole_says(text: str, environment: Environment):
    by_clauses = check._check(text, environment, derived=False)
    whole = check._compile(text, environment, derived=False)
    assert by_clauses == whole
    joined, compiled = by_clauses.tree, whole.tree
    assert (joined is None) == (compiled is None)
    if joined is not None and compiled is not None:
        assert joined.root == compiled.root
        assert shape(joined.root, joined.types) == shape(compiled.root, compiled.types)
        positions = [joined.positions.get(node.id) for node in walk(joined.root)]
        expected = [compiled.positions.get(node.id) for node in walk(compiled.root)]
        assert [found for found in positions if found is not None] == [
            wanted for found, wanted in zip(positions, expected, strict=True) if found is not None
        ]
        assert [joined.references.get(node.id) for node in walk(joined.root)] == [
            compiled.references.get(node.id) for node in walk(compiled.root)
        ]


def test_a_plain_conjunction_is_told_apart():
    text = "a == 1 && b.exists(x, x && y) && 'c && d' in e"
    assert [text[clause.offset :].startswith(clause.text) for clause in split_conjunction(text)] == [True] * 3
    assert [clause.text.strip() for clause in split_conjunction(text)] == [
        "a == 1",
        "b.exists(x, x && y)",
        "'c && d' in e",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "(a && b)",
        "a && b || c",
        "a && b ? c : d",
        "a && (b",
        "a) && (b",
        "a && b // c",
        "a && 'b",
        "a && `b`",
        'a && """b"""',
        "a && 'b\\''",
    ],
)
def test_what_need_not_be_a_conjunction_is_left_alone(text: str):
    assert split_conjunction(text) == ()


def test_clauses_are_compiled_once(monkeypatch):
    compiled = []
    real = check._compile
    monkeypatch.setattr(
        check, "_compile", lambda text, *rest, **more: compiled.append(text) or real(text, *rest, **more)
    )
    for number in range(3):
        assert not check_expression(f'device.driver == "once.example" && {number} > 0').errors
    assert len(compiled) == 4


def test_a_joined_tree_is_evaluated():
    view = DeviceView("a.b", {"x": DeviceAttribute(int=1)})
    program = compile_expression(f'device.driver == "a.b" && {DOMAIN}.x == 1 && has({DOMAIN}.x)')
    assert str(program.evaluate(view)) == str(compile_expression("true").evaluate(view))
