"""What evaluations cost: the numbers are those of Kubernetes' packages of 1.37 and of 1.34, which have other cel-go."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api import DeviceAttribute
from dra_infra.kubernetes.cel import DeviceView, Environment, check_expression, compile_expression
from dra_infra.kubernetes.cel.declarations import declarations
from dra_infra.kubernetes.cel.evaluate import Failed, Program
from dra_infra.kubernetes.cel.interpreter.call_costs import _NEW, _OLD, _STANDARD, _TRACKERS
from dra_infra.kubernetes.cel.interpreter.cheapness import MAX_SIZE, is_cheap
from tests.support.parity.recorded_costs import read_rows

VIEW = DeviceView("d")
COSTS = {
    'device.driver == "d"': (3, 3),
    "has(device.driver)": (1, 1),
    'has(device.attributes["d"].a) ? device.attributes["d"].a == 1 : false': (3, 3),
    "optional.of([1]).optMap(x, x.size()).orValue(2) == 1": (8, 8),
    "lists.range(10).map(x, x + 1).filter(x, x in [1, 2]).size() == 2": (201, 201),
    '"aaaaaaaaaaaaaaa".startsWith("a")': (1, 2),
    'matches("aaaaaaaaaaaaaaa", "b{1,20}")': (4, 1),
    "(true ? [1] : [2])[0] == 1": (2, 2),
    '"a-b".split("-").join("+") == "a+b"': (3, 3),
    'format.uri().validate("http://a").hasValue()': (278, 278),
    "1 / 0 == 1 || true": (2, 2),
    "[[1, 2], [3]].flatten() == [1, 2, 3]": (14, 14),
    "dyn([3, 1]).sort() == [1, 3]": (2, 2),
    'cel.bind(x, ["a", "b"], x.all(y, y != "c"))': (12, 12),
    'ip("1.2.3.4") != ip("::1")': (3, 3),
    'string(3.0 in []) == "a"': (1, 1),
    '(1 / 0 in []) || device.driver == "d"': (3, 3),
    "[[1]].flatten(-1) == [1]": (13, 11),
    "[[1], [2]].flatten(-4) == [1] || true": (14, 4),
    "[[1], [2], [3]].flatten(-4) == [1]": (15, 18446744073709551615),
    "[[1], [2]].flatten(6000000000000000000) == [1]": (12000000000000000011, 12000000000000000011),
    "[[1], [2]].flatten(9223372036854775807) == [1]": (9223372036854775819, 9223372036854775819),
}


@pytest.mark.parametrize(("expression", "costs"), COSTS.items())
def test_an_evaluation_costs_what_it_costs_the_server(expression: str, costs: tuple[int, int]):
    found = tuple(compile_expression(expression, Environment(minor)).cost(VIEW) for minor in (37, 34))
    assert found == costs


def test_an_evaluation_that_is_given_up_has_no_cost():
    assert Program("lists.range(2000000).size() > 0", Environment(34)).cost(VIEW) is not None
    assert Program("'a'.matches('a\\x00')").cost(VIEW) is None


@pytest.mark.parametrize("value", ["a" * MAX_SIZE, "a" * (MAX_SIZE + 1)])
def test_the_cost_is_counted_on_a_device_larger_than_the_api_allows(value: str):
    view = DeviceView("d", {"a": DeviceAttribute(string=value)})
    assert view.is_small == (len(value) <= MAX_SIZE)


def test_a_device_that_makes_a_cheap_expression_expensive_ends_it():
    expression = 'device.attributes["d"].a.matches(device.attributes["d"].a)'
    checked = check_expression(expression)
    assert checked.tree is not None
    assert is_cheap(checked.tree)
    view = DeviceView("d", {"a": DeviceAttribute(string="a" * 9000)})
    assert compile_expression(expression).evaluate(view) == Failed(
        "operation cancelled: actual cost limit exceeded"
    )


def test_no_cheap_expression_costs_as_much_as_its_bound():
    cheap = 0
    for row in read_rows():
        checked = check_expression(row.expression)
        if checked.tree is None or checked.errors or not is_cheap(checked.tree):
            continue
        cost = Program(row.expression).cost(VIEW)
        cheap += 1
        assert cost is None or cost < 1_000_000, row.expression
    assert cheap > 200


@pytest.mark.parametrize("minor", [34, 37])
def test_every_call_whose_cost_has_an_overload_of_its_own_is_declared_under_that_name(minor: int):
    declared = {
        overload.id
        for overloads in declarations(Environment(minor=minor)).functions.values()
        for overload in overloads
    }
    assert {*_TRACKERS, *_STANDARD, *(_NEW if minor == 37 else _OLD)} <= declared
