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

On a terminal, lines are wrapped at its width, and marks have colours unless `TERM=dumb` or `NO_COLOR` is set. A file or pipe gets each line
whole. Without a terminal, work of more than two seconds prints a line of progress on standard error; `DRA_INFRA_PROGRESS=off` prints none.

## Completion

`dra-infra --install-completion` teaches the shell of `$SHELL` the commands and options, and the names behind them: fleets,
Kubernetes minors, driver releases, feature gates, formats, sections of the catalogue, files. Start a new shell afterwards.
Name another with `--install-completion zsh`; bash, zsh and fish are known. `--show-completion` prints the script instead,
for a dotfile of yours.
"""


SHARED: Final = (
    "fleet",
    "snapshot",
    "kubernetes",
    "gates",
    "driver",
    "stack",
    "config",
    "provider",
    "prices",
    "kinds",
    "context",
    "timeout",
)
"""Options that say what a question is about, by the name of their value."""

_ASKING: Final = (
    "synth",
    "validate",
    "simulate",
    "make-room",
    "explain",
    "review",
    "compile",
    "migrate",
    "status",
    "doctor",
    "drain",
)
"""Commands that answer a question about objects or a cluster."""

_STACK_SAYS: Final = "set it with --config dra-infra:{}=..., as the program reads it"
_NO_PROGRAM: Final = "it runs no program"
_NO_PODS: Final = "it places no pods"
_ONLY_FILES: Final = "it reads files alone"
_OTHER_DRIVER: Final = "its `--driver` is the name of a DRA driver, such as gpu.nvidia.com"
_ONLY_LIVE: Final = "it asks the live cluster, which says so itself"

GAPS: Final[dict[str, dict[str, str]]] = {
    "synth": {
        **dict.fromkeys(("fleet", "snapshot", "prices", "kinds"), _NO_PODS),
        **{name: _STACK_SAYS.format(name) for name in ("kubernetes", "driver", "gates")},
        "provider": "it prints all objects of the program",
        "context": _ONLY_FILES,
    },
    "validate": {
        **dict.fromkeys(("fleet", "snapshot", "prices", "kinds"), _NO_PODS),
        **dict.fromkeys(("stack", "config", "provider", "timeout"), _NO_PROGRAM),
        "context": _ONLY_FILES,
    },
    "simulate": {"context": "take --snapshot, which `dra-infra snapshot` writes"},
    "make-room": {
        "fleet": "it is about what runs, which a snapshot has",
        "prices": "it grows no node pools",
        "context": "take --snapshot, which `dra-infra snapshot` writes",
    },
    "explain": {},
    "review": {"context": "take --snapshot: a job that reviews strangers has no rights on a cluster"},
    "compile": {
        **dict.fromkeys(
            ("fleet", "snapshot", "prices", "kinds"),
            "`review --head` takes it, where nothing is run",
        ),
        **{name: _STACK_SAYS.format(name) for name in ("kubernetes", "driver", "gates")},
        "provider": "`review --head` takes it",
        "context": _ONLY_FILES,
    },
    "migrate": {
        "provider": "it migrates all objects of the program",
        "prices": "it grows no node pools",
    },
    "status": {
        **dict.fromkeys(("fleet", "prices", "kinds"), _NO_PODS),
        **dict.fromkeys(("kubernetes", "gates", "driver"), "it shows what is there, and judges nothing"),
        **dict.fromkeys(("stack", "config", "provider"), _NO_PROGRAM),
        "timeout": "each request has a limit of its own",
    },
    "doctor": {
        **dict.fromkeys(("fleet", "prices", "kinds"), _NO_PODS),
        **dict.fromkeys(("kubernetes", "gates"), _ONLY_LIVE),
        "driver": _OTHER_DRIVER,
        "snapshot": "a snapshot holds neither the versions that the server serves, nor its gates, nor settings of the driver",
        **dict.fromkeys(("stack", "config", "provider"), _NO_PROGRAM),
        "timeout": "each request has a limit of its own",
    },
    "drain": {
        **dict.fromkeys(("fleet", "prices", "kinds"), _NO_PODS),
        **dict.fromkeys(("kubernetes", "gates"), _ONLY_LIVE),
        "driver": _OTHER_DRIVER,
        "snapshot": "`simulate --snapshot FILE --drain NODE` answers it for a snapshot",
        **dict.fromkeys(("stack", "config", "provider"), _NO_PROGRAM),
    },
}
"""Why a command lacks a shared option."""


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
    sections = (_section(name, command) for name, command in commands().items())
    return "\n".join([_HEAD, *sections, _shared_options()])


def shared_options_of(command: click.Command) -> set[str]:
    """Return the shared options that a command has, by the name of their value."""
    return {
        str(each.name)
        for each in command.params
        if each.name in SHARED and not (each.name == "driver" and each.metavar == "NAME")
    }


def _shared_options() -> str:
    """A table of commands and shared options, with the reason for each gap below it."""
    every = commands()
    options = {each.name: each.opts[0] for name in _ASKING for each in every[name].params}
    rows = ["| | " + " | ".join(f"`{options[each]}`" for each in SHARED) + " |"]
    rows.append("| --- |" + " --- |" * len(SHARED))
    for name in _ASKING:
        has = shared_options_of(every[name])
        cells = ("✓" if option in has else "-" for option in SHARED)
        rows.append(f"| `{name}` | {' | '.join(cells)} |")
    rows.append("")
    for name in _ASKING:
        why: dict[str, list[str]] = {}
        for option, reason in GAPS[name].items():
            why.setdefault(reason, []).append(f"`{options[option]}`")
        rows += [f"- `{name}` has no {', '.join(gaps)}: {reason}." for reason, gaps in why.items()]
    head = "## Which command takes which option\n\nOptions that say what a question is about have one name and one meaning in all commands.\n"
    return "\n".join([head, *rows, ""])


def _section(name: str, command: Any) -> str:
    text = _help(command)
    before, _, rest = text.partition("Examples:\n")
    after = "\n".join(line.strip() for line in rest.splitlines()[len(examples_of(command)) :]).strip()
    lines = [f"## dra-infra {name}\n", f"{before.strip()}\n"]
    if after:
        lines += [f"{after}\n"]
    lines += ["<!-- made by: tests/contract/test_command_help.py -->\n```console"]
    lines += [f"$ {example}" for example in examples_of(command)]
    lines += ["```"]
    if command.params:
        lines += ["\n| | Default | |", "| --- | --- | --- |"]
    for parameter in command.params:
        if parameter.name == "help" or getattr(parameter, "hidden", False):
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
