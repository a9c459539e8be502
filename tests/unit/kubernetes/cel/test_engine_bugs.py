"""What the engine does otherwise than the server, in checking and in evaluating; each was wrong here once."""

from __future__ import annotations

import pytest

from dra_infra.kubernetes.api.resource_slice import DeviceAttribute
from dra_infra.kubernetes.cel.check import check_expression
from dra_infra.kubernetes.cel.device_view import DeviceView
from dra_infra.kubernetes.cel.environment import check_environment
from dra_infra.kubernetes.cel.evaluate import Failed, Match, NoMatch, compile_expression

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
def test_a_constant_over_which_go_panics_is_withheld(expression: str):
    verdict = evaluate(expression)
    assert isinstance(verdict, Failed)
    assert not verdict.decided


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


@pytest.mark.parametrize("count", [33, 100])
def test_what_is_nested_deeper_than_the_engine_goes_is_withheld_and_not_called_wrong(count: int):
    expression = f"{'+'.join(['1'] * count)} == {count}"
    (problem,) = check_expression(expression, path="select").problems
    assert (problem.code, problem.path, problem.severity) == ("cel-not-decided-here", "select", "warning")
    verdict = evaluate(expression)
    assert isinstance(verdict, Failed)
    assert not verdict.decided


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
def test_an_expression_that_would_take_all_memory_is_not_run(expression: str):
    verdict = evaluate(expression)
    assert isinstance(verdict, Failed)
    assert not verdict.decided


def test_reading_one_device_again_and_again_gives_the_same():
    program = compile_expression(f'has({A}.text) && {A}.text == "x"')
    assert {program.evaluate(VIEW) for _ in range(1000)} == {Match()}


def test_missing_domains_are_empty():
    view = DeviceView("a.b")
    assert evaluate('has(device.attributes["c.d"].x)', view) == NoMatch()
    assert evaluate('has(device.capacity["e.f"].x) || "c.d" in device.attributes', view) == NoMatch()


def test_the_environment_is_made_once():
    assert check_environment() is check_environment()
