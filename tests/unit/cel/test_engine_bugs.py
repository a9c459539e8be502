"""Each bug of the engine that is worked around; a test here also tells when a new release of it behaves differently."""

from __future__ import annotations

import gc
import sys

import pytest

from dra_infra.cel import DeviceView, Failed, Match, NoMatch, check_expression, compile_expression
from dra_infra.cel.declare import check_environment, run_environment
from dra_infra.cel.evaluate import Program
from dra_infra.cel.values import RUN_FUNCTIONS, take_deferral
from dra_infra.model.resource_slice import DeviceAttribute

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


def test_a_null_result_is_never_read():
    # Reading one releases a None that the engine does not own; on Python 3.11 that ends the interpreter at some time.
    failed = Failed(
        "CEL result of type null_type could not be converted to bool: type conversion error from 'null_type' to 'bool'"
    )
    # The garbage of earlier tests holds None too, and would release it in the middle of the count.
    gc.collect()
    gc.disable()
    try:
        before = sys.getrefcount(None)
        assert all(evaluate("dyn(null)") == failed for _ in range(1000))
        after = sys.getrefcount(None)
    finally:
        gc.enable()
    assert after > before - 500


def test_nothing_is_ever_passed_to_a_python_function():
    # The engine leaks the arguments of each call, and releases a None that it does not own.
    assert {arity for arity, _ in RUN_FUNCTIONS.values()} == {0}


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
def test_the_usual_selectors_are_decided_by_the_engine_alone(expression: str, monkeypatch):
    monkeypatch.delattr("dra_infra.cel.interpreter.Interpreter")
    assert Program(expression).evaluate(VIEW) == Match()


def test_the_engine_is_not_asked_any_more_after_it_has_leaked_a_hundred_times(monkeypatch):
    asked: list[bool] = []

    def count() -> bool:
        asked.append(True)
        return take_deferral()

    monkeypatch.setattr("dra_infra.cel.evaluate.take_deferral", count)
    program = Program(f'{A}.version == "1.0.0" || {A}.text == "x"')
    assert {program.evaluate(VIEW) for _ in range(300)} == {Match()}
    assert len(asked) == 100


def test_a_verdict_that_the_engine_reached_beside_a_version_is_not_used():
    # The engine absorbs what it leaves to the interpreter as if it were an error; a panic upstream is absorbed by nothing.
    verdict = Program(f'{A}.version in ["a"] || true').evaluate(VIEW)
    assert verdict == Failed("internal error: runtime error: hash of unhashable type cel.Semver")


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
    # The engine binds #unused names lazily, to whatever the loop left behind.
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


def test_reading_one_activation_again_and_again_gives_the_same():
    program = compile_expression(f'has({A}.text) && {A}.text == "x"')
    assert {program.evaluate(VIEW) for _ in range(1000)} == {Match()}


def test_missing_domains_are_bound_when_a_later_program_reads_them():
    view = DeviceView("a.b")
    assert evaluate('has(device.attributes["c.d"].x)', view) == NoMatch()
    assert evaluate('has(device.capacity["e.f"].x) || "c.d" in device.attributes', view) == NoMatch()


def test_the_environments_are_made_once():
    assert check_environment() is check_environment()
    assert run_environment() is run_environment()
