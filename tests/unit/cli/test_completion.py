from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dra_infra.catalog.machines import node_names
from dra_infra.cli import options
from dra_infra.cli.app import app
from dra_infra.cli.catalog_sections import SECTIONS
from dra_infra.cli.cluster import FORMS
from dra_infra.cli.validate import RENDERERS
from dra_infra.kubernetes.api import SUPPORTED_MINORS
from tests.support.pages.command_reference import commands
from tests.support.warm_commands import warm

INSTALLED = ["bash", *(shell for shell in ("zsh", "fish") if shutil.which(shell))]
"""bash is everywhere where tests run."""

ASK = {
    "bash": """
        source <(dra-infra --show-completion bash)
        COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        {last}
        _dra_infra_completion dra-infra
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    # The widget of zsh wants a terminal: what it hands to _describe and compadd is caught.
    "zsh": """
        compdef() {{ }}
        _path_files() {{ }}
        _describe() {{ print -l -- ${{(P)3}} }}
        compadd() {{ print -l -- ${{(P)5}} }}
        eval "$(dra-infra --show-completion zsh)"
        words=({words} {quoted_last}); CURRENT=$#words
        _dra_infra_completion
    """,
    "fish": """
        dra-infra --show-completion fish | source
        complete --do-complete "{line}"
    """,
}


def ask(shell: str, *words: str) -> str:
    before, last = words[:-1], words[-1]
    script = ASK[shell].format(
        words=" ".join(["dra-infra", *before]),
        last=f'COMP_WORDS+=("{last}"); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))',
        quoted_last=f'"{last}"',
        line=" ".join(["dra-infra", *words]),
    )
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    result = subprocess.run(
        [shell, *flags, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{Path(warm().command).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    assert "Traceback" not in result.stderr, result.stderr
    return result.stdout


@pytest.mark.parametrize("shell", INSTALLED)
def test_a_shell_offers_commands_and_names(shell: str):
    assert all(name in ask(shell, "") for name in ("review", "simulate"))
    assert "hgx-h100" in ask(shell, "simulate", "--fleet", "hgx-h")
    assert "sarif" in ask(shell, "validate", "--format", "")
    assert "1.36" in ask(shell, "validate", "--kubernetes", "1.3")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_installed_in_the_home_of_the_user(shell: str, tmp_path: Path):
    result = subprocess.run(
        [warm().command, "--install-completion", shell],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HOME": str(tmp_path), "SHELL": f"/bin/{shell}"},
    )
    assert result.returncode == 0, result.stderr
    assert any("_DRA_INFRA_COMPLETE" in path.read_text() for path in tmp_path.rglob("*") if path.is_file())


def test_every_name_that_is_offered_begins_with_what_was_typed():
    assert options.complete_fleets("") == list(node_names())
    assert options.complete_fleets("p5.4") == ["p5.4xlarge", "p5.48xlarge"]
    assert "l40s" in options.complete_fleets("l4")
    assert "hgx-h100" not in options.complete_fleets("l4")
    assert "hgx-h100 x 4, l40s" in options.complete_fleets("hgx-h100 x 4, l40")
    assert options.complete_versions("") == list(SUPPORTED_MINORS)
    assert options.complete_versions("1.37.") == ["1.37.1", "1.37.2"]
    assert options.complete_sections("") == list(SECTIONS)
    assert "newest" in options.complete_drivers("")
    assert options.complete_drivers("25.1") == ["25.12"]
    assert "DRADeviceTaints=true" in options.complete_gate_values("DRADeviceT")


CHOICES = [
    (name, parameter.opts[0], list(parameter.type.choices))
    for name, command in commands().items()
    for parameter in command.params
    if isinstance(parameter.type, click.Choice)
]


@pytest.mark.parametrize(("command", "option", "words"), CHOICES)
def test_the_words_of_a_choice_are_all_named_in_help(command: str, option: str, words: list[str]):
    text = CliRunner().invoke(app, [command, "--help"]).stdout.partition(f"{option} ")[2]
    assert len(words) >= 2
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(("command", "option", "words"), CHOICES)
def test_a_word_that_is_none_of_a_choice_is_told_with_the_nearest(
    command: str, option: str, words: list[str]
):
    result = CliRunner().invoke(app, [command, option, f"{words[-1]}z"])
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.stderr
    assert f": '{words[-1]}z' is none of {', '.join(words)}." in result.stderr
    assert f"Did you mean '{words[-1]}'?" in result.stderr


def test_the_choices_are_those_of_what_prints_them():
    forms = {name: words for name, option, words in CHOICES if option == "--format"}
    assert set(forms["validate"]) == {"text", "github", *RENDERERS}
    assert set(forms["status"]) == set(FORMS)


@pytest.mark.parametrize("shell", ["tcsh", ""])
def test_a_shell_that_is_not_known_is_told_with_what_to_write(shell: str):
    result = CliRunner(env={"SHELL": f"/bin/{shell}"}).invoke(app, ["--show-completion"])
    assert result.exit_code == 2
    assert "bash, zsh, fish" in result.stderr
    assert "--show-completion bash" in result.stderr
