"""Toolchains of Pulumi 3.276.0 (sdk/python/toolchain), and where Poetry 2.5.1 keeps environments.

The answers for Poetry are those of `poetry env info --path` in the same folders, compared by hand.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dra_infra.errors import ProgramError
from dra_infra.program import poetry_environment
from dra_infra.program.poetry_environment import find_poetry_environment
from dra_infra.program.project import load_project
from dra_infra.program.virtual_environment import VirtualEnvironment, find_virtual_environment

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PACKAGES = f"lib/python{VERSION}/site-packages"
PYPROJECT = '[project]\nname = "app"\nversion = "1"\n'


@pytest.fixture(autouse=True)
def variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the process a home of its own, without settings of Poetry and uv."""
    for name in [*os.environ]:
        if name.startswith(("CONDA_", "POETRY_", "UV_", "XDG_")) or name == "VIRTUAL_ENV":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", "linux")


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


Find = Callable[..., VirtualEnvironment]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Write files, and find the environment of the project in `infra`."""

    def find(
        files: Mapping[str, str], options: object = None, main: str = ".", **kwargs: object
    ) -> VirtualEnvironment:
        write(tmp_path, {"infra/Pulumi.yaml": "", **files})
        settings = {"main": main, "runtime": {"name": "python", "options": options or {}}}
        return find_virtual_environment(tmp_path / "infra/Pulumi.yaml", settings, **kwargs)  # type: ignore[arg-type]

    return find


@pytest.mark.parametrize(
    ("files", "options", "folder"),
    [
        # toolchain.go, ResolveToolchain: a lock file selects the toolchain that nobody names.
        ((), {}, None),
        (("infra/uv.lock",), {}, "infra/.venv"),
        (("uv.lock",), {}, ".venv"),
        (("uv.lock", "infra/pyproject.toml"), {}, ".venv"),
        (("uv.lock", "poetry.lock"), {}, ".venv"),
        (("uv.lock",), {"toolchain": "pip"}, None),
        (("uv.lock",), {"virtualenv": "env"}, "infra/env"),
        (("pyproject.toml",), {}, None),
        # pip.go, resolveVirtualEnvironmentPath.
        ((), {"virtualenv": "../env"}, "env"),
        ((), {"virtualenv": ""}, None),
        # uv.go, newUv.
        ((), {"toolchain": "uv"}, "infra/src/.venv"),
        (("infra/pyproject.toml",), {"toolchain": "uv"}, "infra/.venv"),
        (("infra/src/pyproject.toml", "infra/uv.lock"), {"toolchain": "uv"}, "infra/.venv"),
    ],
)
def test_a_lock_file_selects_the_toolchain_and_the_folder_of_the_program_counts(
    find: Find, tmp_path: Path, files: tuple[str, ...], options: object, folder: str | None
):
    environment = find({"infra/src/__main__.py": "", **dict.fromkeys(files, "")}, options, "src")
    assert environment.folder == (tmp_path / folder if folder else None)


def test_a_file_in_main_runs_in_its_folder_and_a_link_keeps_its_name(find: Find, tmp_path: Path):
    files = {"infra/src/app.py": "", "infra/src/uv.lock": ""}
    assert find(files, {}, "src/app.py").folder == tmp_path / "infra/src/.venv"
    write(tmp_path, {"shared/app/__main__.py": "", "shared/uv.lock": ""})
    (tmp_path / "infra/linked").symlink_to(tmp_path / "shared/app")
    assert find({}, {}, "linked").folder is None


def test_uv_takes_the_environment_that_its_variable_names(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("UV_PROJECT_ENVIRONMENT", "made")
    assert find({"uv.lock": ""}).folder == tmp_path / "made"
    assert find({}, {"virtualenv": "env"}).folder == tmp_path / "infra/env"
    assert find({}, within=[tmp_path]).folder == tmp_path / ".venv"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"toolchain": "conda"}, "runtime.options.toolchain is 'conda', which Pulumi does not know"),
        ({"toolchain": 3}, "runtime.options.toolchain is 3, which is no text"),
        ({"virtualenv": ["env"]}, "runtime.options.virtualenv is ['env'], which is no text"),
    ],
)
def test_an_option_that_pulumi_refuses_is_a_problem(find: Find, options: object, message: str):
    with pytest.raises(ProgramError) as error:
        find({}, options)
    assert error.value.problems[0].message == message


CACHE = "home/.cache/pypoetry/virtualenvs"
MADE = f"BASE-py{VERSION}"
IN_PROJECT = "[virtualenvs]\nin-project = {}\n"
ACTIVATED = '["BASE"]\nminor = "3.9"\npatch = "3.9.1"\n'


@pytest.fixture
def poetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write files and environments, and find Poetry's in `infra/src`. `BASE` stands for the name of the environments."""

    def find(
        files: Mapping[str, str],
        environments: tuple[str, ...],
        given: Mapping[str, str],
        pyproject: str = PYPROJECT,
    ) -> str | None:
        write(tmp_path, {"infra/pyproject.toml": pyproject, "infra/src/__main__.py": ""})
        base = poetry_environment._base_name(tmp_path / "infra") or ""

        def fill(text: str) -> str:
            return text.replace("BASE", base).replace("TOP", str(tmp_path))

        write(tmp_path, {fill(name): fill(text) for name, text in files.items()})
        for each in environments:
            (tmp_path / fill(each)).mkdir(parents=True)
        for name, value in given.items():
            monkeypatch.setenv(name, fill(value))
        environment = find_poetry_environment(tmp_path / "infra/src", os.environ)
        if environment is None or not environment.is_dir():
            return None
        return str(environment.relative_to(tmp_path)).replace(base or "\0", "BASE")

    return find


@pytest.mark.parametrize(
    ("files", "environments", "given", "expected"),
    [
        ({}, (), {}, None),
        ({}, (f"{CACHE}/{MADE}",), {}, f"{CACHE}/{MADE}"),
        ({}, ("infra/.venv", f"{CACHE}/{MADE}"), {}, "infra/.venv"),
        ({"infra/poetry.toml": IN_PROJECT.format("false")}, ("infra/.venv",), {}, None),
        (
            {"infra/poetry.toml": IN_PROJECT.format("true")},
            (f"{CACHE}/{MADE}",),
            {},
            f"{CACHE}/{MADE}",
        ),
        (
            {"home/.config/pypoetry/config.toml": IN_PROJECT.format("false")},
            ("infra/.venv", f"{CACHE}/{MADE}"),
            {},
            f"{CACHE}/{MADE}",
        ),
        (
            {
                "home/.config/pypoetry/config.toml": IN_PROJECT.format("false"),
                "infra/poetry.toml": IN_PROJECT.format("true"),
            },
            ("infra/.venv", f"{CACHE}/{MADE}"),
            {},
            "infra/.venv",
        ),
        (
            {"infra/poetry.toml": IN_PROJECT.format("true")},
            ("infra/.venv", f"{CACHE}/{MADE}"),
            {"POETRY_VIRTUALENVS_IN_PROJECT": "false"},
            f"{CACHE}/{MADE}",
        ),
        (
            {"infra/poetry.toml": IN_PROJECT.format("false")},
            ("infra/.venv",),
            {"POETRY_VIRTUALENVS_IN_PROJECT": "1"},
            "infra/.venv",
        ),
        (
            {"c/config.toml": IN_PROJECT.format("false")},
            ("infra/.venv",),
            {"POETRY_CONFIG_DIR": "TOP/c"},
            None,
        ),
        (
            {"c/pypoetry/config.toml": IN_PROJECT.format("false")},
            ("infra/.venv",),
            {"XDG_CONFIG_HOME": "TOP/c"},
            None,
        ),
        ({}, (f"envs/{MADE}",), {"POETRY_VIRTUALENVS_PATH": "TOP/envs"}, f"envs/{MADE}"),
        ({}, (f"home/envs/{MADE}",), {"POETRY_VIRTUALENVS_PATH": "~/envs"}, f"home/envs/{MADE}"),
        (
            {},
            (f"home/.cache/pypoetry/v/{MADE}",),
            {"POETRY_VIRTUALENVS_PATH": "{cache-dir}/v"},
            f"home/.cache/pypoetry/v/{MADE}",
        ),
        ({}, (f"infra/src/{MADE}",), {"POETRY_VIRTUALENVS_PATH": ""}, f"infra/src/{MADE}"),
        (
            {"infra/poetry.toml": '[virtualenvs]\npath = "envs"\n'},
            (f"infra/src/envs/{MADE}",),
            {},
            f"infra/src/envs/{MADE}",
        ),
        ({}, (f"c/virtualenvs/{MADE}",), {"POETRY_CACHE_DIR": "TOP/c"}, f"c/virtualenvs/{MADE}"),
        (
            {"home/.config/pypoetry/config.toml": 'cache-dir = "TOP/c"\n'},
            (f"c/virtualenvs/{MADE}",),
            {},
            f"c/virtualenvs/{MADE}",
        ),
        (
            {},
            (f"x/pypoetry/virtualenvs/{MADE}",),
            {"XDG_CACHE_HOME": "TOP/x"},
            f"x/pypoetry/virtualenvs/{MADE}",
        ),
        ({}, (f"{CACHE}/{MADE}",), {"XDG_CACHE_HOME": "x"}, f"{CACHE}/{MADE}"),
        (
            {f"{CACHE}/envs.toml": ACTIVATED},
            (f"{CACHE}/{MADE}", f"{CACHE}/BASE-py3.9"),
            {},
            f"{CACHE}/BASE-py3.9",
        ),
        ({f"{CACHE}/envs.toml": ACTIVATED}, (f"{CACHE}/{MADE}",), {}, None),
        (
            {f"{CACHE}/envs.toml": ACTIVATED.replace("BASE", "other")},
            (f"{CACHE}/{MADE}", f"{CACHE}/BASE-py3.9"),
            {},
            f"{CACHE}/{MADE}",
        ),
        ({}, ("infra/.venv", f"{CACHE}/{MADE}", "active"), {"VIRTUAL_ENV": "TOP/active"}, "active"),
        (
            {f"{CACHE}/envs.toml": ACTIVATED},
            (f"{CACHE}/BASE-py3.9", "active"),
            {"VIRTUAL_ENV": "TOP/active"},
            f"{CACHE}/BASE-py3.9",
        ),
        (
            {},
            (f"{CACHE}/{MADE}", "active"),
            {"VIRTUAL_ENV": "", "CONDA_PREFIX": "TOP/active"},
            f"{CACHE}/{MADE}",
        ),
        ({}, (f"{CACHE}/{MADE}", "active"), {"CONDA_PREFIX": "TOP/active"}, "active"),
        (
            {},
            (f"{CACHE}/{MADE}", "active"),
            {"CONDA_PREFIX": "TOP/active", "CONDA_DEFAULT_ENV": "base"},
            f"{CACHE}/{MADE}",
        ),
        ({"infra/poetry.toml": "[virtualenvs]\ncreate = false\n"}, (f"{CACHE}/{MADE}",), {}, None),
        ({"infra/poetry.toml": "[virtualenvs]\ncreate = false\n"}, ("infra/.venv",), {}, "infra/.venv"),
    ],
)
def test_poetry_keeps_its_environment_where_variables_and_files_say(
    poetry,
    files: Mapping[str, str],
    environments: tuple[str, ...],
    given: Mapping[str, str],
    expected: str | None,
):
    assert poetry(files, environments, given) == expected


@pytest.mark.parametrize(
    ("pyproject", "name"),
    [
        ('[project]\nname = "Acme.Infra_GPU"\n', "acme-infra-gpu-529U-CgD"),
        ('[tool.poetry]\nname = "Acme.Infra_GPU--x"\n', "acme-infra-gpu-x-529U-CgD"),
        ('[project]\nname = "one"\n[tool.poetry]\nname = "two"\n', "one-529U-CgD"),
        ("[tool.poetry]\npackage-mode = false\n", "non-package-mode-529U-CgD"),
        (f'[project]\nname = "{"a" * 50}"\n', f"{'a' * 42}-529U-CgD"),
        ("[tool.ruff]\n", None),
    ],
)
def test_the_name_of_an_environment_is_that_of_the_project_and_a_hash_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pyproject: str, name: str | None
):
    write(tmp_path, {"pyproject.toml": pyproject})
    # The names are those that `EnvManager.generate_env_name` gives for this folder.
    monkeypatch.setattr(os.path, "normcase", lambda _: "/srv/Proj.X")
    assert poetry_environment._base_name(tmp_path) == name


@pytest.mark.parametrize(
    ("platform", "given", "folder"),
    [
        ("darwin", {"HOME": "/h"}, "/h/Library/Caches/pypoetry"),
        ("darwin", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x/pypoetry"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/pypoetry/Cache"),
        ("win32", {}, None),
        ("linux", {}, None),
    ],
)
def test_poetrys_cache_is_where_each_system_has_caches(
    monkeypatch: pytest.MonkeyPatch, platform: str, given: Mapping[str, str], folder: str | None
):
    monkeypatch.setattr(sys, "platform", platform)
    expected = Path(folder) if folder else None
    assert poetry_environment._user_folder(given, "cache") == expected


@pytest.mark.parametrize("name", ["pyproject.toml", "poetry.toml"])
@pytest.mark.parametrize("text", ["a = ", "\x00", "a = " + "[" * 100_000])
def test_a_file_of_poetry_that_is_not_toml_is_a_problem(find: Find, name: str, text: str):
    files = {"infra/pyproject.toml": PYPROJECT, f"infra/{name}": text}
    with pytest.raises(ProgramError) as error:
        find(files, {"toolchain": "poetry"})
    (problem,) = error.value.problems
    assert (problem.path, problem.code, problem.message) == (
        name,
        "invalid-project",
        "is not TOML that can be read",
    )


@pytest.mark.parametrize("path", ["a\\u0000b", "a" * 5000, "{cache-dir}" * 9000, "~nobody-has-this-name/x"])
def test_a_setting_that_is_no_path_ends_nothing(find: Find, path: str):
    files = {"infra/pyproject.toml": PYPROJECT, "infra/poetry.toml": f'[virtualenvs]\npath = "{path}"\n'}
    assert not (find(files, {"toolchain": "poetry"}).folder or Path("none")).exists()


POETRY = {"toolchain": "poetry"}


@pytest.mark.parametrize(
    ("files", "options", "hint"),
    [
        ({}, {}, "install the program's requirements into the environment that runs dra-infra"),
        (
            {},
            {"virtualenv": "env"},
            "install the program's requirements into env, which Pulumi.yaml names: `pulumi install`",
        ),
        (
            {"infra/uv.lock": ""},
            {},
            "install the program's requirements into .venv, which uv makes: `pulumi install`",
        ),
        (
            {"infra/env/lib/python3.99/site-packages/a.py": ""},
            {"virtualenv": "env"},
            f"env is for Python 3.99, and dra-infra runs on {VERSION}: install dra-infra on Python 3.99",
        ),
        (
            {"infra/pyproject.toml": PYPROJECT, "infra/.venv/lib/python3.99/site-packages/a.py": ""},
            POETRY,
            (
                f".venv is for Python 3.99, and dra-infra runs on {VERSION}: install dra-infra on Python 3.99, "
                f"or run `poetry env use {VERSION}` and `pulumi install`"
            ),
        ),
        (
            {"infra/pyproject.toml": PYPROJECT, f"infra/.venv/{PACKAGES}/a.py": ""},
            POETRY,
            "install the program's requirements into .venv, which Poetry made: `pulumi install`",
        ),
        (
            {"infra/pyproject.toml": PYPROJECT, "infra/poetry.toml": IN_PROJECT.format("true")},
            POETRY,
            f"Poetry has no environment .venv: run `poetry env use {VERSION}` and `pulumi install`",
        ),
        (
            {},
            POETRY,
            (
                "Poetry has no environment for this program, so it runs in that of dra-infra: write a pyproject.toml "
                "with a name, leave virtualenvs.create at true, and run `pulumi install`"
            ),
        ),
    ],
)
def test_what_to_do_about_a_missing_module_names_the_environment(
    find: Find, files: Mapping[str, str], options: object, hint: str
):
    assert find(files, options).hint == hint


def test_an_environment_that_is_activated_comes_before_that_of_the_project(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    environment = find({"infra/pyproject.toml": PYPROJECT, "infra/.venv/a": ""}, POETRY)
    assert environment.folder == tmp_path / "active"
    assert environment.hint.startswith(f"Poetry uses {tmp_path / 'active'}, because it is activated")
    assert find({}, POETRY, within=[tmp_path]).folder == tmp_path / "infra/.venv"


def test_the_cached_environment_of_another_python_is_named(find: Find, tmp_path: Path):
    write(tmp_path, {"infra/pyproject.toml": PYPROJECT})
    name = f"{poetry_environment._base_name(tmp_path / 'infra')}-py3.99"
    hint = find({f"{CACHE}/{name}/lib/python3.99/site-packages/a.py": ""}, POETRY).hint
    assert hint.startswith(f"{tmp_path}/{CACHE}/{name} is for Python 3.99, and dra-infra runs on {VERSION}: ")


def test_a_reviewed_program_uses_no_environment_outside_of_its_repository(
    find: Find, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    write(tmp_path, {"infra/pyproject.toml": PYPROJECT, "infra/__main__.py": ""})
    name = f"{poetry_environment._base_name(tmp_path / 'infra')}-py{VERSION}"
    cached = tmp_path / CACHE / name
    cached.mkdir(parents=True)
    (tmp_path / "infra/linked").symlink_to(cached)
    assert find({}, POETRY).folder == cached
    within = [tmp_path / "infra"]
    for options in (
        {"virtualenv": "linked"},
        {"virtualenv": str(cached)},
        {"virtualenv": f"../{CACHE}/{name}"},
    ):
        environment = find({}, options, within=within)
        assert environment.folder is None
        assert "is outside of the repository, and a review uses no environment there" in environment.hint
        assert find({}, options, within=[*within, cached]).folder
    monkeypatch.setenv("POETRY_VIRTUALENVS_PATH", str(cached.parent))
    environment = find({}, POETRY, within=within)
    assert environment.folder == tmp_path / "infra/.venv"
    assert "a review uses an environment of Poetry in the repository alone" in environment.hint
    settings = f'cache-dir = "{tmp_path / "home/.cache/pypoetry"}"\n'
    assert find({"infra/poetry.toml": settings}, POETRY, within=within).folder is None


def test_a_project_has_the_environment_that_poetry_keeps_in_its_cache(tmp_path: Path):
    write(tmp_path, {"Pulumi.yaml": "name: app\nruntime: python\n", "__main__.py": "", "poetry.lock": ""})
    write(tmp_path, {"pyproject.toml": PYPROJECT})
    cached = tmp_path / CACHE / f"{poetry_environment._base_name(tmp_path)}-py{VERSION}"
    assert load_project(tmp_path).environment == cached
