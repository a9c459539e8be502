"""What the interpreter once answered otherwise than Kubernetes, and what it gives up on in bounded time.

The values are the answers of the judge of 1.37; `tests/e2e/judges/test_cel_values.py` asks it again.
"""

from __future__ import annotations

import time
from typing import Any, Final

import pytest

from dra_infra.kubernetes.cel import DeviceView, Environment, compile_expression
from dra_infra.kubernetes.cel.evaluate import MATCH, Failed, derive_attribute

VIEW = DeviceView("a.b")


def hidden(text: str) -> str:
    """A literal that is known only at run time, for the others are converted when the program is made."""
    return f"(device.driver == '-' ? '' : {text})"


# What is printed of a zero with a sign, and with more digits than a byte counts (golang.org/x/text/internal/number).
FORMATTED: Final[dict[str, Any]] = {
    "'%f'.format([-0.0])": {"string": "0.000000"},
    "'%e'.format([-0.0])": {"string": "0.000000\u00d710⁰⁰"},
    "'%f'.format([-0.0000001])": {"string": "-0.000000"},
    "'%s'.format([[-0.0]])": {"string": "[-0.000000]"},
    "'%.255f'.format([1.0]).size()": {"int": 257},
    "'%.256f'.format([1.5])": {"string": "1.5"},
    "'%.258f'.format([1.0])": {"string": "1.00"},
    "'%.999f'.format([1.0]).size()": {"int": 233},
    "'%.256f'.format([1e-300])": {"string": "0"},
    "'%.3f'.format([1234567.891])": {"string": "1,234,567.891"},
}
# Local times beyond the years that Python's datetime knows (common/types/timestamp.go).
YEARS: Final[dict[str, Any]] = {
    "timestamp('0001-01-01T00:00:00Z').getFullYear('-01:00')": {"int": 0},
    "timestamp('0001-01-01T00:00:00Z').getFullYear('America/New_York')": {"int": 0},
    "timestamp('0001-01-01T00:00:00Z').getDayOfWeek('-01:00')": {"int": 0},
    "timestamp('9999-12-31T23:59:59Z').getFullYear('+01:00')": {"int": 10000},
    "timestamp('9999-12-31T23:59:59Z').getFullYear('Asia/Tokyo')": {"int": 10000},
    "timestamp('9999-12-31T23:59:59Z').getDayOfYear('+01:00')": {"int": 0},
    "timestamp('9999-12-31T23:59:59.9Z').getMilliseconds('+01:00')": {"int": 900},
    f"string(timestamp({hidden(repr('0000-12-31T23:59:59-01:00'))}))": {
        "string": "0000-12-31T23:59:59-01:00"
    },
}
SECONDS = 60
"""Of processor time, on a busy machine too: without the bound these take hours."""

# Names that time.LoadLocation of Go refuses before it looks for them.
ZONES: Final[dict[str, Any]] = {
    "timestamp(0).getHours('../etc/passwd')": "time: invalid location name",
    "timestamp(0).getHours('a..b')": "time: invalid location name",
    "timestamp(0).getHours('/etc/localtime')": "time: invalid location name",
    r"timestamp(0).getHours('\\x')": "time: invalid location name",
    "timestamp(0).getHours('No/Where')": "unknown time zone No/Where",
}
# Where matches start and end, groups and quotations that are not closed (regexp of Go).
MATCHES: Final[dict[str, Any]] = {
    r"'a'.matches('\\Qa')": {"bool": True},
    r"'xa.b'.find('\\Qa.b')": {"string": "a.b"},
    "'baaab'.findAll('a*')": {"strings": ["", "aaa", ""]},
    "'abc'.findAll('b|')": {"strings": ["", "b", ""]},
    "'é☃'.findAll('')": {"strings": ["", "", ""]},
    "'abab'.findAll('^ab')": {"strings": ["ab"]},
    r"'ab ab'.findAll('\\bab')": {"strings": ["ab", "ab"]},
    "'abab'.findAll('(a)(b)', 1)": {"strings": ["ab"]},
    "'abab'.findAll('ab', 0).size()": {"int": 0},
    "'abab'.findAll('ab', -1).size()": {"int": 2},
    "'\\ue000a\\ue000'.findAll('a')": {"strings": ["a"]},
    r"'\\0a'.findAll('[^a]')": {"strings": ["\\", "0"]},
    "lists.range(5000).map(x, 'ab').join().findAll('b').size()": {"int": 5000},
}
# Numbers of other types that equal a constant, in a list of constants that is a set upstream (decorators.go).
NUMBERS: Final[dict[str, Any]] = {
    "dyn(1u) in [1]": {"bool": True},
    "dyn(1) in [1.0]": {"bool": True},
    "dyn(9007199254740993.0) in [9007199254740993]": {"bool": True},
    "dyn(9223372036854775808.0) in [9223372036854775807]": {"bool": True},
    "dyn(18446744073709551615u) in [18446744073709551616.0]": {"bool": False},
    "dyn(-0.0) in [0]": {"bool": True},
}
# Maps of Go tell quantities apart that are equal, for each holds a pointer of its own; versions are ordered without their builds.
QUANTITIES: Final[dict[str, Any]] = {
    "{quantity('1'): 1, quantity('1'): 2}.size()": {"int": 2},
    "cel.bind(q, quantity('1'), {q: 1, q: 2}.size())": {"int": 1},
    "{quantity('1').add(1): 1, quantity('1').add(1): 2}.size()": {"int": 2},
    "quantity('1Ki').compareTo(quantity('1024'))": {"int": 0},
    "quantity('1e3').compareTo(quantity('999999m'))": {"int": 1},
    "quantity('-1n').compareTo(quantity('0'))": {"int": -1},
    "semver('1.2.3-a').compareTo(semver('1.2.3'))": {"int": -1},
    "semver('1.2.3+b').compareTo(semver('1.2.3+a'))": {"int": 0},
}
# Sorting by keys of each type, and lists that were once too long (ext/lists.go).
SORTED: Final[dict[str, Any]] = {
    "[3, 1, 2].sortBy(x, duration(string(x) + 's'))": {"ints": [1, 2, 3]},
    "[3, 1, 2].sortBy(x, timestamp(-x))": {"ints": [3, 2, 1]},
    "[3, 1, 2].sortBy(x, x == 1)": {"ints": [3, 2, 1]},
    "['b', 'B', '😀', '\\uffff'].sort()": {"strings": ["B", "b", "\uffff", "😀"]},
    "[0.0 / 0.0].sort().size()": {"int": 1},
    "lists.range(700).distinct().size()": {"int": 700},
    "lists.range(2000).map(x, x).size()": {"int": 2000},
}
ANSWERS: Final = {**FORMATTED, **YEARS, **ZONES, **MATCHES, **NUMBERS, **QUANTITIES, **SORTED}


@pytest.mark.parametrize("expression", ANSWERS)
def test_an_expression_has_the_servers_value(expression: str):
    found = derive_attribute(expression, VIEW)
    assert (found.text if isinstance(found, Failed) else found) == ANSWERS[expression]
    assert not isinstance(found, Failed) or found.decided


@pytest.mark.parametrize(
    "name", ["Europe", "Europe/", "./Europe/Berlin", "Europe//Berlin", "zone.tab", "Local"]
)
def test_a_time_zone_that_depends_on_the_servers_files_is_withheld(name: str):
    found = derive_attribute(f"timestamp(0).getHours('{name}')", VIEW)
    assert isinstance(found, Failed)
    assert not found.decided


def test_nan_among_many_keys_is_withheld_wherever_it_stands():
    found = derive_attribute("lists.range(300).sortBy(x, x == 250 ? 0.0 / 0.0 : double(x))[0]", VIEW)
    assert isinstance(found, Failed)
    assert not found.decided


def nested(inner: str, outer: str, depth: int, last: str) -> str:
    """A value that holds the one before twice, time and again."""
    binds = "".join(
        f"cel.bind(a{n + 1}, {outer.replace('#', f'a{n}' if n else inner)}, " for n in range(depth)
    )
    return binds + last.replace("#", f"a{depth}") + ")" * depth


TEXT: Final = "lists.range(90000).map(x, 'abcdefghi').join()"


@pytest.mark.parametrize(
    "expression",
    [
        nested("[1]", "[#, #]", 28, "# == #"),
        nested("[dyn(1)]", "[dyn(#), dyn(#)]", 28, "dyn(#) in [dyn(#)]"),
        nested("{1: dyn(1)}", "{1: dyn(#), 2: dyn(#)}", 28, "# == #"),
        nested("[1]", "# + #", 24, "#.size() > 0"),
        nested("'a'", "# + #", 24, "#.size() > 0"),
        f"cel.bind(r, {TEXT}, lists.range(9000).all(x, !isURL(r)))",
        "lists.range(9000).map(x, 'a').join('b').replace('b', lists.range(9000).map(x, 'a').join()) == ''",
    ],
)
def test_an_expression_without_bounds_is_given_up_in_bounded_time(expression: str):
    start = time.process_time()
    verdict = compile_expression(expression).evaluate(VIEW)
    assert isinstance(verdict, Failed)
    assert not verdict.decided
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))",
        "lists.range(5000).distinct().size() > 0",
        "cel.bind(r, lists.range(90000), sets.equivalent(r, r))",
        "cel.bind(r, lists.range(90000), r.all(x, r.includes(-1) || true))",
        "cel.bind(r, lists.range(90000), r.all(x, (-1 in r) || true))",
        "cel.bind(r, lists.range(90000), r.all(x, r.sum() > 0))",
        "cel.bind(r, lists.range(90000), r.all(x, r == r))",
        f"cel.bind(r, {TEXT}, lists.range(9000).all(x, !r.contains('xyz')))",
        f"cel.bind(r, {TEXT}, lists.range(9000).all(x, !r.matches('(a+)+x')))",
        "lists.range(999999).all(x, quantity('1e1000').add(quantity('1n')).isGreaterThan(quantity('0')))",
        "lists.range(999999).map(x, '%.1000f'.format([1.0])).size() > 0",
        f"lists.range(100).all(x, !'{'a' * 100}'.matches('{'b' * 4000}'))",
        "[[1]].flatten(1000001) == [1]",
        "lists.range(500000).includes(-1)",
    ],
)
def test_an_evaluation_above_the_servers_limit_ends_as_there(expression: str):
    start = time.process_time()
    verdict = compile_expression(expression).evaluate(VIEW)
    assert verdict == Failed("operation cancelled: actual cost limit exceeded")
    assert time.process_time() - start < SECONDS


@pytest.mark.parametrize(
    "expression",
    [
        f"lists.range(1000).all(x, isURL('http://{'a' * 3000}'))",
        "lists.range(60).all(x, lists.range(60).all(y, lists.range(50).all(z, true)))",
        "lists.range(9000).map(x, 'aaaaaaaaa').map(x, x.findAll('a')).map(x, [x, x]).flatten().size() > 0",
    ],
)
def test_an_evaluation_below_the_servers_limit_is_decided_however_long_it_takes(expression: str):
    assert compile_expression(expression).evaluate(VIEW) == MATCH


def test_what_is_no_optional_value_is_its_own_value_before_1_37():
    expression = "dyn('a').orValue('b') == 'a'"
    assert compile_expression(expression, Environment(36)).evaluate(VIEW) == MATCH
    assert compile_expression(expression, Environment(37)).evaluate(VIEW) == Failed("no such overload")


def test_the_null_value_of_protobuf_is_the_number_zero():
    assert compile_expression("[google.protobuf.NullValue.NULL_VALUE][0] == 0").evaluate(VIEW) == MATCH


@pytest.mark.parametrize(
    "expression",
    [
        "{1: 1, 2: 2, 3: 3, 4: 4, 5: 5}.map(k, k)[0] == 3",
        "{1: 1, 2: 2, 3: 3, 4: 4, 5: 5}.map(k, k)[1] == 4",
        "{1: 1, 2: 2}.map(k, k) == {1: 1, 2: 2}.map(k, k)",
    ],
)
def test_an_answer_that_depends_on_the_order_of_a_map_is_not_decided(expression: str):
    told = "a result that depends on the order of a map"
    assert compile_expression(expression).evaluate(VIEW) == Failed(told, decided=False)


def test_an_answer_that_no_order_of_a_map_changes_is_decided():
    assert compile_expression("{1: 1, 2: 2, 3: 3}.map(k, k).sort() == [1, 2, 3]").evaluate(VIEW) == MATCH


def test_a_quoted_escape_is_no_escape_in_a_pattern():
    assert compile_expression(r'"\\C".matches("\\Q\\C")').evaluate(VIEW) == MATCH
    assert derive_attribute(r'"\\C".matches("\\Q\\C\\E")', VIEW) == {"bool": True}


def test_a_test_of_an_optional_value_in_a_branch_is_optional_as_upstream():
    told = "CEL result of type optional_type could not be converted to bool: unsupported type conversion from 'int' to bool"
    found = compile_expression('true ? has(optional.of({"a": 1}).a) : false').evaluate(VIEW)
    assert found == Failed(told)
