"""What charts refuse of values whose keys and types are right; the rules are data (`chart_rules.yaml`)."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from dra_infra.catalog.platforms import ANY, ChartRules
from dra_infra.errors import Problem
from dra_infra.specs.arguments import is_output, shorten
from dra_infra.specs.platform.values import Values


def check_value_rules(values: Values, rules: ChartRules) -> Iterator[Problem]:
    """Problems at what the user wrote: `unsupported-value`, `chart-template-fails`, `chart-value-unused`."""
    yield from _check_choices(values, rules)
    for rule in rules.rules:
        if not _holds(values, rule.when, unknown=False) or (
            rule.unless and _holds(values, rule.unless, unknown=True)
        ):
            continue
        written = [path for path in rule.when if values.is_written(path)]
        yield Problem(
            path=values.where((written or list(rule.when))[-1]),
            code="chart-template-fails",
            message=rule.because,
            hint=rule.hint,
        )
    for each in rules.ignored:
        if values.is_written(each.below) and not _holds(values, each.unless, unknown=True):
            written = [path for path in values.arguments if path.startswith(f"{each.below}.")]
            for path in written or [each.below]:
                yield Problem(
                    path=values.where(path),
                    code="chart-value-unused",
                    message=f"nothing reads {path}: {each.because}",
                    hint=each.hint,
                )


def _check_choices(values: Values, rules: ChartRules) -> Iterator[Problem]:
    for path, choices in rules.choices.items():
        value = values.get(path) if values.is_written(path) else None
        if not isinstance(value, str) or value in choices:
            continue
        near = difflib.get_close_matches(value[:80], choices, n=1, cutoff=0.5)
        every = ", ".join(f'"{choice}"' for choice in choices)
        yield Problem(
            path=values.where(path),
            code="unsupported-value",
            message=f"{shorten(value)} is not a value that {path} can have",
            hint=f'did you mean "{near[0]}"? it can be {every}' if near else f"it can be {every}",
        )


def _holds(values: Values, conditions: Mapping[str, Any], *, unknown: bool) -> bool:
    """Whether all conditions hold; of a value that is only known later the answer is *unknown*."""
    return all(_meets(values.get(path), wanted, unknown=unknown) for path, wanted in conditions.items())


def _meets(value: object, wanted: object, *, unknown: bool) -> bool:
    if is_output(value):
        return unknown
    if wanted == ANY:
        return bool(value)
    if isinstance(wanted, list):
        return value in wanted
    return type(value) is type(wanted) and value == wanted
