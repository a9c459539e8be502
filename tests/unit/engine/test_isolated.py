from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.engine.isolated import RunningSynth, program_from_json, program_to_json
from dra_infra.engine.synth import synth
from dra_infra.errors import ProgramError

HEAD = "import pulumi\nimport pulumi_kubernetes as k8s\n"


@pytest.fixture
def project(tmp_path: Path):
    def write(program: str) -> Path:
        (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
        (tmp_path / "__main__.py").write_text(program)
        return tmp_path

    return write


def code_of(running: RunningSynth) -> str:
    with pytest.raises(ProgramError) as error:
        running.result()
    (problem,) = error.value.problems
    return problem.code


def test_a_process_of_its_own_gives_the_same_program(project):
    folder = project(HEAD + 'k8s.core.v1.Namespace("n", metadata={"name": "n"})\nprint("noise")\n')
    assert RunningSynth(folder).result() == synth(folder)


def test_programs_survive_json(project):
    program = synth(project(HEAD + 'k8s.core.v1.Namespace.get("n", "n")\n'))
    assert program_from_json(program_to_json(program)) == program


def test_a_program_that_raises_is_told_as_in_process(project):
    assert code_of(RunningSynth(project("raise ValueError('boom')\n"))) == "program-raised"


def test_a_program_that_kills_its_process_is_told(project):
    assert (
        code_of(RunningSynth(project("import os\nos.write(2, b'last words')\nos._exit(7)\n")))
        == "program-died"
    )


def test_a_program_that_floods_its_output_still_ends(project):
    folder = project("print('x' * 10_000_000)\n")
    assert RunningSynth(folder).result().objects == ()


def test_a_program_that_cannot_be_interrupted_is_killed(project, monkeypatch):
    monkeypatch.setattr("dra_infra.engine.isolated._GRACE", 0.2)
    program = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
    assert code_of(RunningSynth(project(program), timeout=0.3)) == "program-timeout"


def test_a_program_that_cannot_be_interrupted_ends_without_its_caller(project, tmp_path: Path):
    program = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
    request = {"directory": str(project(program)), "stack": None, "config": {}, "timeout": 0.2}
    (tmp_path / "request.json").write_text(json.dumps(request))
    main = "from dra_infra.engine import isolated; isolated._GRACE = 0.2; import pathlib, sys; "
    command = [sys.executable, "-c", f"{main}isolated._main(pathlib.Path(sys.argv[1]))", str(tmp_path)]
    assert subprocess.run(command, timeout=30, check=False).returncode == 1
