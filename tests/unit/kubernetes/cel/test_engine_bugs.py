"""What another engine of CEL does otherwise than the server, in checking and in evaluating; each was wrong here once."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from dra_infra.errors import InvalidSpecError
from dra_infra.kubernetes.api import DeviceAttribute
from dra_infra.kubernetes.cel import DeviceView, check_expression, compile_expression, find_dependencies
from dra_infra.kubernetes.cel.evaluate import Failed, Match, NoMatch

A = 'device.attributes["a.b"]'
VIEW = DeviceView(
    "a.b",
    {
        "text": DeviceAttribute(string="x"),
        "flag": DeviceAttribute(bool=True),
        "version": DeviceAttribute(version="1.0.0"),
        "list": DeviceAttribute(ints=[1, 2, 3]),
    },
)


def evaluate(expression: str, view: DeviceView = VIEW):
    return compile_expression(expression).evaluate(view)


def test_a_null_result_is_no_verdict():
    assert evaluate("dyn(null)") == Failed(
        "CEL result of type null_type could not be converted to bool: type conversion error from 'null_type' to 'bool'"
    )


@pytest.mark.parametrize(
    "expression",
    [
        f'{A}.version.compareTo(semver("1.0.0")) >= 0',
        f'has({A}.text) && {A}.text == "x"',
        f'{A}.text in ["x", "y"]',
        f"{A}.list.exists(n, n > 2)",
        '!(device.capacity["a.b"].?m.hasValue())',
    ],
)
def test_the_usual_selectors_have_their_verdict(expression: str):
    assert evaluate(expression) == Match()


def test_a_version_that_fails_beside_what_matches_is_absorbed():
    assert evaluate(f'{A}.version == "1.0.0" || {A}.text == "x"') == Match()


def test_a_panic_is_absorbed_by_nothing():
    assert evaluate(f'{A}.version in ["a"] || true') == Failed(
        "internal error: runtime error: hash of unhashable type cel.Semver"
    )


@pytest.mark.parametrize("expression", ["{b'a': 1}.size() == 1", "[{b'a': 1}] == []"])
def test_a_constant_over_which_go_panics_is_refused(expression: str):
    with pytest.raises(InvalidSpecError, match="hash of unhashable type"):
        compile_expression(expression)


@pytest.mark.parametrize("expression", ["{b'a': 1 + 1}.size() == 1", "[{b'a': device.driver}] == []"])
def test_a_value_over_which_go_panics_is_an_error_of_the_device(expression: str):
    verdict = evaluate(expression)
    assert isinstance(verdict, Failed)
    assert "hash of unhashable type types.Bytes" in verdict.text


def test_a_text_with_nul_is_not_cut():
    view = DeviceView("a.b", {"text": DeviceAttribute(string="x\0y")})
    assert evaluate(f'{A}.text == "x"', view) == NoMatch()
    assert evaluate(f'{A}.text == "x\\x00y"', view) == Match()


def test_half_of_a_surrogate_pair_is_withheld():
    verdict = evaluate("true", DeviceView("a.b", {"text": DeviceAttribute.model_construct(string="\ud800")}))
    assert isinstance(verdict, Failed)
    assert not verdict.decided


@pytest.mark.parametrize("field", ["driver", "attributes", "capacity", "allowMultipleAllocations"])
def test_has_of_a_field_of_the_device_is_true(field: str):
    assert evaluate(f"has( device . {field} )") == Match()


def test_what_looks_like_has_of_a_field_is_kept_in_texts_and_comments():
    assert evaluate('"has(device.driver)".size() == 18 // has(device.driver)') == Match()
    assert evaluate('r"has(device.driver)\\d".size() == 20') == Match()


@pytest.mark.parametrize("name", ["exists_one", "existsOne"])
def test_exists_one_takes_two_variables_in_both_spellings(name: str):
    assert evaluate(f"{A}.list.{name}(index, value, index == 0 && value == 1)") == Match()


def test_a_name_is_bound_anew_after_a_loop_that_ended_early():
    # The engine's evaluator binds #unused names lazily, to whatever the loop left behind.
    expression = f'{A}.list.all(n, n > 1) ? true : cel.bind(m, {A}, has(m.text) && m.text == "x")'
    assert evaluate(expression) == Match()


def test_a_failure_that_ends_the_evaluation_upstream_is_not_reached_behind_a_decision():
    assert evaluate(f'true || {A}.version in ["a"]') == Match()


def test_transform_map_which_the_engine_cannot_run_is_evaluated():
    assert not check_expression(f"{A}.transformMap(k, v, true).size() == 4").problems
    assert evaluate(f"{A}.transformMap(k, v, true).size() == 4") == Match()
    assert evaluate(f'{A}.transformMapEntry(k, v, k == "text", {{v: k}}) == {{"x": "text"}}') == Match()


@pytest.mark.parametrize("count", [33, 148])
def test_what_is_nested_deeper_than_the_engine_goes_is_decided(count: int):
    assert evaluate(f"{'+'.join(['1'] * count)} == {count}") == Match()


@pytest.mark.parametrize(
    "expression",
    [
        f"{'+'.join(['1'] * 250)} == 250",
        f"{'(' * 249}true{')' * 249}",
        f"{'[1].all(a, ' * 249}true{')' * 249}",
        f"{'(true ? ' * 248}true{' : false)' * 248}",
        f"{'true && (' * 249}true{')' * 249}",
    ],
    ids=["sum", "brackets", "loops", "choices", "clauses"],
)
def test_what_is_nested_as_deep_as_the_server_goes_is_decided(expression: str):
    limit = sys.getrecursionlimit()
    assert not check_expression(expression).problems
    assert evaluate(expression) == Match()
    assert find_dependencies(expression) == frozenset()
    assert sys.getrecursionlimit() == limit


def test_threads_that_go_deep_at_once_leave_pythons_limit_as_it_was():
    limit = sys.getrecursionlimit()
    texts = [f"{'(' * 200}{number} == {number}{')' * 200}" for number in range(64)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(evaluate, texts)) == [Match()] * len(texts)
    assert sys.getrecursionlimit() == limit


def test_what_is_nested_deeper_than_the_server_goes_is_refused_in_its_words():
    refused = "compilation failed: ERROR: <input>:-1:0: "
    chain = check_expression(f"{'+'.join(['1'] * 251)} == 251")
    assert chain.detail == f"{refused}max recursion depth exceeded"
    brackets = check_expression(f"{'(' * 250}true{')' * 250}")
    assert brackets.detail == f"{refused}expression recursion limit exceeded: 250"
    right = check_expression(f"{'1+1*(' * 84}1{')' * 84} > 0")
    assert right.detail == f"{refused}expression recursion limit exceeded: 250"


@pytest.mark.parametrize(
    "form", ["1{} == 1", "[1{}].size() == 1", "{{1{}: 1}}.size() == 1", "true ? 1{} > 0 : true"]
)
def test_a_chain_that_the_server_takes_is_not_refused(form: str):
    assert not check_expression(form.format("+1" * 248)).errors


DEEP = """
from dra_infra.kubernetes.cel.check import check_expression
for depth in range(20, 40):
    assert not check_expression("[1].all(a," * depth + "true" + ")" * depth).problems, depth
"""


def test_loops_in_loops_are_checked_where_protobuf_reads_no_further():
    # In a process of its own: once gRPC is loaded, as by Pulumi, protobuf reads deeper.
    done = subprocess.run(
        [sys.executable, "-c", DEEP], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stderr == ""


@pytest.mark.parametrize("name", ["Any", "Int64Value", "StringValue", "Struct", "Value"])
def test_the_type_of_a_wrapper_is_no_value_to_the_server(name: str):
    checked = check_expression(f"type(1) == google.protobuf.{name}")
    text = f"program instantiation failed: reference to undefined type: google.protobuf.{name}"
    assert (checked.kind, checked.detail) == ("InternalError", text)


@pytest.mark.parametrize(
    "expression",
    [
        '(duration(device.driver == "-" ? "" : "1ns") - duration("9223372036s")).getSeconds() == -9223372036',
        'duration("-1.5s").getSeconds() == -1',
        'duration("3599.999999999s").getHours() == 0',
    ],
)
def test_the_seconds_of_a_duration_are_those_of_a_float(expression: str):
    assert evaluate(expression) == Match()


def test_a_wrapper_is_an_argument_like_what_it_holds():
    assert evaluate('dyn("12").indexOf(google.protobuf.StringValue{value: "2"}) == 1') == Match()


def test_the_variable_of_bind_stands_where_the_macro_is_called():
    assert "<input>:1:9: undeclared reference to '._a'" in check_expression("cel.bind(._a, 1, 2) == 2").detail


def test_long_chains_of_and_are_fine():
    assert evaluate(" && ".join(['device.driver == "a.b"'] * 300)) == Match()


def test_more_iterations_than_the_engine_allows_are_made():
    ten = f"[{', '.join('1111111111')}]"
    loops = "".join(f"{ten}.all({name}, " for name in "abcde") + "true" + ")" * 5
    assert evaluate(loops) == Match()


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000000).size() == 1",
        "'aaaaaaaa'" + ".replace('a', 'aaaaaaaaaaaaaaaa')" * 12 + " == ''",
        "".join(f"cel.bind(b{n}, {f'b{n - 1} + b{n - 1}' if n else repr('a' * 99)}, " for n in range(25))
        + "b24.size() > 0"
        + ")" * 25,
    ],
    ids=["range", "replace", "doubling"],
)
def test_an_expression_that_would_take_all_memory_is_ended_as_the_server_ends_it(expression: str):
    assert evaluate(expression) == Failed("operation cancelled: actual cost limit exceeded")


def test_reading_one_device_again_and_again_gives_the_same():
    program = compile_expression(f'has({A}.text) && {A}.text == "x"')
    assert {program.evaluate(VIEW) for _ in range(1000)} == {Match()}


def test_missing_domains_are_empty():
    view = DeviceView("a.b")
    assert evaluate('has(device.attributes["c.d"].x)', view) == NoMatch()
    assert evaluate('has(device.capacity["e.f"].x) || "c.d" in device.attributes', view) == NoMatch()
