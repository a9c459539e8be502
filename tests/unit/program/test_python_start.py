"""What Python runs by itself, before and beside our code, is never a file of the repository outside of the confinement."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dra_infra.program import python_start
from dra_infra.program.isolated import RunningSynth

linux_only = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="Landlock and seccomp are Linux's"
)

MODULES = ("sitecustomize", "usercustomize", "json", "typing", "yaml", "pulumi", "dra_infra")
"""Modules that Python, a judging process or a program imports."""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    top = tmp_path / "repository"
    (top / "infra").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "infra" / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (top / "infra" / "__main__.py").write_text(
        "import team\nimport pulumi_kubernetes as k8s\nk8s.core.v1.Namespace('n', metadata={'name': team.NAME})\n"
    )
    (top / "team.py").write_text("NAME = 'vision'\n")
    return top


def plant(folder: Path, mark: Path) -> None:
    """Write modules that note where they run without a confinement, and hand on to what they stand in front of."""
    for name in MODULES:
        (folder / f"{name}.py").write_text(
            f"import os\ntry:\n    open({str(mark)!r}, 'a').write(__file__ + chr(10))\nexcept OSError:\n    pass\n"
        )


@linux_only
@pytest.mark.parametrize("written", ["{top}", "{top}:", ".", ":/nonexistent", "{top}/../repository"])
def test_modules_of_pythonpath_run_behind_the_confinement_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
):
    mark = tmp_path / "ran-unconfined"
    plant(repository, mark)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PYTHONPATH", written.format(top=repository))
    running = RunningSynth(repository / "infra", inside=repository)
    # Whatever the planted modules make of the program: only where they ran counts.
    running._process.wait(60)
    running.stop()
    assert not mark.exists()
    assert running.in_force


@linux_only
def test_a_program_imports_what_pythonpath_names(repository: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(repository))
    (found,) = RunningSynth(repository / "infra", inside=repository).result().objects
    assert found.ref.name == "vision"


@linux_only
def test_sitecustomize_of_pythonpath_is_run_for_the_program(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (repository / "sitecustomize.py").write_text("import team\nteam.NAME = 'speech'\n")
    monkeypatch.setenv("PYTHONPATH", str(repository))
    (found,) = RunningSynth(repository / "infra", inside=repository).result().objects
    assert found.ref.name == "speech"


def test_folders_of_pth_files_are_found_without_running_their_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "a.pth").write_text(
        f"# comment\nimport sys; raise SystemExit\n\n{tmp_path / 'lib'}\nrelative\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    monkeypatch.delenv("PYTHONPATH", raising=False)
    assert [*python_start.added_folders()] == [tmp_path / "lib", tmp_path / "site" / "relative"]


def test_variables_of_python_wait_for_the_confinement():
    environment = {"PATH": "/bin", "PYTHONPATH": ".", "PYTHONHASHSEED": "0", "PYTHONPYCACHEPREFIX": "cache"}
    assert python_start.for_start(environment) == (
        {"PATH": "/bin", "PYTHONHASHSEED": "0"},
        {"PYTHONPATH": ".", "PYTHONPYCACHEPREFIX": "cache"},
    )


def test_a_judging_process_imports_from_this_installation_alone(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    own = [each for each in sys.path if each]
    (repository / "dra_infra").symlink_to(Path(python_start.__file__).parents[1])
    (tmp_path / "named").mkdir()
    (tmp_path / "link").symlink_to(repository)
    strange = ["", str(repository), str(repository / "lib"), str(tmp_path / "named"), str(tmp_path / "link")]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "named"))
    monkeypatch.setattr(sys, "path", [*strange, *own])
    assert python_start.trusted_path(repository) == own


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({}, []),
        ({"PYTHONPATH": "{top}/lib"}, ["PYTHONPATH"]),
        ({"PYTHONPATH": "/nonexistent:"}, ["PYTHONPATH"]),
        ({"PYTHONPYCACHEPREFIX": "{top}/cache"}, ["PYTHONPYCACHEPREFIX"]),
        ({"LD_LIBRARY_PATH": "/nonexistent:lib"}, ["LD_LIBRARY_PATH"]),
        ({"LD_PRELOAD": "libplanted.so {top}/planted.so"}, ["LD_PRELOAD"]),
        ({"PATH": "/bin:.:{top}/bin"}, ["PATH"]),
    ],
    ids=str,
)
def test_a_process_that_could_take_code_from_the_repository_is_refused(
    repository: Path, variables: dict[str, str], named: list[str]
):
    script = (
        "import sys\nfrom pathlib import Path\nfrom dra_infra.errors import ProgramError\n"
        "from dra_infra.program.python_start import check_start\n"
        "try:\n    check_start(Path(sys.argv[1]))\nexcept ProgramError as error:\n"
        "    print(*(f'{each.path} {each.code}' for each in error.problems), sep='\\n')\n"
    )
    given = {name: value.format(top=repository) for name, value in variables.items()}
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(repository)],
        cwd=repository,
        env={"PATH": "/usr/bin:/bin", **given},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"{each} started-from-repository" for each in named]


def test_an_environment_that_lies_in_the_repository_is_no_code_of_it():
    root = Path(python_start.__file__).parents[2]
    script = (
        "import sys\nfrom pathlib import Path\nfrom dra_infra.program.python_start import check_start, trusted_path\n"
        f"check_start(Path({str(root)!r}))\nassert trusted_path(Path({str(root)!r})) == sys.path\n"
    )
    subprocess.run([sys.executable, "-E", "-P", "-c", script], cwd=root, check=True)
