"""What pytest loads with this package: tests under `pulumi.runtime.set_mocks` fail for components with problems.

A constructor raises nothing. `pulumi.runtime.test` raises what components reported, at its end; a test without it would pass for a
program that `pulumi up` refuses. The fixture `dra_problems` is for tests that want to see the problems.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from dra_infra.errors import Problem


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, Any, Any]:
    """Fail a test that has passed although its components reported problems."""
    try:
        result = yield
    except BaseException:
        _left_over()
        raise
    if left := _left_over():
        from dra_infra.components.report import RefusedComponentsError, render

        raise RefusedComponentsError(render(left))
    return result


def _left_over() -> list[Problem]:
    """Problems of the test that nobody has raised; looked for only where a component was made."""
    module = sys.modules.get("dra_infra.components.report")
    return [] if module is None else list(module.take_unraised())


@pytest.fixture
def dra_problems() -> Iterator[list[Problem]]:
    """What components report in this test, as `dra_infra.testing.problems` collects it; the test does not fail for it."""
    from dra_infra.testing import problems

    with problems() as found:
        yield found
