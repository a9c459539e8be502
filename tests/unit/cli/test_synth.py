"""`dra-infra synth`: what it tells of classes that it cannot see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import dra_infra as dra

dra.GpuDeviceClass("own")
dra.GpuClaimTemplate("t", device_class={})
"""


@pytest.mark.parametrize(
    ("named", "hint"),
    [
        ('"team-h100"', "write dra.class_ref(...)"),
        ('"gpu.nvidia.co"', 'write device_class="gpu.nvidia.com"'),
        ('"own"', ""),
        ('"gpu.nvidia.com"', ""),
        ('dra.class_ref("team-h100")', ""),
        ('dra.class_ref("gpu.nvidia.com")', ""),
    ],
)
def test_a_class_that_nobody_has_is_told_unless_another_program_makes_it(
    tmp_path: Path, command: Callable[..., Any], named: str, hint: str
):
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    (tmp_path / "__main__.py").write_text(PROGRAM.format(named))
    answer = command("synth", ".", cwd=tmp_path)
    assert answer.code == 0
    assert ("[class-not-known]" in answer.err) == bool(hint)
    assert hint in answer.err
