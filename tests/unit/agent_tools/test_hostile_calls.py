from __future__ import annotations

import io
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest

from dra_infra.agent_tools import folder as folders
from dra_infra.agent_tools import starting
from dra_infra.agent_tools.confined_command import RunningCommand
from dra_infra.agent_tools.folder import Folder
from dra_infra.agent_tools.server import BoundedLines
from dra_infra.errors import ProgramError
from dra_infra.program import sandbox
from dra_infra.sources.files import SUFFIXES
from tests.support.agent_tools.agent import COMMAND, Agent, codes_of

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: train, namespace: ml}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}
"""


@pytest.fixture
def outside(folder: Path, tmp_path: Path) -> Path:
    """A file beside the folder of the server, in which links lead to it."""
    file = tmp_path / "outside.yaml"
    file.write_text(CLAIM)
    (folder / "inside.yaml").write_text(CLAIM)
    for place, target in (
        ("link.yaml", file),
        ("links/link.yaml", file),
        ("out", file.parent),
        ("own.yaml", "inside.yaml"),
    ):
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).unlink(missing_ok=True)
        (folder / place).symlink_to(target)
    return file


@pytest.mark.parametrize(
    "path",
    [
        "../outside.yaml",
        "OUTSIDE",
        "link.yaml",
        "links",
        "out/outside.yaml",
        "own.yaml",
        "/etc/passwd",
        ".git/config",
        "a\0b",
    ],
)
def test_no_path_and_no_link_leads_out_of_the_folder(path: str, outside: Path, agent: Agent) -> None:
    answer = agent.call("validate", paths=[str(outside) if path == "OUTSIDE" else path])
    assert answer.is_error
    assert codes_of(answer) == ["path-leads-out"]
    assert str(outside.parent) not in answer.content[0].text or path == "OUTSIDE"


@pytest.mark.parametrize("argument", ["fleetFile", "snapshot", "basePaths", "pluginConfig"])
def test_no_argument_reads_a_file_outside(argument: str, outside: Path, agent: Agent) -> None:
    tool = {"basePaths": "review", "pluginConfig": "migrate"}.get(argument, "simulate")
    value: Any = [str(outside)] if argument == "basePaths" else str(outside)
    answer = agent.call(tool, manifests=CLAIM, **{argument: value})
    assert codes_of(answer) == ["path-leads-out"]


def test_a_file_of_the_folder_is_read_by_its_relative_and_its_whole_path(folder: Path, agent: Agent) -> None:
    (folder / "claims").mkdir(exist_ok=True)
    (folder / "claims" / "wrong.yaml").write_text(CLAIM.replace("exactly", "exact"))
    (folder / "claims" / ".hidden.yaml").write_text("a: [")
    for path in ("claims/wrong.yaml", "claims", str(folder / "claims")):
        answer = agent.call("validate", paths=[path])
        assert codes_of(answer), path
        assert answer.structured_content["problems"][0]["place"]["file"] == "claims/wrong.yaml"


def test_a_program_is_not_run(folder: Path, agent: Agent) -> None:
    project = folder / "project"
    project.mkdir()
    (project / "Pulumi.yaml").write_text("{name: p, runtime: python}")
    (project / "__main__.py").write_text("open('ran', 'w')")
    for tool in ("simulate", "migrate"):
        answer = agent.call(tool, paths=["project"], fleet="hgx-h100")
        assert codes_of(answer) == ["program-not-read"]
    assert codes_of(agent.call("validate", paths=["project"])) == ["program-not-read"]
    assert not (project / "ran").exists()


def test_nothing_is_written_and_no_copy_is_left(folder: Path, copies: Path, agent: Agent) -> None:
    (folder / "pod.yaml").write_text(
        "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a, "
        "resources: {limits: {nvidia.com/gpu: 1}}}]}}"
    )
    before = {each: each.lstat().st_mtime_ns for each in folder.rglob("*")}
    for tool in ("validate", "simulate", "migrate", "review"):
        agent.call(tool, paths=["pod.yaml"])
    assert {each: each.lstat().st_mtime_ns for each in folder.rglob("*")} == before
    assert list(copies.iterdir()) == []


HOSTILE = {
    "aliases that unfold": "a: &a [1,1,1,1,1,1,1,1]\n"
    + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(12)),
    "deep": "[" * 20_000,
    "no object": "- 1",
    "not text": "\ud800",
    "control": "a: \x00\x1b[2J",
    "many documents": "---\na: [\n" * 1_000,
}


@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "not text"])
def test_hostile_text_is_refused_and_the_server_goes_on(name: str, agent: Agent) -> None:
    answer = agent.call("validate", manifests=HOSTILE[name])
    assert codes_of(answer)
    assert codes_of(agent.call("validate", manifests=CLAIM)) == []


def test_too_much_text_is_refused(agent: Agent) -> None:
    answer = agent.call("validate", manifests="#" * (4 * 2**20 + 1))
    assert codes_of(answer) == ["call-too-large"]


def test_a_folder_with_too_many_files_or_levels_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> list[str]:
        try:
            return [each.name for each in Folder(tmp_path, "paths").read(".")]
        except ProgramError as error:
            return [each.code for each in error.problems]

    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text("a: 1")
    assert read() == ["0.yaml", "1.yaml", "2.yaml"]
    monkeypatch.setattr(folders, "MOST_BYTES", 11)
    assert read() == ["call-too-large"]
    monkeypatch.setattr(folders, "MOST_BYTES", 12)
    monkeypatch.setattr(folders, "MOST_FILES", 2)
    assert read() == ["call-too-large"]
    monkeypatch.setattr(folders, "MOST_FILES", 3)
    assert len(read()) == 3
    (tmp_path / "/".join("d" * 60)).mkdir(parents=True)
    assert read() == ["call-too-large"]


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    for path in (".", "pipe.yaml"):
        with pytest.raises(ProgramError) as error:
            list(Folder(tmp_path, "paths").read(path))
        assert [each.code for each in error.value.problems] == ["file-unreadable"]


def test_the_files_of_a_folder_are_those_that_the_commands_read() -> None:
    assert folders.SUFFIXES == SUFFIXES


def command(tmp_path: Path, *words: str, seconds: float = 60.0) -> RunningCommand:
    for name in ("copy/objects", "copy/home"):
        (tmp_path / name).mkdir(parents=True)
    copy = tmp_path / "copy"
    return RunningCommand(words, folder=copy / "objects", home=copy / "home", seconds=seconds)


def test_a_command_opens_nothing_outside_of_its_copy(tmp_path: Path) -> None:
    if sandbox._version() < 3:
        pytest.skip("needs Landlock")
    (tmp_path / "outside.yaml").write_text(CLAIM)
    result = command(tmp_path, "validate", str(tmp_path / "outside.yaml"), "--json").wait()
    assert result.exit_code == 2
    assert [each["code"] for each in result.report["problems"]] == ["file-unreadable"]


def test_a_command_has_no_variables_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    result = command(tmp_path, "status", "--json").wait()
    assert result.report is None
    assert str(tmp_path / "kubeconfig") not in str(result.problems)


def test_a_command_that_takes_too_long_or_is_cancelled_ends(tmp_path: Path) -> None:
    late = command(tmp_path / "late", "catalog", "--json", seconds=-15.0)
    cancelled = command(tmp_path / "cancelled", "catalog", "--json")
    cancelled.kill()
    for each in (late, cancelled):
        with pytest.raises(ProgramError) as error:
            each.wait()
        assert [problem.code for problem in error.value.problems] == ["call-not-finished"]
        assert each._process.returncode is not None


def test_a_message_that_is_too_long_is_skipped_and_the_next_one_is_read() -> None:
    async def read(data: bytes) -> list[str]:
        return [line async for line in BoundedLines(io.BytesIO(data), 10)]

    assert anyio.run(read, b"short\n" + b"x" * 200_000 + b"\nnext\n\xff") == ["short\n", "\n", "next\n", "�"]
    assert anyio.run(read, b"y" * 11) == ["\n"]


def test_the_server_ends_with_its_input_and_answers_no_message_that_is_none(tmp_path: Path) -> None:
    lines = b'no json\n{"jsonrpc": "2.0"}\n[]\n' + b"[" * 100_000 + b"\n"
    result = subprocess.run(
        [COMMAND, "mcp"], check=True, input=lines, capture_output=True, cwd=tmp_path, timeout=300
    )
    assert b"Traceback" not in result.stderr


def test_a_signal_ends_the_server(tmp_path: Path) -> None:
    with subprocess.Popen(
        [COMMAND, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(
            b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", '
            b'"capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}}\n'
        )
        server.stdin.flush()
        assert b'"serverInfo"' in server.stdout.readline()
        server.send_signal(signal.SIGTERM)
        assert server.wait(300) == 128 + signal.SIGTERM
        assert b"Traceback" not in server.communicate()[1]


def test_without_the_library_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "find_spec", lambda _name: None)
    with pytest.raises(ProgramError) as error:
        starting.run()
    assert [each.code for each in error.value.problems] == ["mcp-not-installed"]
