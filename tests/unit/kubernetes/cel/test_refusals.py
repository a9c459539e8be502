"""How the API server refuses: the kind, and the text behind the value."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.cel import DeviceView, Environment, check_expression, compile_expression
from dra_infra.kubernetes.cel.constants import read_double
from dra_infra.kubernetes.cel.patterns import refuse_pattern

NEW = Environment(stored=False)
ATTRIBUTES = 'device.attributes["a.b"]'
COSTLY = f"{ATTRIBUTES}.all(a, {ATTRIBUTES}.all(b, {ATTRIBUTES}.all(c, {ATTRIBUTES}.all(d, a == d))))"


@pytest.mark.parametrize(
    ("text", "kind", "detail"),
    [
        ("1", "FieldValueInvalid", "must evaluate to bool or the unknown type, not int"),
        ("timestamp(0)", "FieldValueInvalid", "not google.protobuf.Timestamp"),
        (
            "true &",
            "FieldValueInvalid",
            "compilation failed: ERROR: <input>:1:6: Syntax error: token recognition error",
        ),
        (f'"{"a" * 10_240}" == ""', "FieldValueTooLong", "may not be more than 10240 bytes"),
        (
            'int("x") == 1',
            "InternalError",
            "program instantiation failed: type conversion error from 'string' to 'int'",
        ),
        ('"a".find("(") == ""', "InternalError", "error parsing regexp: missing closing ): `(`"),
        ("[type(1)].exists(t, t == int)", "InternalError", "reference to undefined type: t"),
        (f"{ATTRIBUTES}.x[null]", "InternalError", "invalid qualifier type: types.Null"),
        (COSTLY, "FieldValueForbidden", "too complex, exceeds cost limit"),
        (f"{ATTRIBUTES}.x && 3", "FieldValueInvalid", "expected type 'bool' but found 'int'"),
        (
            "q.sign() == 1 && sign(1)",
            "FieldValueInvalid",
            "found no matching overload for 'sign' applied to '(int)'",
        ),
        (
            '"%d".format(["a"]) == ""',
            "FieldValueInvalid",
            "decimal clause can only be used on integers, was given string",
        ),
        ("1e999 > 1.0", "FieldValueInvalid", "invalid double literal"),
        ("[1].flatten() == [1]", "FieldValueInvalid", "'flatten' applied to 'list(int).()'"),
        ("é == 1", "FieldValueInvalid", "Syntax error"),
        ("1.optMap(.x, 2)", "FieldValueInvalid", "<input>:1:9: undeclared reference to '.x'"),
        ("a.? == 1", "FieldValueInvalid", "ERROR: <input>:1:5: unsupported ident kind"),
        (
            "a.true",
            "FieldValueInvalid",
            "compilation failed: ERROR: <input>:1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER",
        ),
    ],
)
def test_every_kind_of_refusal_has_the_text_of_the_server(text: str, kind: str, detail: str):
    checked = check_expression(text, environment=NEW)
    assert checked.kind == kind
    assert detail in checked.detail
    assert checked.errors


@pytest.mark.parametrize(
    "text",
    [
        f"[?{ATTRIBUTES}.x].size() == 1",
        # Maps of constants are made ahead, and Go hashes no bytes; seen on all minors.
        '{b"a": 1}.size() == 1',
        '{bytes("a"): {}}.size() == 1',
        'false && [{dyn(b"a"): [1]}].size() == 1',
        '1 in dyn({b"a": 1})',
    ],
)
def test_what_makes_the_server_itself_fail_is_an_internal_error(text: str):
    checked = check_expression(text, environment=NEW)
    assert (checked.kind, checked.detail, len(checked.errors)) == ("InternalError", "", 1)


@pytest.mark.parametrize("text", ['{b"a": 1 + 1}.size() == 1', '{b"a": device.driver}.size() == 1'])
def test_bytes_as_keys_of_a_map_that_is_made_for_each_device_are_taken(text: str):
    assert check_expression(text, environment=NEW).errors == ()


@pytest.mark.parametrize(
    "field", ["device.driver", ".device.driver", "(.device.driver)", "( device ) . driver"]
)
def test_a_test_of_a_field_of_the_device_is_a_test_however_it_is_written(field: str):
    checked = check_expression(f"has({field})", environment=NEW)
    assert (checked.errors, checked.return_type, checked.cost) == ((), "bool", 1)


DIGITS = "9" * 5000


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (f'duration("{DIGITS}h") == duration("1h")', "invalid duration argument"),
        (f'"%.{DIGITS}f".format([1.0]) == ""', f'strconv.Atoi: parsing "{DIGITS}": value out of range'),
        (f'int("{DIGITS}") == 1', "type conversion error from 'string' to 'int'"),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused_as_by_the_server(text: str, detail: str):
    assert detail in check_expression(text, environment=NEW).detail


def test_zeros_in_front_of_a_number_do_not_count():
    zeros = "0" * 5000
    text = f'duration("{zeros}1h") == duration("1h") && "%.{zeros}1f".format([1.0]) == "1.0"'
    assert str(compile_expression(text).evaluate(DeviceView("d", {}, {}))) == "Match()"


def test_an_offset_of_thousands_of_digits_is_out_of_range():
    text = f'timestamp("2020-01-01T00:00:00Z").getHours("+{DIGITS}:00") == 1'
    assert "value out of range" in str(compile_expression(text).evaluate(DeviceView("d", {}, {})))


def test_the_scheduler_does_not_look_at_the_estimate():
    checked = check_expression(COSTLY)
    assert (checked.kind, checked.errors) == ("", ())
    assert checked.cost is not None
    assert checked.cost > 1_000_000


def test_a_mark_is_as_wide_as_what_stands_above_it():
    detail = check_expression('"é\t" == 1').detail
    assert detail.endswith('\n | "é " == 1\n | .\uff0e...^')


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("[].map(x, -x)[0] == 1", "found no matching overload for '_==_' applied to '(double, int)'"),
        ("[][0].exists(x, true)", ""),
        ("(true ? null : ip('::1')) == ip('::1')", ""),
        ("[1].all(device, true)", ""),
    ],
)
def test_what_the_order_of_overloads_decides_is_decided(text: str, detail: str):
    checked = check_expression(text)
    assert not checked.undecided
    assert detail in checked.detail
    assert bool(checked.errors) is bool(detail)


def test_a_long_chain_of_tests_is_checked_in_no_time():
    reads = " && ".join(
        f"has({ATTRIBUTES}.x{number}) && {ATTRIBUTES}.x{number} == 1" for number in range(100)
    )
    checked = check_expression(reads)
    assert len(checked.reads) == 100
    assert all(read.guarded for read in checked.reads)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("1.", 1.0), ("+.5", 0.5), ("1_0", 10.0), ("0x1p4", 16.0), ("0x_1p0", 1.0), ("inf", float("inf"))),
        *(
            ("", None),
            ("-nan", None),
            ("1e400", None),
            ("_1", None),
            ("1 ", None),
            ("0x1", None),
            (".e1", None),
        ),
    ],
)
def test_numbers_are_read_as_go_reads_them(text: str, value: float | None):
    assert read_double(text) == value


@pytest.mark.parametrize(
    ("text", "right"),
    [
        *(("0", True), ("-1h30m", True), ("1.5s", True), (".5s", True), ("1µs", True), ("9223372036s", True)),
        *(("", False), ("1", False), ("1d", False), (".s", False), ("inf", False), ("9223372037s", False)),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, right: bool):
    assert (not check_expression(f"duration('{text}') == duration('{text}')").errors) is right


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("2024-02-29T01:00:00Z", True),
        ("2024-02-29T1:00:00,5+24:00", True),
        ("2024-02-29T1:00:00+24:60", True),
        ("0000-12-31T23:59:59-01:00", True),
        ("2023-02-29T01:00:00Z", False),
        ("2024-02-29 01:00:00Z", False),
        ("0001-01-01T00:00:00+01:00", False),
        ("9999-12-31T23:59:59-01:00", False),
    ],
)
def test_times_are_read_as_go_reads_them(text: str, right: bool):
    assert (not check_expression(f"timestamp('{text}') == timestamp('{text}')").errors) is right


@pytest.mark.parametrize(
    "expression",
    [
        "int(duration('1.5s')) == 1500000000",
        "string(duration('1µs')) == '0.000001s'",
        "string(timestamp('2024-01-01T00:00:00,5Z')) != ''",
        "int('00000000000000000000000000012') == 12",
    ],
)
def test_constants_that_the_server_computes_are_accepted(expression: str):
    assert not check_expression(expression).errors


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a+b", ""),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("\\C", "invalid escape sequence: `\\C`"),
        ("\\", "trailing backslash at end of expression: ``"),
    ],
)
def test_patterns_are_refused_in_the_words_of_go(pattern: str, reason: str):
    assert refuse_pattern(pattern) == (f"error parsing regexp: {reason}" if reason else "")


@pytest.mark.parametrize(
    ("expression", "quoted"),
    [
        ('bool("\\u00e9\\n\n" + "")', '"\\u00e9\\n\n'),
        ("isSemver('\\u00e\t')", "'\\u00e\t"),
        ('isQuantity("\\u00e9\\n)', '"\\u00e9\\n)'),
    ],
)
def test_what_is_no_token_is_quoted_as_it_is_written(expression: str, quoted: str):
    assert f"token recognition error at: '{quoted}'\n" in check_expression(expression).detail


@pytest.mark.parametrize(("text", "count"), [("true ?\0 true :\0 false", 2), ("1\0", 1), ('"a\\0\0"', 3)])
def test_a_nul_ends_no_report(text: str, count: int):
    errors = check_expression(text).errors
    assert len(errors) == count
    assert any("\0" in each.message for each in errors)


def test_the_type_of_optionals_is_named_with_what_it_holds_since_the_newest_minor():
    told = {
        minor: str(check_expression("string(optional_type)", environment=Environment(minor)).errors)
        for minor in (36, 37)
    }
    assert "(type(optional_type(dyn)))" in told[37]
    assert "(type(optional_type))" in told[36]


def test_what_is_in_a_wrapper_is_what_a_clause_takes():
    assert not check_expression('"%d".format([google.protobuf.Int32Value{value: 1}]) == "1"').errors
    wrong = check_expression('"%d".format([google.protobuf.StringValue{value: "a"}]) == "1"')
    assert "decimal clause can only be used on integers, was given string" in wrong.detail


def test_a_wrapped_number_has_the_size_of_one():
    expression = 'device.attributes["a.b"].x == google.protobuf.Int64Value{value: 1}'
    assert check_expression(expression).cost == 45


def test_every_key_and_value_of_another_type_is_told_but_one_element():
    detail = check_expression("{true: 1, 2: 'a', 5u: 3.0}.size() == [1, 'a', 2.0].size()").detail
    told = [line.rpartition("> ")[2].split(": ", 1)[-1] for line in detail.split("\n") if "expected" in line]
    assert [line.partition("expected")[2] for line in told] == [
        " type 'bool' but found 'int'",
        " type 'int' but found 'string'",
        " type 'bool' but found 'uint'",
        " type 'int' but found 'double'",
        " type 'int' but found 'string'",
    ]
