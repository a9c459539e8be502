"""`dra-infra --install-completion` and `--show-completion`: the shell learns to complete commands, options and names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_DRA_INFRA_COMPLETE"
_PROGRAM: Final = "dra-infra"
_OF_THE_USER: Final = "current"


def _install(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is None or context.resilient_parsing:
        return
    name = _shell(shell, parameter)
    script = _script(context, name)
    home = Path.home()
    if name == "fish":
        file = home / ".config" / "fish" / "completions" / f"{_PROGRAM}.fish"
    elif name == "zsh":
        file = home / ".zfunc" / f"_{_PROGRAM}"
        _add_line(home / ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit")
    else:
        file = home / ".bash_completions" / f"{_PROGRAM}.sh"
        _add_line(home / ".bashrc", f"source '{file}'")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(script)
    click.echo(f"{name} completion installed in {file}; it works in a new shell.")
    context.exit()


def _show(context: click.Context, parameter: click.Parameter, shell: str | None) -> None:
    if shell is None or context.resilient_parsing:
        return
    click.echo(_script(context, _shell(shell, parameter)), nl=False)
    context.exit()


def _shell(asked: str, parameter: click.Parameter) -> str:
    name = Path(os.environ.get("SHELL", "")).name if asked == _OF_THE_USER else asked
    if name not in SHELLS:
        shown = repr(name[:80]) if name else "the shell"
        raise click.BadParameter(
            f"{shown} is none of {', '.join(SHELLS)}; name one, as {parameter.opts[0]} bash"
        )
    return name


def _script(context: click.Context, shell: str) -> str:
    from click.shell_completion import get_completion_class

    maker = get_completion_class(shell)
    if maker is None:  # pragma: no cover  (click knows all of SHELLS)
        raise click.BadParameter(f"no completion for {shell}")
    return maker(context.command, {}, _PROGRAM, _VARIABLE).source()


def _add_line(file: Path, line: str) -> None:
    """Write *line* at the end of a dotfile that does not have it."""
    before = file.read_text() if file.exists() else ""
    if line not in before.splitlines():
        file.write_text(f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{line}\n")


install_option = click.option(
    "--install-completion",
    metavar="[SHELL]",
    is_flag=False,
    flag_value=_OF_THE_USER,
    is_eager=True,
    expose_value=False,
    callback=_install,
    help="Teach bash, zsh or fish to complete; else the shell of $SHELL.",
)
show_option = click.option(
    "--show-completion",
    metavar="[SHELL]",
    is_flag=False,
    flag_value=_OF_THE_USER,
    is_eager=True,
    expose_value=False,
    callback=_show,
    help="Print what --install-completion would install.",
)
