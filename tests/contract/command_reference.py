"""docs/cli.md: what `--help` says of each command, as a page."""

from __future__ import annotations

import re
from typing import Any, Final

import typer.main

from dra_infra.cli.app import app

_HEAD: Final = """# Commands

What `dra-infra COMMAND --help` says, as a page; `make golden` writes it. Problems and data are kept apart: data goes to standard
output, everything said about it to standard error. Exit codes are 0 when all is well, 1 on problems or a closed gate, 2 on
wrong usage or where there is no answer.

## Completion

`dra-infra --install-completion` teaches bash, zsh or fish the commands and options, and the names behind them: fleets,
Kubernetes minors, driver releases, feature gates, formats, sections of the catalogue. Start a new shell afterwards.
`--show-completion` prints the script instead, for a dotfile of yours.
"""


def commands() -> dict[str, Any]:
    """Every command by name, in the order of the help."""
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def examples_of(command: Any) -> list[str]:
    """The lines of its help behind `Examples:`."""
    (block,) = re.findall(r"^ *Examples:\n((?: {2,}\S.*\n?)+)", command.help, re.MULTILINE)
    return [line.strip() for line in block.splitlines()]


def rendered() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(name, command) for name, command in commands().items())])


def _section(name: str, command: Any) -> str:
    text = command.help.replace("\b", "")
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
        record = (parameter.metavar or parameter.name.upper()) if positional else ""
        shown = f"`{record}`" if record else ", ".join(f"`{each}`" for each in parameter.opts)
        if not record and not parameter.is_flag:
            shown += f" {parameter.metavar or ''}".rstrip()
        lines.append(f"| {shown} | {_default(parameter)} | {_cell(parameter.help or '')} |")
    return "\n".join(lines) + "\n"


def _default(parameter: Any) -> str:
    if isinstance(parameter.show_default, str):
        return parameter.show_default
    if parameter.required:
        return "must be given"
    if parameter.default in (None, False) or getattr(parameter, "multiple", False):
        return ""
    return f"`{parameter.default}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
