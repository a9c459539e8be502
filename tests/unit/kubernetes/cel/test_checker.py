"""What the checker says of mistakes and of odd expressions, by release."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.cel import Environment, check_expression
from dra_infra.kubernetes.cel.environment import DEFAULT

OLDER = Environment(minor=35)


def told(text: str, environment: Environment = DEFAULT) -> list[str]:
    checked = check_expression(text, environment=environment)
    assert not checked.undecided
    return [problem.message for problem in checked.errors]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"a".contains()', "found no matching overload for 'contains' applied to 'string.()' (at 1:13)"),
        ('contains("a")', "found no matching overload for 'contains' applied to '(string)' (at 1:9)"),
        ("size(1, 2)", "found no matching overload for 'size' applied to '(int, int)' (at 1:5)"),
        ("1.size()", "found no matching overload for 'size' applied to 'int.()' (at 1:7)"),
        ('quantity("1").x', "unexpected failed resolution of 'kubernetes.Quantity' (at 1:14)"),
        ("device.driver.x", "type 'string' does not support field selection (at 1:14)"),
        ("device.nope", "undefined field 'nope' (at 1:7)"),
        ("dyn == int", "undeclared reference to 'dyn' (in container '') (at 1:1)"),
        ("kubernetes.DRADevice{nope: 1} == device", "undefined field 'nope' (at 1:26)"),
        (
            "google.protobuf.BoolValue{value: 1}",
            "expected type of field 'value' is 'bool' but provided type is 'int' (at 1:32)",
        ),
        ("int{}", "'int' is not a message type (at 1:4)"),
        ("[1].sortBy(x.y, 1) == [1]", "argument is not an identifier (at 1:13)"),
        (
            "[1].flatten() == [1]",
            "found no matching overload for 'flatten' applied to 'list(int).()' (at 1:12)",
        ),
        ('"\\ud800" == ""', "invalid unicode code point (at 1:1)"),
        ("[1].existsOne(1, true)", "undeclared reference to 'existsOne' (in container '') (at 1:14)"),
        ("as == 1", "reserved identifier: as (at 1:1)"),
        (
            "[1] + [[]] == []",
            "found no matching overload for '_+_' applied to '(list(int), list(list(dyn)))' (at 1:5)",
        ),
    ],
)
def test_a_mistake_is_told_in_the_words_of_the_server_where_the_server_sees_it(text: str, message: str):
    assert told(text) == [message]


@pytest.mark.parametrize(
    "text",
    [
        'device.?driver.orValue("") == ""',
        'device.?attributes["d"].?model.orValue("") == ""',
        '[?device.?driver] == ["a"]',
        'kubernetes.DRADevice{driver: "a"}.driver == "a"',
        "google.protobuf.Int64Value{value: 1} == 1",
        "type(ip('::1')) == net.IP",
        "type(timestamp(0)) == google.protobuf.Timestamp",
        "(true ? null : ip('::1')) == ip('::1')",
        "[[]].map(x, x)[0].size() == 0",
        "[1].exists(device, device == 1)",
        "cel.bind(device, {'driver': 1}, device.driver) == 1",
        "['a'].reverse().sortBy(x, x) == ['a']",
        "has((device.driver))",
        '{?"a": optional.of(1)}.size() == 1',
    ],
)
def test_what_the_server_takes_is_taken(text: str):
    for environment in (DEFAULT, OLDER):
        assert told(text, environment) == []


def test_a_name_with_a_dot_in_front_is_the_variable_of_a_loop_in_older_releases_only():
    assert told("[0].exists(x, x == .x)", OLDER) == []
    assert told("[0].exists(x, x == .x)") == ["undeclared reference to '.x' (in container '') (at 1:21)"]


@pytest.mark.parametrize("name", ["duration", "timestamp", "kubernetes.DRADevice"])
def test_the_name_of_a_type_that_only_the_checker_knows_is_refused_when_a_program_is_made(name: str):
    checked = check_expression(f"type(1) == {name}")
    assert checked.kind == "InternalError"
    assert checked.detail == f"program instantiation failed: reference to undefined type: {name}"


@pytest.mark.parametrize(("environment", "named"), [(OLDER, "list(A)"), (DEFAULT, "list(dyn)")])
def test_the_type_of_the_name_list_has_the_parameter_of_the_release(environment: Environment, named: str):
    (message,) = told("list.all(x, true)", environment)
    assert message.startswith(f"expression of type 'type({named})' cannot be range of a comprehension")


def test_every_mistake_is_told_with_its_place():
    assert told("1 + 'a' == 2 && device.nope == size()") == [
        "found no matching overload for '_+_' applied to '(int, string)' (at 1:3)",
        "found no matching overload for 'size' applied to '()' (at 1:36)",
        "undefined field 'nope' (at 1:23)",
    ]
