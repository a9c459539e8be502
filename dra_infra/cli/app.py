"""The `dra-infra` program and its list of commands.

Each command is loaded when it is called, so that none pays for another. `dra-infra --install-completion` and
`--show-completion` have the shell complete commands, options and names.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from dra_infra import __version__
from dra_infra.cli.failures import describe_unreadable
from dra_infra.cli.printing import EXIT_NO_ANSWER, NO_ROOM, SafeStream, guard_streams, print_problems
from dra_infra.errors import Problem, ProblemsError
from dra_infra.process import EXIT_INTERRUPTED, unwind

if TYPE_CHECKING:
    from collections.abc import Sequence

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


_shell_option: Final = partial(
    click.option,
    metavar="[SHELL]",
    is_flag=False,
    flag_value=_OF_THE_USER,
    is_eager=True,
    expose_value=False,
)


class Listed(NamedTuple):
    """A command in the list of commands.

    Args:
        module: Module of `dra_infra.cli.commands` that has it, under its name; imported for it alone.
        help: What the list says of it.
    """

    module: str
    help: str


COMMANDS: Final = {
    "init": Listed("programs", "Lay out a project that works, with its CI."),
    "synth": Listed("programs", "Print the objects of a program as YAML."),
    "simulate": Listed("programs", "Say where the pods of a program fit."),
    "make-room": Listed("programs", "Say which running pods to move so that a workload fits."),
    "explain": Listed("programs", "Say why a pod or claim gets no devices."),
    "review": Listed("review", "Compare objects with what they were."),
    "upgrade": Listed("programs", "Say what changes with another Kubernetes release."),
    "compile": Listed("review", "Write the objects of a pull request to a file."),
    "comment": Listed("pull_requests", "Post a review on a pull request."),
    "pull-request": Listed("pull_requests", "Ask GitHub which pull request a commit is of."),
    "validate": Listed("validate", "Check manifests as the API server does."),
    "migrate": Listed("migrate", "Turn device-plugin requests and old DRA into claims."),
    "catalog": Listed("programs", "Print what is known of GPUs, drivers and fleets."),
    "mcp": Listed("agents", "Answer coding agents (Model Context Protocol)."),
    "snapshot": Listed("cluster", "Read a live cluster into one file."),
    "status": Listed("cluster", "Show the claims of a live cluster."),
    "doctor": Listed("cluster", "Look for what is wrong with devices in a cluster."),
    "drain": Listed("cluster", "Empty devices for service: see whose pods go, then evict them."),
}
"""All commands by name, in the order of the help."""


class LazyCommands(click.Group):
    """A group whose commands are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name; nothing else is loaded."""
        if cmd_name not in COMMANDS:
            return None
        listed = COMMANDS[cmd_name]
        module = import_module(f"dra_infra.cli.commands.{listed.module}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        command.short_help = listed.help
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of commands, without loading one."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.help) for name, each in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is asked for; a name that is none is told with the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> None:
        """Run a command, and leave with the code that it returns."""
        try:
            # Until here there was nothing to put back.
            unwind()
            ctx.exit(super().invoke(ctx) or 0)
        except KeyboardInterrupt:
            ctx.exit(EXIT_INTERRUPTED)


@click.command(
    cls=LazyCommands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option("--version", is_flag=True, help="Print the version and leave.")
@_shell_option(
    "--install-completion",
    callback=_install,
    help="Teach bash, zsh or fish to complete; else the shell of $SHELL.",
)
@_shell_option("--show-completion", callback=_show, help="Print what --install-completion would install.")
@click.pass_context
def app(context: click.Context, *, version: bool) -> None:
    """GPU infrastructure for Kubernetes Dynamic Resource Allocation: know before merge that it is accepted, that it can be
    placed, and where.
    """  # noqa: D205  (help in one paragraph)
    if version:
        click.echo(f"dra-infra {__version__}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; problems are printed, never a traceback of ours."""
    guard_streams()
    try:
        app(arguments, prog_name="dra-infra")
    except ProblemsError as error:
        print_problems(error.problems)
        sys.exit(EXIT_NO_ANSWER)
    except OSError as error:
        refused = _refused(error)
        # Messages may go to the same full disk.
        with suppress(OSError):
            print_problems([refused])
        sys.exit(EXIT_NO_ANSWER)


def _refused(error: OSError) -> Problem:
    why = error.strerror or str(error)
    if error.filename is not None:
        return describe_unreadable(error)
    if not any(isinstance(each, SafeStream) and each.refusal is error for each in (sys.stdout, sys.stderr)):
        if error.errno not in NO_ROOM:
            raise error
        hint = "check that the disk has room, and that what is read and written is open"
        return Problem(path="a file or stream", code="file-unreadable", message=why, hint=hint)
    # Its rest would fail once more at the end of the process.
    sys.stdout = None
    return Problem(
        path="standard output",
        code="report-not-written",
        message=f"cannot be written: {why}",
        hint="send it to where there is room",
    )


if __name__ == "__main__":
    main()
