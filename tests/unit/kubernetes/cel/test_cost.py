"""The cost of every recorded expression in every environment, and what the cost is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dra_infra.kubernetes.api.limits import MAX_COST
from dra_infra.kubernetes.cel import Environment, check_expression
from dra_infra.kubernetes.cel.cost import estimate_cost
from dra_infra.kubernetes.cel.environment import DEFAULT
from tests.support.parity.recorded_costs import ENVIRONMENTS, read_rows

ROWS = read_rows()
SELECTOR = 'device.attributes["gpu.nvidia.com"].productName == "NVIDIA H100"'
COSTLY = 'device.attributes["d"].a.exists(x, device.attributes["d"].b.exists(y, type(x) == type(y)))'


def cost_of(expression: str, environment: Environment = DEFAULT) -> int:
    tree = check_expression(expression, environment=environment).tree
    assert tree is not None
    return estimate_cost(tree, environment)


@pytest.mark.parametrize("column", range(len(ENVIRONMENTS)), ids=map(str, ENVIRONMENTS))
def test_every_recorded_cost_is_computed(column: int):
    environment = ENVIRONMENTS[column]
    recorded = {row.expression: row.costs[column] for row in ROWS if row.costs[column] is not None}
    assert {expression: cost_of(expression, environment) for expression in recorded} == recorded


def test_the_table_holds_expressions_on_both_sides_of_the_limit():
    costs = [cost for row in ROWS for cost in row.costs if cost is not None]
    assert sum(cost > MAX_COST for cost in costs) > 100
    assert sum(1000 < cost <= MAX_COST for cost in costs) > 100


def test_the_table_holds_costs_that_differ_between_releases():
    assert any(len(set(row.costs) - {None}) > 1 for row in ROWS)


def test_a_cost_stays_at_the_top_when_it_overflows():
    assert cost_of("[device, device].all(x, x == device)") < MAX_COST
    assert cost_of(COSTLY) > MAX_COST
    nested = COSTLY
    for name in "abcdefgh":
        nested = f'device.attributes["d"].{name}.exists({name}, {nested})'
    assert cost_of(nested) == 2**64 - 1


def test_a_field_of_a_device_that_is_tested_costs_one_more_than_a_literal():
    assert cost_of("true") == 0
    assert cost_of("has(device.driver)") == 1


@given(
    st.lists(st.sampled_from([SELECTOR, "has(device.driver)", "true", 'device.driver == "a"']), min_size=1)
)
def test_clauses_cost_as_much_as_all_of_them(clauses: list[str]):
    assert cost_of(" && ".join(clauses)) == sum(map(cost_of, clauses))


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_longer_literal_costs_no_less(length: int, more: int):
    shorter, longer = (f'device.driver + "{"x" * size}" == device.driver' for size in (length, length + more))
    assert cost_of(shorter) <= cost_of(longer)
