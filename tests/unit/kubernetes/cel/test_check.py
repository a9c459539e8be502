from __future__ import annotations

import pytest

from dra_infra.codes import CODES
from dra_infra.kubernetes.cel import Environment, check_expression
from dra_infra.kubernetes.cel.check import Checked, find_tree
from dra_infra.kubernetes.cel.environment import DEFAULT
from dra_infra.kubernetes.cel.reads import Read

A = 'device.attributes["a.b"]'
C = 'device.capacity["a.b"]'


@pytest.mark.parametrize(
    ("expression", "code", "message", "hint"),
    [
        ("device.driver ==", "cel-syntax", "mismatched input '<EOF>'", ""),
        ("", "cel-syntax", "(at 1:0)", ""),
        ('device.driver = "x"', "cel-syntax", "token recognition error at: '= '", "write == to compare"),
        ('device.driver == "x" and true', "cel-syntax", "mismatched input 'and'", "write && for and"),
        ('not device.driver == "x"', "cel-syntax", "mismatched input 'device'", "! for not"),
        ('device.driver is "x"', "cel-syntax", "mismatched input 'is'", "write == to compare"),
        ('device.driver == "x" & true', "cel-syntax", "recognition error at: '& '", "write && for and"),
        ("device.allowMultipleAllocations == True", "cel-type", "reference to 'True'", "write true or false"),
        ("device.driver != None", "cel-type", "reference to 'None'", "write has(...)"),
        ('device.driver.startswith("x")', "cel-type", "reference to 'startswith'", "write startsWith(...)"),
        (f"{C}.memory >= 40", "cel-type", "(kubernetes.Quantity, int)", '.compareTo(quantity("40Gi")) >= 0'),
        (
            f'{C}.memory == "40Gi"',
            "cel-type",
            "(kubernetes.Quantity, string)",
            '.compareTo(quantity("40Gi")) == 0',
        ),
        (
            f'{C}.memory.compareTo("40Gi") >= 0',
            "cel-type",
            "kubernetes.Quantity.(string)",
            'quantity("40Gi")',
        ),
        ("device.driver == 1", "cel-type", "'_==_' applied to '(string, int)'", "values of the same type"),
        ("device.drivr == 'x'", "cel-type", "undefined field 'drivr'", "attributes, capacity, driver"),
        ("gpu == 'x'", "cel-type", "undeclared reference to 'gpu'", "only knows the variable device"),
        (f"{A}.x.contains(1)", "cel-type", "'dyn.(int)'", ""),
        (f'{A}.x.matches("(")', "cel-type", "invalid matches argument", ""),
        ('["a", 1].size() == 2', "cel-type", "expected type 'string' but found 'int'", ""),
        ("device.driver", "cel-type", "must evaluate to bool or the unknown type, not string", "compare it"),
        (C + ".memory", "cel-type", "not kubernetes.Quantity", "compare it"),
        ('int("x") == 1', "cel-type", "program instantiation failed: type conversion error", ""),
        ("\ud800", "cel-syntax", "half of a character pair", "whole characters"),
    ],
)
def test_what_is_wrong_is_said_with_a_hint(expression: str, code: str, message: str, hint: str):
    problems = check_expression(expression, path="select").problems
    assert {problem.code for problem in problems} == {code}
    assert {problem.path for problem in problems} == {"select"}
    assert any(message in problem.message for problem in problems)
    assert any(hint in problem.hint for problem in problems)
    assert code in CODES


def test_all_errors_of_one_expression_are_reported():
    problems = check_expression("a == 1 && b == 2").problems
    assert [problem.message for problem in problems] == [
        "undeclared reference to 'a' (in container '') (at 1:1)",
        "undeclared reference to 'b' (in container '') (at 1:11)",
    ]


def test_the_report_is_that_of_the_api_server():
    assert check_expression("true &&\n device.driver == 1").detail == (
        "compilation failed: ERROR: <input>:2:16: found no matching overload for '_==_' applied to '(string, int)'\n"
        " |  device.driver == 1\n"
        " | ...............^"
    )


def test_an_expression_of_the_longest_length_passes_and_one_byte_more_does_not():
    padding = 10_240 - len('device.driver != ""')
    longest = f'device.driver != "{"x" * padding}"'
    assert not check_expression(longest).problems
    (problem,) = check_expression(f"{longest} ").problems
    assert problem.code == "cel-too-long"


def test_the_length_counts_bytes():
    (problem,) = check_expression(f'device.driver != "{"é" * 5_120}"').problems
    assert problem.code == "cel-too-long"


@pytest.mark.parametrize(
    "expression",
    [
        '"%d".format([1]) == "1"',
        "[].exists(x, x > 1)",
        "[1].exists(device, device == 1)",
        'double("0x1p4") == 1.0',
    ],
)
def test_what_the_engine_cannot_judge_is_a_warning(expression: str):
    checked = check_expression(expression)
    assert [(problem.code, problem.severity) for problem in checked.problems] in (
        [("cel-not-decided-here", "warning")],
        [],
    )
    assert checked.undecided or not checked.problems


@pytest.mark.parametrize("macro", ["optMap(x, x)", "optFlatMap(x, optional.of(x))"])
def test_macros_that_double_what_is_before_them_end_undecided(macro: str):
    """Each copies its target, so that 200 of them are 2**200 nodes."""
    short, long = (f"optional.of(1){f'.{macro}' * number}.hasValue()" for number in (6, 200))
    assert (check_expression(short).undecided, check_expression(short).return_type) == ("", "bool")
    assert [each.code for each in check_expression(long).problems] == ["cel-not-decided-here"]


def test_an_expression_of_a_policy_may_be_as_long_as_it_is():
    """The bound of 10 KiB is that of selectors."""
    text = f"size([{','.join(['1'] * 17_000)}]) == 17000"
    assert not isinstance(find_tree(text, DEFAULT), Checked)


def test_an_expression_may_end_in_an_attribute_that_is_true_or_false():
    checked = check_expression(f"{A}.flag")
    assert checked.return_type == "dyn"
    assert [problem.code for problem in checked.problems] == ["cel-unguarded-read"]


def test_a_read_without_a_guard_is_a_warning_that_shows_the_guard():
    (problem,) = check_expression(f"{A}.x == 1", path="select").problems
    assert (problem.code, problem.severity, problem.path) == ("cel-unguarded-read", "warning", "select")
    assert problem.hint == f"put has({A}.x) && in front of the test that reads it"


READS = [
    (f"has({A}.x) && {A}.x == 1", True),
    (f"{A}.x == 1 && has({A}.x)", True),
    (f'"x" in {A} && {A}["x"] == 1', True),
    (f"!has({A}.x) || {A}.x == 1", True),
    (f"has({A}.x) ? {A}.x == 1 : false", True),
    (f"!has({A}.x) ? false : {A}.x == 1", True),
    (f"{A}.?x.orValue(1) == 1", True),
    (f'{A}[?"x"].orValue(1) == 1', True),
    (f"cel.bind(d, {A}, has(d.x) && d.x == 1)", True),
    (f"has({A}.x) && ({A}.x == 1 || {A}.x == 2)", True),
    (f"has({A}.x) && [1].exists(n, {A}.x == n)", True),
    (f"!(!has({A}.x) || {A}.x == 1)", True),
    ('has(device.attributes["a.b"].x) && device.attributes.`a.b`.x == 1', True),
    ('device.?attributes["a.b"].x.orValue(1) == 1', True),
    ('device.?attributes["a.b"].?x.orValue(1) == 1', True),
    ("device.?attributes.?`a.b`.?x.orValue(1) == 1", True),
    ('device.attributes[?"a.b"].x.orValue(1) == 1', True),
    ('cel.bind(d, device, d.?attributes["a.b"].x.hasValue())', True),
    ('cel.bind(all, device.attributes, all[?"a.b"].x.hasValue())', True),
    ('has(device.?attributes["a.b"].x) && device.attributes["a.b"].x == 1', True),
    ('cel.bind(d, device, has(d.attributes["a.b"].x) && d.attributes["a.b"].x == 1)', True),
    ('device.?attributes.value()["a.b"].x == 1', False),
    ('device.attributes[?"a.b"].orValue({}).x == 1', False),
    ('cel.bind(d, device, d.attributes["a.b"].x == 1)', False),
    (f"{A}.x == 1", False),
    (f"has({A}.y) && {A}.x == 1", False),
    (f"has({A}.x) || {A}.x == 1", False),
    (f"!has({A}.x) && {A}.x == 1", False),
    (f"has({C}.x) && {A}.x == 1", False),
    (f'has(device.attributes["c.d"].x) && {A}.x == 1', False),
    (f"(has({A}.x) && {A}.x == 1) || {A}.x == 2", False),
    (f"has({A}.x) ? true : {A}.x == 1", False),
    (f"cel.bind(d, {A}, d.x == 1)", False),
    ('cel.bind(all, device.attributes, has(all["a.b"].x) && all["a.b"].x == 1)', False),
    (f'"a.b" in device.attributes && {A}.x == 1', False),
    (f'has(device.attributes["a.b"]) && {A}.x == 1'.replace('["a.b"])', ".ab)"), False),
]


@pytest.mark.parametrize(("expression", "guarded"), READS, ids=[expression for expression, _ in READS])
def test_reads_are_found_with_their_guards(expression: str, guarded: bool):
    found = [read for read in check_expression(expression).reads if read.kind == "attribute"]
    assert found == [Read("attribute", "a.b", "x", guarded)]


def test_capacity_is_read_like_attributes():
    assert check_expression(f'{C}.memory.compareTo(quantity("1")) > 0').reads == (
        Read("capacity", "a.b", "memory", guarded=False),
    )


def test_a_test_alone_is_no_read():
    assert check_expression(f'has({A}.x) || "y" in {A}').reads == ()


@pytest.mark.parametrize(
    "function",
    [
        '"a".find("b") == ""',
        'url("https://a/").getPort() == ""',
        'ip("::1").isLoopback()',
        'cidr("10.0.0.0/8").containsIP("10.1.1.1")',
        'string(ip("::1")) == "::1"',
        'format.dns1123Label().validate("x").hasValue()',
        'format.named("uuid").hasValue()',
        "[1, 2].sum() == 3",
        '["a"].indexOf("a") == 0',
        'quantity("1").add(2).isInteger()',
        "[3, 1].sortBy(x, -x)[0] == 3",
        "1 < 1.5 && 1u < 2",
        "lists.range(3).size() == 3",
        "sets.contains([1], [1])",
    ],
)
def test_every_library_of_the_server_is_known_to_the_checker(function: str):
    assert not check_expression(function).problems


@pytest.mark.parametrize(
    "function", ["math.greatest(1, 2) == 2", "authorizer.allowed()", 'base64.encode(b"x") == ""']
)
def test_libraries_that_the_server_lacks_are_refused(function: str):
    assert {problem.code for problem in check_expression(function).problems} == {"cel-type"}


def test_the_hint_of_a_field_that_a_gate_brings_names_the_gate():
    (problem,) = check_expression(
        "device.allowMultipleAllocations",
        environment=Environment(minor=35, stored=False, consumable_capacity=False),
    ).problems
    assert problem.code == "cel-type"
    assert "DRAConsumableCapacity" in problem.hint
