"""Quantities are put into the tree of another expression; the truth is the compilation of the text itself."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dra_infra.kubernetes.cel import Environment, check
from dra_infra.kubernetes.cel.environment import DEFAULT
from dra_infra.kubernetes.cel.masking import mask
from dra_infra.kubernetes.cel.tree import walk

MEMORY = 'device.capacity["a.b"].memory'
TEMPLATES = [
    f'{MEMORY}.compareTo(quantity("{{}}")) >= 0',
    f'{MEMORY} == quantity("{{}}")',
    f'has({MEMORY}) && {MEMORY}.isGreaterThan(quantity("{{}}"))',
    f'[quantity("{{}}"), quantity("{{}}")].exists(q, {MEMORY}.compareTo(q) > 0)',
    f'cel.bind(q, quantity("{{}}"), {MEMORY}.isLessThan(q) || q.isInteger())',
    '{{"a": quantity("{}")}}.all(k, v, v.compareTo(quantity("{}")) == 0)',
    'quantity("{}").add(quantity("{}")).asInteger() > 3',
    'isQuantity("{}")',
    'quantity("{}")',
    'quantity("{}") == "{}"',
    'quantity("{}") + 1 == 2',
    'device.attributes["a.b"].text.contains("quantity(") && quantity("{}").sign() == 1',
    'quantity("{}").nope()',
    "quantity('{}').sign() == 1",
    'quantity(r"{}").sign() == 1',
    '"ä" == device.driver && quantity("{}").sign() == 1',
    'device.attributes["a.b"].namespace == "x" && quantity("{}").sign() == 1',
    'quantity("{}") // quantity("1")',
    'quantity("{}").sign() == ',
]
QUANTITIES = [
    "1",
    "40Gi",
    "41Gi",
    "0",
    "00",
    "1.5",
    "-1",
    "+3k",
    "1e3",
    "nope",
    "10Zi",
    "99999999999999999999",
]
ENVIRONMENTS = [
    DEFAULT,
    Environment(minor=34, stored=False),
    Environment(minor=36, stored=True, list_attributes=True, consumable_capacity=True),
]


def compiled(text, environment):
    """The verdict without any memory of other texts, and with everything of its tree."""
    for each in (check._compile_masked, check._check, check._verdict, check._check_clause):
        each.cache_clear()
    found = check._check(text, environment, derived=False)
    trees = [
        (offset, tree.root, dict(tree.types), dict(tree.positions), dict(tree.references))
        for offset, tree in found.trees
    ]
    return found, found.known, trees


@settings(deadline=None, max_examples=150)
@given(
    template=st.sampled_from(TEMPLATES),
    quantities=st.lists(st.sampled_from(QUANTITIES), min_size=2, max_size=2),
    environment=st.sampled_from(ENVIRONMENTS),
)
@example(TEMPLATES[0], ["40Gi", "1"], DEFAULT)
def test_masked_texts_have_the_verdict_of_their_own_compilation(template, quantities, environment):
    text = template.format(*quantities)
    found = compiled(text, environment)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "mask", lambda _text: None)
        assert compiled(text, environment) == found


def test_texts_that_differ_in_quantities_only_are_compiled_once(monkeypatch):
    calls = []
    find_tree = check.find_tree

    def counting(text, environment):
        calls.append(text)
        return find_tree(text, environment)

    monkeypatch.setattr(check, "find_tree", counting)
    check._compile_masked.cache_clear()
    for size in range(31, 91):
        checked = check.check_expression(f'{MEMORY}.compareTo(quantity("{size}Gi")) >= 1')
        assert checked.return_type == "bool"
        assert any(getattr(node, "value", "") == f"{size}Gi" for node in walk(checked.tree.root))
    assert len(calls) == 1


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "quantity('1') == q",
        'quantity("1") // "',
        '"\\"" + quantity("1")',
        'isQuantity("1")',
        'quantity("ä")',
    ],
)
def test_a_text_that_may_be_read_otherwise_is_left_alone(text):
    assert mask(text) is None


def test_offsets_stay_where_they_are():
    text = 'quantity("40Gi") == quantity("1")'
    masked = mask(text)
    assert masked is not None
    assert (masked.text, masked.values) == ('quantity("0000") == quantity("0")', {9: "40Gi", 29: "1"})
