"""The `dra-infra` program: which commands there are. Each is loaded when it is called, so that none pays for another."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click

from dra_infra.cli.completion_install import install_option, show_option
from dra_infra.errors import ProblemsError
from dra_infra.interruption import EXIT_INTERRUPTED, unwind

if TYPE_CHECKING:
    from collections.abc import Sequence

EXIT_NO_ANSWER = 2

COMMANDS: Final = (
    "init",
    "synth",
    "simulate",
    "explain",
    "review",
    "comment",
    "validate",
    "catalog",
    "snapshot",
    "status",
    "doctor",
)
"""In the order of the help; each is the command of that name in the module of that name in `dra_infra.cli.commands`."""


class LazyCommands(click.Group):
    """A group whose commands are imported by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name; nothing else is loaded."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"dra_infra.cli.commands.{cmd_name}")
        command: click.Command = getattr(module, cmd_name)
        return command

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
@install_option
@show_option
@click.pass_context
def app(context: click.Context, *, version: bool) -> None:
    """GPU infrastructure for Kubernetes Dynamic Resource Allocation: know before merge that it is accepted, that it can be
    placed, and where.
    """  # noqa: D205  (help in one paragraph)
    if version:
        from dra_infra import __version__

        click.echo(f"dra-infra {__version__}")
        context.exit()
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        context.exit()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program; problems are printed, never a traceback of ours."""
    try:
        app(arguments, prog_name="dra-infra")
    except ProblemsError as error:
        from dra_infra.cli.printing import print_problems

        print_problems(error.problems)
        sys.exit(EXIT_NO_ANSWER)


if __name__ == "__main__":
    main()
