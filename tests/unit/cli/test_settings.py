from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dra_infra.answers.settings import load_checked
from dra_infra.errors import ProgramError
from tests.unit.cli.conftest import Answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: app\nruntime: python\n")
    (tmp_path / "__main__.py").write_text("")
    return tmp_path


def told(folder: Path, stack: str | None = None, **config: str) -> tuple[str, str, str]:
    with pytest.raises(ProgramError) as error:
        load_checked(folder, stack, {key.replace("__", ":"): value for key, value in config.items()})
    (problem,) = error.value.problems
    return problem.path, problem.code, problem.hint


def test_a_mistyped_stack_is_told_with_the_nearest(folder: Path):
    (folder / "Pulumi.prod.yaml").write_text("")
    path, code, hint = told(folder, "prd")
    assert (path, code) == ("--stack", "stack-not-known")
    assert "did you mean prod?" in hint


def test_a_stack_unlike_the_others_is_told_with_all_of_them(folder: Path):
    (folder / "Pulumi.dev.yaml").write_text("")
    assert "stacks with a file are dev" in told(folder, "prod")[2]


def test_stacks_without_files_keep_working(folder: Path):
    assert load_checked(folder, "prod", {})[0].stack == "prod"
    (folder / "Pulumi.prod.yaml").write_text("")
    assert load_checked(folder, "acme/app/prod", {})[0].stack == "prod"


def test_a_mistyped_setting_is_told(folder: Path):
    (folder / "Pulumi.dev.yaml").write_text("config:\n  dra-infra:flet: hgx-h100 x 4\n")
    found = told(folder)
    assert found == ("dra-infra:flet", "unknown-setting", "did you mean dra-infra:fleet?")


def test_a_setting_like_none_is_told_with_all_of_them(folder: Path):
    (folder / "Pulumi.dev.yaml").write_text("config:\n  dra-infra:zone: a\n")
    assert "dra-infra:driver, dra-infra:fleet, dra-infra:gates, dra-infra:kubernetes" in told(folder)[2]


def test_a_setting_without_our_prefix_is_warned_of(folder: Path):
    _, (warning,) = load_checked(folder, None, {"fleet": "hgx-h100 x 4"})
    assert (warning.code, warning.severity) == ("unknown-setting", "warning")
    assert "--config dra-infra:fleet=..." in warning.hint


def test_a_setting_that_the_program_has_itself_is_left_alone(folder: Path):
    (folder / "Pulumi.dev.yaml").write_text("config:\n  app:fleet: mine\n")
    assert load_checked(folder, None, {"fleet": "other"})[1] == ()


@pytest.mark.parametrize("arguments", [["synth"], ["simulate", "--fleet", "hgx-h100 x 1"]])
def test_commands_end_with_2_on_a_mistyped_stack(
    folder: Path, command: Callable[..., Answer], arguments: list[str]
):
    (folder / "Pulumi.dev.yaml").write_text("")
    answer = command(*arguments, "--stack", "prod", cwd=folder)
    assert (answer.code, answer.codes, answer.out) == (2, {"stack-not-known"}, "")
