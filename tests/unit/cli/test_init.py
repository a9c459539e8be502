from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from dra_infra.cli.app import app
from dra_infra.cli.init import nearest_name, project_name
from dra_infra.cli.init_project import write_whole
from dra_infra.cli.written_files import Folder
from dra_infra.errors import ProblemsError, ScaffoldError
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from dra_infra.testing import synth
from tests.support.warm_commands import warm


def init(*arguments: str) -> str:
    """Standard output; problems are raised."""
    result = CliRunner().invoke(app, ["init", *arguments])
    if isinstance(result.exception, ProblemsError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str) -> dict[str, str]:
    with pytest.raises(ProblemsError) as caught:
        init(*arguments)
    return {problem.path: problem.code for problem in caught.value.problems}


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if not path.is_dir()
    }


def run(*arguments: str, cwd: Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, cwd=cwd, input=given, capture_output=True, text=True, check=False)


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_new_project_works_with_every_command_that_it_names(here: Path):
    init("infra")
    folder = here / "infra"
    git(folder, "init")
    git(folder, "add", ".")
    git(folder, "commit", "--message", "Start")
    objects = run(warm().command, "synth", cwd=folder)
    assert (objects.returncode, objects.stderr) == (0, "")
    checked = run(warm().command, "validate", "-", cwd=folder, given=objects.stdout)
    assert checked.returncode == 0, checked.stderr
    placed = run(warm().command, "simulate", cwd=folder)
    assert (placed.returncode, placed.stderr) == (0, "")
    assert "✓ Deployment inference/inference  2 pods" in placed.stdout
    tests = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert tests.returncode == 0, tests.stdout
    assert "3 passed" in tests.stdout
    program = folder / "__main__.py"
    program.write_text(program.read_text().replace("count=1", "count=9"))
    reviewed = run(warm().command, "review", "--base", "HEAD", cwd=folder)
    assert reviewed.returncode == 1, reviewed.stderr
    assert "server-" in reviewed.stdout
    assert "needs 9 devices" in " ".join(reviewed.stdout.split())
    assert not synth(folder).claim("server").fits("hgx-h100 x 4")


@pytest.mark.parametrize(
    ("fleet", "expected"),
    [
        ("l4 x 2 driver=0.5", 'select=dra.gpu.memory >= "2'),
        ("gh200", '"replicas": 1'),
        ("example x 2", 'driver="gpu.example.com"'),
        ("a100-80gb mig=1g.10gb*7, a30", "memory >= "),
    ],
)
def test_the_program_fits_on_the_fleet_that_was_named(here: Path, fleet: str, expected: str):
    init("infra", "--fleet", fleet)
    assert expected in (here / "infra" / "__main__.py").read_text()
    program = synth(here / "infra")
    assert program.problems == ()
    assert program.fits(fleet, "inference")


@pytest.mark.parametrize("minor", SUPPORTED_MINORS)
def test_the_target_is_in_the_stack_file(here: Path, minor: str):
    init("infra", "--kubernetes", minor, "--fleet", "l4 x 2 driver=0.5")
    assert yaml.safe_load((here / "infra" / "Pulumi.dev.yaml").read_text()) == {
        "config": {
            "dra-infra:kubernetes": minor,
            "dra-infra:driver": "0.5",
            "dra-infra:fleet": "l4 x 2 driver=0.5",
        }
    }
    assert synth(here / "infra").program.kubernetes == minor


def test_a_file_of_a_fleet_moves_into_the_project_and_is_found_from_anywhere(here: Path):
    (here / "cluster.yaml").write_text("nodeGroups: [{kind: hgx-h100, count: 2}]\n")
    init("infra", "--fleet", "cluster.yaml")
    (here / "cluster.yaml").unlink()
    assert (here / "infra" / "fleet.yaml").read_text() == "nodeGroups: [{kind: hgx-h100, count: 2}]\n"
    placed = CliRunner().invoke(app, ["simulate", "infra"])
    assert (placed.exit_code, "✓ Deployment" in placed.stdout) == (0, True)
    tests = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(here / "infra"), cwd=here)
    assert "3 passed" in tests.stdout


def test_the_ci_file_goes_where_the_forge_looks_for_it(here: Path):
    git(here, "init")
    init("gpus/infra")
    workflow = yaml.safe_load((here / ".github" / "workflows" / "dra-infra.yml").read_text())
    steps = workflow["jobs"]["review"]["steps"]
    assert [step["with"]["path"] for step in steps if "path" in step.get("with", {})] == ["gpus/infra"]
    init("other", "--ci", "gitlab")
    template = yaml.safe_load((here / ".gitlab-ci.yml").read_text())
    assert template[".dra-infra"]["variables"]["DRA_INFRA_PATH"] == "other"
    init("plain", "--ci", "none")
    assert not {".github", ".gitlab-ci.yml"} & {path.name for path in (here / "plain").iterdir()}


def test_the_ci_files_set_what_the_action_and_the_template_take(here: Path):
    root = Path(__file__).parents[3]
    init("infra")
    init("other", "--ci", "gitlab")
    workflow = yaml.safe_load((here / "infra/.github/workflows/dra-infra.yml").read_text())
    action = yaml.safe_load((root / "action.yml").read_text())
    assert set(workflow["jobs"]["review"]["steps"][-1]["with"]) <= set(action["inputs"])
    text = (here / "other/.gitlab-ci.yml").read_text()
    assert f"/{next((root / 'ci/gitlab').glob('*.yml')).relative_to(root)}" in text
    (name, job), *_ = [(key, value) for key, value in yaml.safe_load(text).items() if key != "include"]
    template = yaml.safe_load(next((root / "ci/gitlab").glob("*.yml")).read_text())
    assert set(job["variables"]) <= set(template[name]["variables"])


def test_a_second_run_writes_nothing(here: Path):
    init("infra")
    before = {path: path.stat().st_mtime_ns for path in (here / "infra").rglob("*")}
    assert "all of it is there already" in init("infra")
    assert {path: path.stat().st_mtime_ns for path in (here / "infra").rglob("*")} == before


def test_files_with_other_content_are_refused_together_and_nothing_is_written(here: Path):
    folder = here / "infra"
    folder.mkdir()
    (folder / "README.md").write_text("mine\n")
    (folder / "__main__.py").write_text("print()\n")
    assert refused("infra") == {
        "infra/README.md": "files-differ",
        "infra/__main__.py": "files-differ",
    }
    assert snapshot(folder) == {"README.md": b"mine\n", "__main__.py": b"print()\n"}


def test_force_replaces_them_and_says_so(here: Path):
    (here / "infra").mkdir()
    (here / "infra" / "README.md").write_text("mine\n")
    said = json.loads(init("infra", "--force", "--json"))
    assert said["replaced"] == ["infra/README.md"]
    assert "infra/Pulumi.yaml" in said["written"]
    assert (here / "infra" / "README.md").read_text().startswith("# infra\n")
    assert not [name for name in snapshot(here / "infra") if re.search(r"\.[0-9a-f]{12}$", name)]


def test_what_is_missing_is_added(here: Path):
    init("infra")
    (here / "infra" / "tests" / "test_gpus.py").unlink()
    said = json.loads(init("infra", "--json"))
    assert (said["written"], said["replaced"]) == (["infra/tests/test_gpus.py"], [])
    assert len(said["unchanged"]) == 7


def test_links_are_not_followed_also_with_force(here: Path):
    (here / "infra").mkdir()
    (here / "victim").write_text("mine\n")
    (here / "infra" / "README.md").symlink_to(here / "victim")
    (here / "infra" / ".gitignore").symlink_to(here / "nowhere")
    (here / "infra" / "__main__.py").mkdir()
    expected = dict.fromkeys(
        ["infra/.gitignore", "infra/README.md", "infra/__main__.py"], "folder-not-usable"
    )
    assert refused("infra", "--force") == expected
    assert (here / "victim").read_text() == "mine\n"
    assert not (here / "infra" / "Pulumi.yaml").exists()


def test_a_file_in_place_of_the_folder_is_refused(here: Path):
    (here / "infra").write_text("mine\n")
    assert set(refused("infra").values()) == {"folder-not-usable"}
    assert snapshot(here) == {"infra": b"mine\n"}


@pytest.mark.parametrize("failing", [1, 5, 8])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_run_that_breaks_off_leaves_the_folder_as_it_was(
    here: Path, monkeypatch: pytest.MonkeyPatch, failing: int, error: BaseException
):
    (here / "a").write_text("old\n")
    before = snapshot(here)
    calls = []
    rename = Folder.rename

    def break_off(self: Folder, name: str, other: str) -> None:
        calls.append(other)
        if len(calls) == failing:
            raise error
        rename(self, name, other)

    monkeypatch.setattr(Folder, "rename", break_off)
    files = {here / name: f"{name}\n" for name in ("a", "b", "c/d/e", "c/f", "g", "h", "i")}
    with pytest.raises(ScaffoldError if isinstance(error, OSError) else KeyboardInterrupt):
        write_whole(files, force=True, root=here)
    monkeypatch.undo()
    assert snapshot(here) == before
    assert not (here / "c").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told(here: Path):
    (here / "closed").mkdir(mode=0o500)
    assert set(refused("closed/infra").values()) == {"folder-not-usable"}


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("GPU infra!", "GPU-infra"),
        ("", "infra"),
        ("../../etc", "etc"),
        ("übung", "ubung"),
        ("a\u202eb", "ab"),
        ("\x1b[31mred", "31mred"),
        ("名前", "infra"),
        ("x" * 101, "x" * 100),
        ("name: [evil]\n", "name-evil"),
        ("{{ 7*7 }}", "7-7"),
    ],
)
def test_a_name_that_pulumi_refuses_gets_the_nearest_good_one(here: Path, name: str, nearest: str):
    with pytest.raises(ScaffoldError) as caught:
        project_name(name, folder=here)
    (problem,) = caught.value.problems
    assert (problem.path, problem.code) == ("--name", "project-name")
    assert problem.hint == f"write --name {nearest}"
    assert str(problem).isprintable() or "\n  hint" in str(problem)
    assert not set(str(problem)) & {"\x1b", "\u202e"}
    assert project_name(nearest, folder=here) == nearest
    assert refused("infra", "--name", name) == {"--name": "project-name"}
    assert snapshot(here) == {}


@pytest.mark.parametrize("name", ["123", "true", "-", ".", "no", "1.5", "a.b_c-d", "x" * 100])
def test_names_that_pulumi_takes_are_texts_in_yaml_too(here: Path, name: str):
    init("infra", f"--name={name}")
    assert yaml.safe_load((here / "infra" / "Pulumi.yaml").read_text())["name"] == name
    assert synth(here / "infra").program.project == name


def test_the_name_of_a_folder_is_checked_as_well(here: Path):
    assert refused("GPU infra") == {"DIR": "project-name"}
    assert nearest_name("GPU infra") == "GPU-infra"
    assert not (here / "GPU infra").exists()
    init("GPU infra", "--name", "gpu")


def test_fleets_without_whole_gpus_and_wrong_ones_are_refused(here: Path):
    assert refused("infra", "--fleet", "a100-80gb mig=1g.10gb*7") == {"--fleet": "fleet-without-gpus"}
    assert list(refused("infra", "--fleet", "hgx-h1000").values()) == ["fleet-unknown"]
    assert list(refused("infra", "--kubernetes", "1.33").values()) == ["unknown-kubernetes"]
    assert CliRunner().invoke(app, ["init", "infra", "--ci", "jenkins"]).exit_code == 2
    assert snapshot(here) == {}


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, r"dra-infra>=\d+\.\d+,<\d+\.\d+"),
        (
            {"url": "https://git.example.com/a/d.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}},
            rf"dra-infra @ git\+https://git\.example\.com/a/d\.git@{COMMIT}",
        ),
        (
            {
                "url": "https://ada:hunter22@git.example.com/d",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT},
            },
            r"# dra-infra @ git\+https://github\.com/OWNER/dra-infra@COMMIT",
        ),
        (
            {"url": "file:///home/ada/dra-infra", "dir_info": {"editable": True}},
            r"# dra-infra @ git\+https://github\.com/OWNER/dra-infra@COMMIT",
        ),
    ],
    ids=["index", "git", "git with a password", "folder"],
)
def test_the_requirement_is_where_this_package_came_from(
    monkeypatch: pytest.MonkeyPatch, here: Path, origin: dict[str, object] | None, line: str
):
    class Installed:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return json.dumps(origin) if origin else None

    monkeypatch.setattr("importlib.metadata.distribution", lambda _: Installed())
    init("gpus")
    written = (here / "gpus/requirements.txt").read_text()
    assert re.search(f"^{line}$", written, re.MULTILINE)
    assert not re.search("hunter22|/home/ada", written)
    assert "\npytest>=8\n" in written


def test_a_new_project_says_what_a_deployment_needs(here: Path):
    init("gpus")
    said = (here / "gpus/README.md").read_text()
    assert all(word in said for word in ("pulumi install", "pulumi login", "DRA driver"))
