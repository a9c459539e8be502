"""A stranger's checkout holds what Python, or the linker, runs by itself where a variable of the job leads there."""

from __future__ import annotations

import importlib.util
import marshal
import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.e2e.attacks.conftest import Loot
from tests.support.forge.runner import clean_environment, run_action
from tests.support.forge.sample import git, source_of_dra_infra

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[3]
KEY = "planted-deploy-key"
MODULES = ("sitecustomize", "usercustomize", "typing", "json", "click", "yaml", "pulumi", "dra_infra")
"""Modules that Python imports when it starts, and that dra-infra does, its judging processes or the program."""


@pytest.fixture(scope="module")
def action(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return source_of_dra_infra(tmp_path_factory.mktemp("action") / "dra-infra")


@pytest.fixture(scope="module")
def installed_by_ci(action: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for temporary files of a runner, in which `ci/install.sh` has installed dra-infra."""
    temp = tmp_path_factory.mktemp("runner")
    command = ["bash", str(action / "ci" / "install.sh"), str(temp / "dra-infra")]
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return temp


@pytest.fixture(params=["by an installer", "by ci/install.sh"])
def command(request: pytest.FixtureRequest) -> Path:
    if request.param == "by an installer":
        return Path(sys.executable).parent / "dra-infra"
    temp: Path = request.getfixturevalue("installed_by_ci")
    return temp / "dra-infra" / "bin" / "dra-infra"


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """Where code that no confinement holds can write."""
    return tmp_path / "ran-unconfined"


@pytest.fixture
def code(mark: Path) -> str:
    """What the attacker runs: it notes where it got to, with the secret of the job, and behaves."""
    return (
        f"import os\ntry:\n    with open({str(mark)!r}, 'a') as mark:\n"
        "        mark.write(f\"{__name__} in {os.getpid()} with {os.environ.get('DEPLOY_KEY')}\\n\")\n"
        "except OSError:\n    pass\n"
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with a program, as the job has it."""
    top = tmp_path / "checkout"
    (top / "infra").mkdir(parents=True)
    (top / "infra" / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (top / "infra" / "__main__.py").write_text(
        "import pulumi_kubernetes as k8s\nk8s.core.v1.ConfigMap('c', metadata={'name': 'c'}, data={'a': 'old'})\n"
    )
    git(top, "init", "--quiet")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message", "base")
    return top


def run(command: Path, checkout: Path, way: str, variables: Mapping[str, str]) -> str:
    """Review or compile in the folder of the job; what was printed."""
    words = ["infra", "--output", os.devnull] if way == "compile" else ["infra", "--format", "json"]
    done = subprocess.run(
        [str(command), way, *words],
        cwd=checkout,
        env=clean_environment(DEPLOY_KEY=KEY, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout + done.stderr


def judge(loot: Loot, mark: Path, printed: str) -> None:
    got = mark.read_text() if mark.exists() else ""
    loot.add_if(got, f"code of its own that nothing confines: {got.splitlines()[:3]}")
    loot.add_if(got and "programs ran confined" in printed, "a line that says that programs ran confined")
    loot.add_secrets("what its code reads", got, KEY)


@pytest.mark.parametrize("way", ["review", "compile"])
@pytest.mark.parametrize("written", ["{checkout}", "."])
def test_pythonpath_names_the_checkout(
    command: Path, checkout: Path, code: str, mark: Path, loot: Loot, way: str, written: str
):
    for name in MODULES:
        (checkout / f"{name}.py").write_text(code)
    printed = run(command, checkout, way, {"PYTHONPATH": written.format(checkout=checkout)})
    judge(loot, mark, printed)


def test_a_distribution_in_the_checkout_names_a_plugin(
    command: Path, checkout: Path, code: str, mark: Path, loot: Loot
):
    # Libraries load the entry points of every distribution on the module path: pydantic's, OpenTelemetry's, pytest's.
    (checkout / "planted.py").write_text(code + "plugin = None\n")
    folder = checkout / "planted-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[pydantic]\nplanted = planted:plugin\n")
    judge(loot, mark, run(command, checkout, "review", {"PYTHONPATH": "."}))


def test_compiled_modules_in_the_checkout_stand_for_those_that_are_installed(
    command: Path, checkout: Path, code: str, mark: Path, loot: Loot
):
    stdlib = Path(sysconfig.get_path("stdlib"))
    for source in (
        stdlib / "contextlib.py",
        stdlib / "gc.py",
        stdlib / "json" / "__init__.py",
        stdlib / "typing.py",
    ):
        tag = sys.implementation.cache_tag
        compiled = checkout / "cache" / source.relative_to("/").with_name(f"{source.stem}.{tag}.pyc")
        compiled.parent.mkdir(parents=True, exist_ok=True)
        # With this flag Python does not compare it with its source (PEP 552).
        text = code + (source.read_text() if source.exists() else "")
        words = marshal.dumps(compile(text.replace("from __future__ import", "pass #"), str(source), "exec"))
        compiled.write_bytes(importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + words)
    judge(loot, mark, run(command, checkout, "review", {"PYTHONPYCACHEPREFIX": str(checkout / "cache")}))


@pytest.mark.parametrize("way", ["review", "compile"])
def test_the_checkout_is_installed_in_a_way_that_links_to_it(
    installed_by_ci: Path, checkout: Path, code: str, mark: Path, loot: Loot, way: str
):
    # `pip install --editable lib`: a .pth file of the environment leads into the checkout.
    (checkout / "lib").mkdir()
    for name in MODULES:
        (checkout / "lib" / f"{name}.py").write_text(code)
    (checkout / "lib" / "team.py").write_text("NAME = 'c'\n")
    program = checkout / "infra" / "__main__.py"
    program.write_text("import team\n" + program.read_text())
    (packages,) = (installed_by_ci / "dra-infra" / "lib").glob("python*/site-packages")
    link = packages / "team.pth"
    link.write_text(f"{checkout / 'lib'}\n")
    try:
        printed = run(installed_by_ci / "dra-infra" / "bin" / "dra-infra", checkout, way, {})
    finally:
        link.unlink()
    assert "program-raised" not in printed, "the program has its module"
    judge(loot, mark, printed)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # What `LD_LIBRARY_PATH=$LD_LIBRARY_PATH:/usr/local/cuda/lib64` makes where the variable was empty.
        ("LD_LIBRARY_PATH", ":/usr/local/cuda/lib64"),
        ("LD_PRELOAD", "./planted.so"),
        ("PATH", f"{os.environ['PATH']}:"),
    ],
)
def test_a_variable_of_the_system_leads_into_the_checkout(checkout: Path, loot: Loot, name: str, value: str):
    # Nothing of ours is there before the linker is, so there is no such review.
    printed = run(Path(sys.executable).parent / "dra-infra", checkout, "review", {name: value})
    loot.add_if("programs ran confined" in printed, "a line that says that programs ran confined")
    assert "started-from-repository" in printed


@pytest.mark.parametrize(
    "words", [["-m", "dra_infra"], ["-c", "from dra_infra.cli.process import main; main()"]]
)
@pytest.mark.parametrize("variables", [{}, {"PYTHONPATH": "."}], ids=["current folder", "PYTHONPATH"])
def test_a_start_that_takes_modules_from_the_checkout_gives_no_review(
    checkout: Path, loot: Loot, words: list[str], variables: dict[str, str]
):
    done = subprocess.run(
        [sys.executable, *words, "review", "infra"],
        cwd=checkout,
        env=clean_environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )
    loot.add_if("programs ran confined" in done.stderr, "a line that says that programs ran confined")
    loot.add_if(done.returncode != 2, f"a review with the exit code {done.returncode}")
    assert "started-from-repository" in done.stderr


@pytest.mark.parametrize("job", ["one job", "compile"])
def test_the_variables_of_a_job_lead_the_action_into_the_checkout(
    action: Path, installed_by_ci: Path, checkout: Path, code: str, mark: Path, loot: Loot, job: str
):
    for name in MODULES:
        (checkout / f"{name}.py").write_text(code)
    one_job = job == "one job"
    done = run_action(
        action if one_job else action / "compile",
        workspace=checkout,
        temp=installed_by_ci,
        inputs={"path": "infra", **({"base": "HEAD", "comment": "false"} if one_job else {})},
        github={
            "event_name": "push",
            "event": {},
            "sha": git(checkout, "rev-parse", "HEAD"),
            "repository": "team/infra",
        },
        environment=clean_environment(PYTHONPATH=".", DEPLOY_KEY=KEY, GITHUB_REPOSITORY="team/infra"),
        skip=("Install dra-infra",),
        artifacts=installed_by_ci / "artifacts",
    )
    judge(loot, mark, done.log)


@pytest.mark.parametrize("toolchain", ["uv", "poetry", "pip"])
@pytest.mark.parametrize("way", ["review", "compile"])
def test_pulumi_yaml_names_the_tools_and_the_interpreter(
    command: Path,
    checkout: Path,
    mark: Path,
    loot: Loot,
    toolchain: str,
    way: str,
    tool: Callable[[str], Path],
):
    (checkout / "infra" / "Pulumi.yaml").write_text(
        f"name: app\nruntime:\n  name: python\n  options: {{toolchain: {toolchain}, virtualenv: venv, typechecker: mypy}}\n"
        "plugins:\n  providers: [{name: kubernetes, path: ./bin}]\n  languages: [{name: python, path: ./bin}]\n"
    )
    for name in ("python", "python3", "uv", "poetry", "pulumi-language-python", "pulumi-resource-kubernetes"):
        for folder in ("venv/bin", ".venv/bin", "bin"):
            tool(f"infra/{folder}/{name}")
    for file in ("pyproject.toml", "uv.lock", "poetry.lock"):
        (checkout / "infra" / file).write_text('[project]\nname = "app"\nversion = "1"\ndependencies = []\n')
    judge(loot, mark, run(command, checkout, way, {}))


@pytest.fixture
def tool(checkout: Path, mark: Path) -> Callable[[str], Path]:
    """Plants a program in the checkout."""

    def plant(path: str) -> Path:
        file = checkout / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f'#!/bin/sh\necho "$0 with $DEPLOY_KEY" >> {mark}\n')
        file.chmod(0o755)
        return file

    return plant
