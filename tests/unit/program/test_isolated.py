from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program.confinement import Allowance
from dra_infra.program.isolated import RunningSynth
from dra_infra.program.program_json import program_from_json, program_to_json, write_json
from dra_infra.program.project import load_project
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


def test_a_confined_program_has_the_packages_of_its_environment_or_of_the_one_that_is_lent(
    project, tmp_path: Path
):
    folder = project(HEAD + 'import acme_sdk\nk8s.core.v1.Namespace("n", metadata={"name": acme_sdk.NAME})\n')
    (folder / "Pulumi.yaml").write_text("name: app\nruntime: {name: python, options: {virtualenv: env}}\n")
    packages = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

    def write(environment: Path, name: str) -> None:
        (environment / packages).mkdir(parents=True)
        (environment / packages / "acme_sdk.py").write_text(f"NAME = {name!r}\n")

    lent = tmp_path.parent / f"{tmp_path.name}-lent"
    write(lent, "lent")
    assert code_of(RunningSynth(folder)) == "program-raised"
    assert RunningSynth(folder, environment=lent).result().objects[0].ref.name == "lent"
    write(folder / "env", "own")
    assert RunningSynth(folder, environment=lent).result().objects[0].ref.name == "own"


def test_a_reviewed_program_does_not_use_the_cache_of_poetry(
    project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = project(HEAD + 'import acme_sdk\nk8s.core.v1.Namespace("n", metadata={"name": acme_sdk.NAME})\n')
    (folder / "poetry.lock").touch()
    (folder / "pyproject.toml").write_text('[project]\nname = "app"\n')
    cache = tmp_path.parent / f"{tmp_path.name}-cache"
    for name in ("CONDA_PREFIX", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POETRY_VIRTUALENVS_PATH", str(cache))
    environment = load_project(folder).environment
    assert environment
    assert environment.parent == cache
    packages = environment / f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
    packages.mkdir(parents=True)
    (packages / "acme_sdk.py").write_text("NAME = 'cached'\n")
    with pytest.raises(ProgramError) as error:
        RunningSynth(folder, allowance=Allowance(variables=frozenset({"POETRY_VIRTUALENVS_PATH"}))).result()
    (problem,) = error.value.problems
    assert problem.message == "ModuleNotFoundError: No module named 'acme_sdk'"
    assert "write in-project = true below [virtualenvs] in poetry.toml" in problem.hint
    allowed = RunningSynth(folder, allowance=Allowance(everything=True)).result()
    assert allowed.objects[0].ref.name == "cached"
    assert synth(folder).objects[0].ref.name == "cached"


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


@pytest.mark.parametrize(
    ("program", "read", "codes"),
    [
        ("raise ValueError('boom')\n", "_read_answer", ["program-raised"]),
        ("import os\nos.write(2, b'last words')\nos._exit(7)\n", "_read_output", ["program-died"]),
    ],
    ids=["answer", "output"],
)
def test_what_arrives_late_is_waited_for(project, monkeypatch, program: str, read: str, codes: list[str]):
    may_read = threading.Event()
    original = getattr(RunningSynth, read)

    def late(running: RunningSynth, pipe) -> None:
        assert may_read.wait(60)
        original(running, pipe)

    monkeypatch.setattr(RunningSynth, read, late)
    # There is something to read, so no time is too long.
    monkeypatch.setattr("dra_infra.program.pipe_reader._QUIET", 0.0)
    running = RunningSynth(project(program))
    running._process.wait(60)
    threading.Timer(0.2, may_read.set).start()
    with pytest.raises(ProgramError) as error:
        running.result()
    assert [each.code for each in error.value.problems] == codes
    assert read == "_read_answer" or "last words" in error.value.problems[0].hint


def descriptors() -> set[str]:
    """The pipes that this process has."""
    # The one by which the folder is read is gone by the time.
    return {str(each.readlink()) for each in [*Path("/proc/self/fd").iterdir()] if each.is_symlink()}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@pytest.mark.parametrize("what", ["process", "threads", "request"])
def test_a_start_that_fails_leaves_neither_a_pipe_nor_a_process_nor_files(
    project, monkeypatch, tmp_path: Path, what: str
):
    folder = project(HEAD)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr("dra_infra.program.home_folder.make", lambda: home)
    before = descriptors()
    started = []

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no")

    class Watched(subprocess.Popen):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", fail if what == "process" else Watched)
    if what == "threads":
        reader = RunningSynth._start

        def start(running: RunningSynth, *arguments):
            process = reader(running, *arguments)
            monkeypatch.setattr(threading.Thread, "start", fail)
            return process

        monkeypatch.setattr(RunningSynth, "_start", start)
    if what == "request":
        monkeypatch.setattr("dra_infra.program.isolated.json.dumps", fail)
    with pytest.raises(RuntimeError):
        RunningSynth(folder)
    monkeypatch.undo()
    assert all(each.poll() is not None for each in started)
    assert len(started) == (what != "process")
    assert not {each for each in descriptors() - before if each.startswith("pipe:")}
    assert not home.exists()


BUSY = (
    "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass\n"
)


def test_a_program_that_cannot_be_interrupted_is_killed(project, monkeypatch):
    monkeypatch.setattr("dra_infra.program.isolated._GRACE", 0.2)
    monkeypatch.setattr("dra_infra.program.supervisor.ENDING", 1.0)
    assert code_of(RunningSynth(project(BUSY), timeout=0.3)) == "program-timeout"


@pytest.fixture
def supervise(project, tmp_path: Path):
    """Starts the process that `RunningSynth` starts, with other constants; its standard input stays open."""
    started = []

    def start(program: str, constants: str, timeout: float = 60) -> subprocess.Popen[bytes]:
        home = tmp_path / "home"
        home.mkdir()
        request = {
            "directory": str(project(program)),
            "inside": str(tmp_path),
            "home": str(home),
            "python_variables": {},
            "stack": None,
            "config": {},
            "timeout": timeout,
            "read": [],
            "write": [],
            "network": False,
            "everything": False,
            "environment": None,
        }
        imports = "import sys; from dra_infra.program import isolated, namespaces, sandbox, supervisor; "
        command = [sys.executable, "-c", f"{imports}{constants}; sys.exit(isolated._main(1))"]
        # The standard output is the pipe of the answer.
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(running)
        running.stdin.write(json.dumps(request).encode() + b"\n")
        running.stdin.flush()
        return running

    yield start
    for running in started:
        running.kill()
        running.wait()
        for pipe in (running.stdin, running.stdout):
            pipe.close()


def test_a_program_that_cannot_be_interrupted_ends_without_its_caller(supervise, tmp_path: Path):
    running = supervise(BUSY, "isolated._GRACE = 0.2", timeout=0.2)
    assert running.wait(60) == 124
    assert not (tmp_path / "home").exists()


def test_a_program_ends_when_its_caller_does(supervise, tmp_path: Path):
    running = supervise(BUSY, "pass")
    # It runs, because it has said what is in force.
    assert running.stdout.readline().endswith(b"\n")
    running.stdin.close()
    assert running.wait(60) == 1
    assert running.stdout.read() == b""
    assert not (tmp_path / "home").exists()


def test_a_program_that_leaves_what_cannot_be_ended_has_no_answer(supervise):
    # All is ended here, and on some system something could not be.
    constants = "namespaces.start_processes = sandbox.hold_signals = lambda: False; "
    constants += "end = supervisor._end_all; supervisor._end_all = lambda **way: end(**way) and False"
    running = supervise(
        "import os, time\nif os.fork() == 0:\n    time.sleep(20)\n    os._exit(0)\n", constants
    )
    assert running.wait(60) == 125


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (122, "program-too-large", "more than 1,024 processes and threads"),
        (123, "program-too-large", "more than 1 GiB or 16,384 files"),
        (125, "program-died", "what it started could not be ended"),
    ],
)
def test_an_answer_of_a_program_that_was_ended_does_not_count(project, monkeypatch, status, code, words):
    running = RunningSynth(project(HEAD))
    running._process.wait()
    monkeypatch.setattr(running._process, "returncode", status)
    with pytest.raises(ProgramError) as error:
        running.result()
    assert error.value.problems[0].code == code
    assert words in error.value.problems[0].message
    shutil.rmtree(running._home, ignore_errors=True)


@pytest.mark.parametrize(
    ("program", "codes"), [(HEAD, []), ("raise ValueError('boom')\n", ["program-raised"])]
)
def test_files_that_stay_are_told(project, monkeypatch, program: str, codes: list[str]):
    running = RunningSynth(project(program))
    monkeypatch.setattr("dra_infra.program.home_folder.remove", lambda _: False)
    with pytest.raises(ProgramError) as error:
        running.result()
    assert [each.code for each in error.value.problems] == [*codes, "program-files-left"]
    assert str(running._home) in error.value.problems[-1].message
