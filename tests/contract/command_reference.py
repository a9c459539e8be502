"""docs/cli.md: what `--help` says of each command, as a page."""

from __future__ import annotations

import inspect
import re
from typing import Any, Final

import click

from dra_infra.cli.app import app

_HEAD: Final = """# Commands

What `dra-infra COMMAND --help` says, as a page; `make golden` writes it. Problems and data are kept apart: data goes to standard
output, everything said about it to standard error. Exit codes are 0 when all is well, 1 on problems or a closed gate, 2 on
wrong usage or where there is no answer.

## Completion

`dra-infra --install-completion` teaches the shell of `$SHELL` the commands and options, and the names behind them: fleets,
Kubernetes minors, driver releases, feature gates, formats, sections of the catalogue, files. Start a new shell afterwards.
Name another with `--install-completion zsh`; bash, zsh and fish are known. `--show-completion` prints the script instead,
for a dotfile of yours.
"""


def commands() -> dict[str, click.Command]:
    """Every command by name, in the order of the help."""
    context = click.Context(app)
    found = {name: app.get_command(context, name) for name in app.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def examples_of(command: Any) -> list[str]:
    """The lines of its help behind `Examples:`."""
    (block,) = re.findall(r"^Examples:\n((?: {2,}\S.*\n?)+)", _help(command), re.MULTILINE)
    return [line.strip() for line in block.splitlines()]


def rendered() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(name, command) for name, command in commands().items())])


def _section(name: str, command: Any) -> str:
    text = _help(command)
    before, _, rest = text.partition("Examples:\n")
    after = "\n".join(line.strip() for line in rest.splitlines()[len(examples_of(command)) :]).strip()
    lines = [f"## dra-infra {name}\n", f"{before.strip()}\n"]
    if after:
        lines += [f"{after}\n"]
    lines += ["<!-- made by: tests/contract/test_command_help.py -->\n```console"]
    lines += [f"$ {example}" for example in examples_of(command)]
    lines += ["```\n", "| | Default | |", "| --- | --- | --- |"]
    for parameter in command.params:
        if parameter.name == "help":
            continue
        positional = parameter.param_type_name == "argument"
        record = (parameter.metavar or parameter.name.upper()).strip("[]") if positional else ""
        shown = f"`{record}`" if record else ", ".join(f"`{each}`" for each in parameter.opts)
        if not record and not parameter.is_flag:
            shown += f" {parameter.metavar or ''}".rstrip()
        lines.append(f"| {shown} | {_default(parameter)} | {_cell(parameter.help or '')} |")
    return "\n".join(lines) + "\n"


def _help(command: click.Command) -> str:
    return inspect.cleandoc(command.help or "").replace("\b", "")


def _default(parameter: Any) -> str:
    if isinstance(getattr(parameter, "show_default", None), str):
        return parameter.show_default
    if parameter.required:
        return "must be given"
    default = parameter.to_info_dict()["default"]
    # What a positional is without a value is said in its meaning.
    if default in (None, False) or parameter.multiple or parameter.param_type_name == "argument":
        return ""
    return f"`{default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
