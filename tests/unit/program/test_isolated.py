from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.isolated import RunningSynth
from dra_infra.program.program_json import program_from_json, program_to_json, write_json
from dra_infra.program.synth import synth

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


def test_transforms_need_no_socket_which_a_confined_program_cannot_make(project):
    folder = project(
        HEAD
        + """
import socket
def label(args):
    try:
        socket.socket()
        made = "yes"
    except OSError:
        made = "no"
    metadata = {**args.props["metadata"], "labels": {"socket": made}}
    return pulumi.ResourceTransformResult({**args.props, "metadata": metadata}, args.opts)

pulumi.runtime.register_resource_transform(label)
k8s.core.v1.Namespace("n", metadata={"name": "n"})
"""
    )
    (found,) = RunningSynth(folder).result().objects
    assert found.manifest["metadata"]["labels"] == {"socket": "no"}


def test_programs_survive_json(project):
    program = synth(project(HEAD + 'k8s.core.v1.Namespace.get("n", "n")\n'))
    assert program_from_json(write_json(program_to_json(program))) == program


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
    monkeypatch.setattr("dra_infra.program.isolated._GRACE", 0.2)
    monkeypatch.setattr("dra_infra.program.isolated._ENDING", 0.2)
    program = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
    assert code_of(RunningSynth(project(program), timeout=0.3)) == "program-timeout"


def test_a_program_that_cannot_be_interrupted_ends_without_its_caller(project, tmp_path: Path):
    program = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
    request = {
        "directory": str(project(program)),
        "inside": str(tmp_path),
        "home": str(tmp_path),
        "stack": None,
        "config": {},
        "timeout": 0.2,
        "read": [],
        "write": [],
        "network": False,
        "everything": False,
    }
    main = "from dra_infra.program import isolated; isolated._GRACE = 0.2; import sys; "
    command = [sys.executable, "-c", f"{main}sys.exit(isolated._main(int(sys.argv[1])))", "2"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        command, input=json.dumps(request).encode(), env=environment, timeout=120, check=False
    )
    assert ended.returncode == 124


def test_a_program_that_leaves_what_cannot_be_ended_has_no_answer(project, tmp_path: Path):
    program = "import os, time\nif os.fork() == 0:\n    time.sleep(20)\n    os._exit(0)\n"
    request = {
        "directory": str(project(program)),
        "inside": str(tmp_path),
        "home": str(tmp_path),
        "stack": None,
        "config": {},
        "timeout": 60,
        "read": [],
        "write": [],
        "network": False,
        "everything": False,
    }
    # No time in which it could end.
    main = "from dra_infra.program import isolated; isolated._ENDING = 0; import sys; "
    command = [sys.executable, "-c", f"{main}sys.exit(isolated._main(int(sys.argv[1])))", "2"]
    ended = subprocess.run(command, input=json.dumps(request).encode(), timeout=60, check=False)
    assert ended.returncode == 125


def test_an_answer_beside_what_could_not_be_ended_does_not_count(project, monkeypatch):
    running = RunningSynth(project(HEAD))
    running._process.wait()
    monkeypatch.setattr(running._process, "returncode", 125)
    with pytest.raises(ProgramError) as error:
        running.result()
    (problem,) = error.value.problems
    assert (problem.code, problem.message) == ("program-died", "what it started could not be ended")
