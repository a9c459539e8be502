"""Keys that stand twice, as the real kubectl takes them: the last one counts."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.sources.files import SourceObject, read_sources
from tests.unit.sources.test_repeated_keys import CASES

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "name", [each for each in CASES if each not in ("in a list", "behind another document")]
)
def test_kubectl_takes_the_last_one(name: str, tmp_path: Path, binaries: Callable[[str], Path]) -> None:
    file = tmp_path / "in.yaml"
    file.write_text(CASES[name][0])
    command = [str(binaries("kubectl")), "label", "--local", "-f", str(file), "a=b", "-o", "json"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    objects = [
        each
        for each in read_sources([str(file)], io.BytesIO(), keeps_last=True)
        if isinstance(each, SourceObject)
    ]
    wanted = json.loads(shown)
    wanted["metadata"].pop("labels")
    assert objects[0].manifest == wanted
