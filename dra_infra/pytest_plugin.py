"""The pytest plugin: a test under `pulumi.runtime.set_mocks` fails if its components have problems.

A constructor raises nothing. `pulumi.runtime.test` raises what components reported, at its end; a test without it would pass for a
program that `pulumi up` refuses. The fixture `dra_problems` is for tests that want to see the problems.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

import dra_infra as dra

if TYPE_CHECKING:
    from dra_infra.errors import Problem


_REPORT: Final = "dra_infra.components.report"
"""The module of what components report. pytest starts without it, and without Pulumi."""


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Fail a test that has passed although its components reported problems."""
    try:
        result = yield
    except BaseException:
        _left_over()
        raise
    if left := _left_over():
        report = sys.modules[_REPORT]
        raise report.RefusedComponentsError(report.render(left))
    return result


def _left_over() -> list[Problem]:
    """Return the problems of the test that were not raised; without a component there is nothing to look for."""
    report = sys.modules.get(_REPORT)
    return [] if report is None else list(report.take_unraised())


@pytest.fixture
def dra_problems() -> Iterator[list[Problem]]:
    """Collect the problems of components, as `dra_infra.testing.problems` does; they do not fail the test."""
    with dra.testing.problems() as found:
        yield found
