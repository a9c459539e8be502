"""The rules of GpuMonitoring for each minor, and promtool, which reads them as Prometheus does."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dra_infra as dra
from dra_infra.program.synth import synth_function

Tool = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def promtool(binaries: Callable[[str], Path]) -> Tool:
    """Runs promtool; the answer has its exit code and all that it printed."""
    path = binaries("promtool")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [path, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=120,
        )

    return run


def objects_of(minor: str, **arguments: Any) -> dict[str, dict[str, Any]]:
    """The objects of a component for a minor, by kind."""
    program = synth_function(
        lambda: dra.GpuMonitoring("gpus", plugin_namespaces=["plugins"], **arguments),
        config={"dra-infra:kubernetes": minor},
    )
    assert [str(each) for each in program.problems if each.severity == "error"] == []
    return {each.manifest["kind"]: dict(each.manifest) for each in program.objects}
