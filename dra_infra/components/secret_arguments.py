"""Secrets among the arguments of components, judged before anything is made of them.

An API server quotes the value that it refuses, and pulumi-kubernetes prints the refusal as it comes, in previews too.
So what a secret holds is judged here, as soon as the run knows it, by the rules for plain arguments: what they refuse
reaches no server, and the problem shows `[secret]` in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pulumi

from dra_infra.codes import CODES
from dra_infra.components.report import failing_output, find_user_place, report
from dra_infra.errors import InvalidSpecError, Problem
from dra_infra.program_objects import SECRET

Arguments = dict[str, Any]
Check = Callable[[Arguments], Iterable[Problem]]
"""Returns what is wrong with arguments; Pulumi Outputs among them are not judged."""

_Steps = tuple[str | int, ...]


def judge_secrets(arguments: Mapping[str, Any], check: Check, label: str) -> Arguments:
    """Returns *arguments* with an Output that fails the run in place of each secret that *check* refuses.

    A secret that is not known in a preview is judged by `up`. Values that are no secrets stay as they are.

    Args:
        arguments: By name; Outputs may stand anywhere in mappings and lists.
        check: The rules. All but the judged secret is given to it as it is in *arguments*.
        label: How problems name the component.
    """
    given = dict(arguments)

    def judged(steps: _Steps, output: pulumi.Output[Any]) -> pulumi.Output[Any]:
        # Of the line that runs now: the Output is known when another one does.
        place = find_user_place()

        async def judge(value: Any) -> Any:
            if not await output.is_secret():
                return value
            known = _replaced(given, lambda at, other: value if at == steps else other)
            others = set(check(given))
            refused = [each for each in check(known) if each.severity == "error" and each not in others]
            if not refused:
                return value
            report(_without_value(each, steps, value).below(label).at(place) for each in refused)
            return failing_output()

        return output.apply(judge)

    found: Arguments = _replaced(given, judged)
    return found


def refusals_of(compile_: Callable[[Arguments], object]) -> Check:
    """Returns the check of a function that compiles arguments, and raises `InvalidSpecError` for what is wrong with them."""

    def check(arguments: Arguments) -> Iterable[Problem]:
        try:
            compile_(arguments)
        except InvalidSpecError as error:
            return error.problems
        return ()

    return check


def _without_value(problem: Problem, steps: _Steps, value: Any) -> Problem:
    """Returns *problem* in words that are the same for every value: its own quote the value, or hint at it."""
    tells = isinstance(value, (Mapping, list)) or str(value) in problem.path
    return hide_value(replace(problem, path=str(steps[0])) if tells else problem)


def hide_value(problem: Problem) -> Problem:
    """Returns *problem* at its path, with nothing of its words."""
    return Problem(
        path=problem.path,
        code=problem.code,
        message=f"{SECRET} is refused: {CODES[problem.code]}",
        hint=f"dra-infra explain {problem.code} says what is taken",
    )


def _replaced(value: Any, make: Callable[[_Steps, pulumi.Output[Any]], Any], steps: _Steps = ()) -> Any:
    """Returns *value* with what *make* makes of each Output in it, by the steps that lead there."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, pulumi.Output):
        return make(steps, value)
    if isinstance(value, Mapping):
        return {key: _replaced(item, make, (*steps, key)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_replaced(item, make, (*steps, at)) for at, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
