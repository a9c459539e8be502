from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml

from dra_infra.catalog import load_fleet
from tests.support.warm_commands import warm

MAIN = "from dra_infra.cli.app import main; main()"

PROGRAM = """
import pulumi_kubernetes as k8s
import dra_infra as dra

h100 = dra.GpuDeviceClass("h100", select=dra.gpu.product.contains("H100"))
trainer = dra.GpuClaimTemplate("trainer", device_class=h100, count=4)
k8s.core.v1.Pod("train", metadata={"name": "train"}, spec=trainer.attach({"containers": [{"name": "c", "image": "i"}]}))
"""


def run(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [warm().command, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "120", **environment},
        check=False,
    )


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path):
    folder = tmp_path / "infra"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: infra\nruntime: python\n")

    def write(program: str = PROGRAM) -> Path:
        (folder / "__main__.py").write_text(textwrap.dedent(program))
        return folder

    return write


def test_synth_prints_the_objects_as_yaml(project):
    result = run("synth", cwd=project())
    assert result.returncode == 0, result.stderr
    kinds = [document["kind"] for document in yaml.safe_load_all(result.stdout)]
    assert kinds == ["DeviceClass", "Pod", "ResourceClaimTemplate"]


def test_synth_prints_json(project):
    result = run("synth", "--json", cwd=project())
    assert [each["manifest"]["kind"] for each in json.loads(result.stdout)["objects"]] == [
        "DeviceClass",
        "Pod",
        "ResourceClaimTemplate",
    ]


def test_problems_are_all_shown_with_exit_code_1_and_nothing_on_standard_output(project):
    result = run(
        "synth", cwd=project(PROGRAM.replace("count=4", "count=0").replace('"h100", select', '"H1", select'))
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert 'GpuClaimTemplate("trainer").count: 0 is below 1 [count-below-one]' in result.stderr
    assert "[invalid-name]" in result.stderr
    assert "2 problems" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_program_that_raises_ends_with_its_line_and_no_traceback(project):
    result = run("synth", cwd=project("x = 1\nraise ValueError('boom')\n"))
    assert result.returncode == 2
    assert "__main__.py:2" in result.stderr
    assert "Traceback" not in result.stderr


def test_simulate_says_where_pods_fit(project):
    result = run("simulate", "--fleet", "hgx-h100 x 2", cwd=project())
    assert result.returncode == 0, result.stderr
    assert "Pod train" in result.stdout
    assert "gpu-0..3" in result.stdout


def test_simulate_fails_when_something_does_not_fit(project):
    result = run("simulate", "--fleet", "a100-40gb", "--json", cwd=project())
    assert result.returncode == 1
    (workload,) = json.loads(result.stdout)["workloads"]
    assert workload["verdict"] == "does-not-fit"


def test_simulate_places_beside_what_runs_on_a_snapshot(project):
    fleet = load_fleet("hgx-h100").to_manifests()
    (pool,) = {each["spec"]["nodeName"] for each in fleet if each["kind"] == "ResourceSlice"}
    held = [
        {"request": "r", "driver": "gpu.nvidia.com", "pool": pool, "device": f"gpu-{index}"}
        for index in range(2)
    ]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "others", "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}},
        "status": {"allocation": {"devices": {"results": held}}},
    }
    folder = project()
    (folder / "cluster.yaml").write_text("---\n".join(json.dumps(each) + "\n" for each in [*fleet, claim]))
    result = run("simulate", "--snapshot", "cluster.yaml", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "gpu-2..5" in result.stdout


@pytest.mark.parametrize(
    ("options", "code"), [(["--fleet", "hgx-h100"], "leave --fleet out"), ([], "[fleet-unreadable]")]
)
def test_a_snapshot_that_cannot_be_simulated_on_is_told(project, options: list[str], code: str):
    result = run("simulate", "--snapshot", "none.yaml", *options, cwd=project())
    assert result.returncode == 2
    assert code in result.stderr


@pytest.mark.parametrize("command", ["simulate", "review"])
def test_a_snapshot_does_not_let_a_mistyped_stack_pass(project, command: str):
    folder = project()
    (folder / "Pulumi.prod.yaml").write_text("")
    objects = load_fleet("hgx-h100").to_manifests()
    (folder / "cluster.yaml").write_text("---\n".join(f"{json.dumps(each)}\n" for each in objects))
    result = run(command, "--snapshot", "cluster.yaml", "--stack", "prd", cwd=folder)
    assert (result.returncode, result.stdout) == (2, "")
    assert "[stack-not-known]" in result.stderr
    assert "did you mean prod?" in result.stderr


@pytest.mark.parametrize("command", ["synth", "review"])
def test_a_folder_that_is_not_there_is_told_with_the_nearest(tmp_path: Path, command: str):
    (tmp_path / "infra").mkdir()
    result = run(command, "infar", cwd=tmp_path)
    assert (result.returncode, "[no-project]" in result.stderr) == (2, True)
    assert "did you mean infra?" in result.stderr


def test_the_fleet_may_come_from_the_stack(project):
    folder = project()
    (folder / "Pulumi.dev.yaml").write_text("config:\n  dra-infra:fleet: hgx-h100 x 2\n")
    assert run("simulate", cwd=folder).returncode == 0


@pytest.mark.parametrize(
    ("fleet", "code"), [(None, "no-fleet"), ("hgx-h1000", "fleet-unknown"), ("hgx-h100 x 0", "fleet-count")]
)
def test_a_fleet_that_is_missing_or_misspelt_is_told(project, fleet: str | None, code: str):
    result = run("simulate", *(["--fleet", fleet] if fleet else []), cwd=project())
    assert result.returncode == 2
    assert f"[{code}]" in result.stderr


@pytest.fixture
def repository(project) -> Path:
    folder = project()
    git(folder.parent, "init")
    git(folder.parent, "add", ".")
    git(folder.parent, "commit", "-m", "first")
    return folder


def test_review_of_no_change_is_quiet(repository: Path):
    result = run("review", "--fleet", "hgx-h100 x 2", cwd=repository)
    assert result.returncode == 0, result.stderr
    assert "nothing changes" in result.stdout


def test_review_shows_the_change_and_writes_the_reports(repository: Path):
    (repository / "__main__.py").write_text(PROGRAM.replace("count=4", "count=2"))
    result = run(
        "review",
        "--fleet",
        "hgx-h100 x 2",
        "--html",
        "r.html",
        "--markdown",
        "r.md",
        "--format",
        "json",
        cwd=repository,
    )
    assert "trainer" in result.stdout
    json.loads(result.stdout)
    assert (repository / "r.html").read_text().startswith("<!doctype html>")
    assert "<!-- dra-infra review" in (repository / "r.md").read_text()


def test_review_fails_when_something_no_longer_fits(repository: Path):
    (repository / "__main__.py").write_text(PROGRAM.replace("count=4", "count=9"))
    result = run("review", "--fleet", "hgx-h100 x 2", cwd=repository)
    assert result.returncode == 1
    assert "no-longer-fits" in result.stdout


def test_review_runs_the_base_apart_from_the_head(repository: Path):
    (repository / "__main__.py").write_text("raise ValueError('head is broken')\n")
    result = run("review", cwd=repository)
    assert result.returncode == 2
    assert "head is broken" in result.stderr


def test_review_of_a_new_program_counts_the_base_as_empty(repository: Path):
    (repository / "__main__.py").write_text("raise ValueError('base is broken')\n")
    git(repository.parent, "commit", "-am", "broken")
    (repository / "__main__.py").write_text(PROGRAM)
    result = run("review", "--format", "markdown", "--assume-empty-base", cwd=repository)
    assert result.returncode == 0, result.stderr
    assert "counts as empty" in result.stdout


def test_review_tells_that_the_base_is_not_there(repository: Path):
    result = run("review", "--base", "nope", cwd=repository)
    assert result.returncode == 2
    assert "[base-not-found]" in result.stderr


def test_review_outside_a_repository_is_told(project):
    result = run("review", cwd=project())
    assert result.returncode == 2
    assert "[no-repository]" in result.stderr


def test_review_without_git_is_told(repository: Path):
    result = run("review", cwd=repository, PATH="")
    assert result.returncode == 2
    assert "no-git" in result.stderr


@pytest.mark.parametrize(
    "arguments", [("frobnicate",), ("synth", "--nope"), ("synth", "--config", "novalue")]
)
def test_wrong_usage_is_exit_code_2(tmp_path: Path, arguments: tuple[str, ...]):
    assert run(*arguments, cwd=tmp_path).returncode == 2


@pytest.mark.parametrize(
    "arguments", [("--help",), (), ("synth", "--help"), ("review", "--help"), ("--version",)]
)
def test_help_and_version_end_well(tmp_path: Path, arguments: tuple[str, ...]):
    result = run(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "dra-infra" in result.stdout.lower()


def test_output_is_plain_where_there_is_no_terminal(project):
    result = run("simulate", "--fleet", "hgx-h100", cwd=project(PROGRAM.replace("count=4", "count=9")))
    assert "\x1b" not in result.stdout + result.stderr


def test_a_reader_that_has_enough_is_no_error(project):
    command = f"{sys.executable} -c '{MAIN}' synth | head -1"
    result = subprocess.run(
        ["bash", "-c", command], cwd=project(), capture_output=True, text=True, check=False
    )
    assert result.stdout.startswith("apiVersion")
    assert "Traceback" not in result.stderr


def test_help_shows_what_each_command_does_in_whole_lines(tmp_path: Path):
    result = run("--help", cwd=tmp_path, COLUMNS="80")
    commands = result.stdout.partition("Commands:")[2]
    assert "  validate      Check manifests" in commands
    assert "..." not in commands


INSTALLED = [str(Path(sys.executable).parent / "dra-infra")]
MODULE = [sys.executable, "-m", "dra_infra"]


def is_answered_alike(started: list[str], *words: str, cwd: Path) -> bool:
    """Whether the command as users start it does what the one of these tests does."""
    alone = subprocess.run(
        [*started, *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "120"},
    )
    forked = run(*words, cwd=cwd)
    return (alone.returncode, alone.stdout, alone.stderr) == (
        forked.returncode,
        forked.stdout,
        forked.stderr,
    )


LOCKED = "manifests/locked/x"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: i}]}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["validate", LOCKED],
        ["simulate", LOCKED, "--fleet", "hgx-h100"],
        ["migrate", LOCKED],
        ["migrate", "manifests/locked"],
        ["compile", LOCKED],
        ["review", LOCKED],
        ["review", "pods.yaml", "--base-path", LOCKED],
        ["explain", "pod/a", LOCKED],
        ["init", LOCKED],
        ["synth", LOCKED],
        ["simulate", "pods.yaml", "--snapshot", LOCKED],
        ["migrate", "pods.yaml", "--plugin-config", LOCKED],
    ],
    ids=" ".join,
)
def test_a_path_that_may_not_be_looked_at_is_a_problem_without_an_answer(
    words: list[str], tmp_path: Path, locked: Path, command
):
    (tmp_path / "pods.yaml").write_text(POD)
    answer = command(*words, cwd=tmp_path)
    assert (answer.code, locked.name in answer.err) == (2, True)
    assert answer.codes <= {"file-unreadable", "fleet-unreadable"}


def test_a_folder_that_may_not_be_entered_is_not_passed_over(tmp_path: Path, locked: Path, command):
    (locked.parent / "pods.yaml").write_text(POD)
    for words in (["validate"], ["simulate", "--fleet", "hgx-h100"], ["migrate"], ["compile"]):
        answer = command(words[0], "manifests", *words[1:], cwd=tmp_path)
        assert (answer.code, answer.codes) == (2, {"file-unreadable"})
        assert "locked: document: Permission denied" in answer.err
    assert "Permission denied" in command("validate", str(locked), cwd=tmp_path).err


def test_a_link_that_leads_nowhere_leaves_no_answer_and_is_not_offered_for_itself(tmp_path: Path, command):
    (tmp_path / "pods.yaml").write_text(POD)
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    for words in (["validate"], ["simulate", "--fleet", "hgx-h100"], ["migrate"]):
        answer = command(words[0], ".", *words[1:], cwd=tmp_path)
        assert (answer.code, answer.codes) == (2, {"file-unreadable"})
        assert "hint: check what the link leads to" in answer.err


def test_the_file_of_a_program_is_its_program(project):
    folder = project()
    for words in (["synth"], ["simulate", "--fleet", "hgx-h100"]):
        by_file, by_folder = (run(words[0], each, *words[1:], cwd=folder) for each in ("__main__.py", "."))
        assert (by_file.returncode, by_file.stdout) == (0, by_folder.stdout), by_file.stderr


@pytest.mark.parametrize("command", ["synth", "simulate"])
def test_json_has_the_problems_for_which_there_is_no_more(command: str, project):
    fleet = ["--fleet", "hgx-h100"] if command == "simulate" else []
    result = run(command, "--json", *fleet, cwd=project(PROGRAM.replace("count=4", "count=0")))
    assert result.returncode == 1
    assert [each["code"] for each in json.loads(result.stdout)["problems"]] == ["count-below-one"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize("end", [">/dev/full", ">/dev/full 2>&1", ">&-"])
@pytest.mark.parametrize("words", ["--help", "validate --help", "catalog"])
def test_output_that_cannot_be_written_is_a_problem(words: str, end: str, tmp_path: Path):
    line = f"exec {shlex.join(MODULE)} {words} {end}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "[report-not-written]" in done.stderr or "2>" in end


@pytest.mark.parametrize(
    ("end", "code"), [("0>/dev/null", "[file-unreadable]"), ("<&-", "[nothing-checked]")]
)
@pytest.mark.parametrize("words", ["validate -", "migrate - --whole-gpus"])
def test_input_that_cannot_be_read_is_a_problem_of_the_input(words: str, end: str, code: str, tmp_path: Path):
    line = f"exec {shlex.join(MODULE)} {words} {end}"
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert code in done.stderr
    assert "standard output" not in done.stderr


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["validate", "--help"], ["nonsense"]])
def test_python_runs_the_package_as_the_command(words: list[str], tmp_path: Path):
    assert is_answered_alike(MODULE, *words, cwd=tmp_path)


@pytest.mark.parametrize("words", [["synth"], ["simulate", "--fleet", "a100-40gb"], ["compile"]])
def test_the_command_that_pip_installs_does_what_these_tests_see(words: list[str], project):
    assert is_answered_alike(INSTALLED, *words, cwd=project())


def test_a_review_of_the_command_that_pip_installs_is_the_one_that_these_tests_see(repository: Path):
    program = repository / "__main__.py"
    program.write_text(program.read_text().replace("count=4", "count=9"))
    assert is_answered_alike(INSTALLED, "review", "--fleet", "hgx-h100 x 2", cwd=repository)
